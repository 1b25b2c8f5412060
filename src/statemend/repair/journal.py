"""The journal of a run: one line for each step that was reached, on the disk before the next begins."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from statemend.store import durable

#: Called with the name of each step once it is journalled. A test stops a run there.
Hook = Callable[[str], None]


class Entry(msgspec.Struct, frozen=True):
    """One line. ``at`` is epoch seconds, ``facts`` what was measured."""

    step: str
    at: float
    facts: dict[str, str | int] = {}


class Journal:
    """Appends to a journal. ``steps`` is told each name after its line is on the disk."""

    def __init__(self, path: Path, steps: Hook | None = None) -> None:
        self.path = path
        self._steps = steps

    def step(self, name: str, **facts: str | int) -> None:
        """Record that a step was reached. Raises ``OSError`` when that cannot be written."""
        line = msgspec.json.encode(Entry(name, time.time(), facts)) + b"\n"
        durable.append(self.path, b"\n" + line if _is_cut(self.path) else line)
        if self._steps is not None:
            self._steps(name)


def _is_cut(path: Path) -> bool:
    """Whether the last line was cut short: a full disk may have done so, and the run may have gone on."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return False
    return bool(data) and not data.endswith(b"\n")


def read(path: Path) -> tuple[Entry, ...]:
    """The entries of a journal. A line that was cut short is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return ()
    found = []
    for line in lines:
        try:
            found.append(msgspec.json.decode(line, type=Entry))
        except msgspec.DecodeError:
            continue
    return tuple(found)
