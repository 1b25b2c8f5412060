"""Every command on a page runs as it stands, and ends as the page says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.docs import parsing, shell
from tests.docs.blocks import PAGES, ROOT, blocks, inline, name
from tests.docs.conftest import Statemend, named

_SHELL = frozenset({"sh", "bash", "console"})


def _has_commands(page: Path) -> bool:
    return any(block.language in _SHELL and not block.not_run for block in blocks(page))


@pytest.mark.parametrize("page", [page for page in PAGES if _has_commands(page)], ids=name)
def test_the_commands_of_a_page_run(page: Path, sandbox: Path, statemend: Statemend) -> None:
    """In order, on one machine, so that a page can tell a story."""
    for block in blocks(page):
        if block.file is not None:
            (sandbox / block.file).write_text(block.text, encoding="utf-8")
        if block.language not in _SHELL or block.not_run:
            continue
        if shell.is_script(block):
            done = shell.script(named(block.text), sandbox)
            assert done.returncode == 0, f"{name(page)}:{block.line}: {done.stdout}{done.stderr}"
            continue
        for command in shell.commands(block):
            if command.words[0] == "make":
                assert re.search(rf"^{command.words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
                continue
            meant = msgspec.structs.replace(command, text=named(command.text))
            code = shell.run(meant, statemend, sandbox)
            assert code in command.codes, f"{name(page)}:{command.line}: {command.text}: exit {code}"
            assert (target := shell.target(meant)) is None or target.exists(), f"{command.text}: no {target}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_is_one(page: Path) -> None:
    """Those that are not run, and those in the text, as far as the parser can tell."""
    wrong = [
        f"{' '.join(words)}: {said}"
        for block in blocks(page)
        if block.language in _SHELL
        for words in shell.statemends(block)
        if (said := parsing.fault(words))
    ]
    wrong += [
        f"{text}: {said}"
        for text in inline(page)
        if "…" not in text and (said := parsing.fault(text.split()[1:], whole=False))
    ]
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_scripts_are_bash(page: Path) -> None:
    for block in blocks(page):
        if block.language in _SHELL:
            read = subprocess.run(
                ["bash", "-n", "-c", block.text], capture_output=True, text=True, check=False
            )
            assert (read.returncode, read.stderr) == (0, ""), f"{name(page)}:{block.line}"


def test_a_wrong_command_would_be_noticed(sandbox: Path, statemend: Statemend) -> None:
    assert parsing.fault(["scan", "~/.hermes", "--no-such-option"]) is not None
    assert parsing.fault(["playbook", "walk"]) is not None
    assert parsing.fault(["cleanup", "plan", "~/.hermes"]) is not None
    assert parsing.fault(["cleanup", "plan", "--no-such-option"], whole=False) is not None
    missing = shell.Command("statemend scan ~/nowhere", 1, frozenset({0}))
    assert shell.run(missing, statemend, sandbox) == 2
