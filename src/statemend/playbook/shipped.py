"""The playbooks that come with statemend, and how one is named on a command line."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from statemend.errors import UsageError
from statemend.playbook import source
from statemend.playbook.source import Source

_SUFFIX = ".yaml"


def names() -> tuple[str, ...]:
    """The names of the shipped playbooks, sorted."""
    found = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


def find(name: str) -> Source:
    """The playbook that a name or a path means: a shipped one, or a file.

    A shipped name goes before a file of that name; ``./NAME`` is always the file. Raises ``UsageError`` when
    there is neither, or the file is no playbook.
    """
    if name in names():
        return source.parse((_folder() / (name + _SUFFIX)).read_bytes(), name + _SUFFIX)
    path = Path(name)
    if not path.exists() and "/" not in name and not name.endswith(_SUFFIX):
        raise UsageError(f"{name}: no playbook of that name; there are {', '.join(names())}, or name a file")
    return source.read(path)


def _folder() -> Traversable:
    """Where they lie: in the installed package, or in ``playbooks/`` of a source tree."""
    installed = files("statemend") / "playbooks"
    if installed.is_dir():
        return installed
    return Path(__file__).resolve().parents[3] / "playbooks"
