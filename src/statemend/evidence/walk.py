"""Walking folders for files that may be artifacts: once each, no loops, never blocking, never leaving."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from statemend.errors import UsageError

_SPECIAL = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Skipped(msgspec.Struct, frozen=True):
    """A path that was not read, and why."""

    path: str
    reason: str


class Found(msgspec.Struct, frozen=True):
    """A regular file to look at. ``size`` is in bytes."""

    path: Path
    size: int


def walk(roots: Sequence[Path]) -> Iterator[Found | Skipped]:
    """Every regular file below ``roots`` (folders or files), in the order of their names.

    A symbolic link is followed only to something that lies in one of the roots. A file or folder that can be
    reached by two ways is taken once. Raises ``UsageError`` for a root that does not exist.
    """
    for root in roots:
        if not root.exists():
            raise UsageError(f"{root}: no such file or folder")
    yield from _Walk(roots).run()


class _Walk:
    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = roots
        self._inside = [Path(os.path.realpath(root)) for root in roots]
        self._seen: set[tuple[int, int]] = set()

    def run(self) -> Iterator[Found | Skipped]:
        for root in self._roots:
            yield from self._visit(root)

    def _visit(self, start: Path) -> Iterator[Found | Skipped]:
        waiting: list[tuple[str, bool]] = [(str(start), False)]
        while waiting:
            path, is_link = waiting.pop()
            try:
                status = os.stat(path)
                if is_link and self._leaves(path):
                    yield Skipped(path, "a symbolic link that leads out of the folders looked at")
                elif self._is_new(status):
                    if stat.S_ISDIR(status.st_mode):
                        waiting.extend(_entries(path))
                    elif stat.S_ISREG(status.st_mode):
                        yield Found(Path(path), status.st_size)
                    else:
                        yield Skipped(path, _special(status.st_mode))
            except OSError as error:
                broken = is_link and isinstance(error, FileNotFoundError)
                reason = f"could not be read: {error.strerror or error}"
                yield Skipped(path, "a symbolic link to nothing" if broken else reason)

    def _is_new(self, status: os.stat_result) -> bool:
        identity = (status.st_dev, status.st_ino)
        if identity in self._seen:
            return False
        self._seen.add(identity)
        return True

    def _leaves(self, path: str) -> bool:
        target = Path(os.path.realpath(path))
        return not any(target.is_relative_to(root) for root in self._inside)


def _entries(folder: str) -> list[tuple[str, bool]]:
    """The entries of a folder, last first, and whether each is a symbolic link."""
    with os.scandir(folder) as entries:
        return sorted(((entry.path, entry.is_symlink()) for entry in entries), reverse=True)


def _special(mode: int) -> str:
    return next((name for test, name in _SPECIAL if test(mode)), "no regular file")
