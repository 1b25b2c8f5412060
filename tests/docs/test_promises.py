"""What is promised of the code as a whole: no network, and nothing that is read is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.docs.blocks import ROOT

_NETWORK = frozenset(
    {"aiohttp", "asyncio", "ftplib", "http", "httpx", "imaplib", "poplib", "requests", "smtplib", "socket"}
) | frozenset({"socketserver", "ssl", "telnetlib", "urllib", "urllib3", "websockets", "xmlrpc"})
#: It only takes names apart and puts them together.
_HARMLESS = frozenset({"urllib.parse"})
_RUNNING = frozenset({"code", "ctypes", "marshal", "pickle", "pty", "runpy", "shelve", "subprocess"})
_CALLS = frozenset({"eval", "exec", "compile", "__import__", "system", "popen", "execv", "execve", "spawnv"})
_MODULES = sorted((ROOT / "src").rglob("*.py"))


def test_no_module_reaches_for_a_network() -> None:
    assert not [(path.name, name) for path in _MODULES for name in _imports(path) if name in _NETWORK]


def test_no_module_runs_what_it_reads() -> None:
    assert not [(path.name, name) for path in _MODULES for name in _imports(path) if name in _RUNNING]
    assert not [(path.name, name) for path in _MODULES for name in _calls(path) if name in _CALLS]


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        else:
            continue
        yield from (name.partition(".")[0] for name in names if name not in _HARMLESS)


def _calls(path: Path) -> Iterator[str]:
    """Names of what is called: a bare name, or an attribute of ``os``. ``re.compile`` is none of them."""
    for node in ast.walk(_tree(path)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name):
            yield called.id
        elif (
            isinstance(called, ast.Attribute)
            and isinstance(called.value, ast.Name)
            and called.value.id == "os"
        ):
            yield called.attr


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
