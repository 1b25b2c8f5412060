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
        waiting = [start]
        while waiting:
            path = waiting.pop()
            try:
                status = path.stat()
            except OSError as error:
                yield Skipped(str(path), _why(path, error))
                continue
            if self._leaves(path):
                yield Skipped(str(path), "a symbolic link that leads out of the folders looked at")
                continue
            identity = (status.st_dev, status.st_ino)
            if identity in self._seen:
                continue
            self._seen.add(identity)
            if stat.S_ISDIR(status.st_mode):
                try:
                    waiting.extend(sorted((Path(entry) for entry in os.scandir(path)), reverse=True))
                except OSError as error:
                    yield Skipped(str(path), _why(path, error))
            elif stat.S_ISREG(status.st_mode):
                yield Found(path, status.st_size)
            else:
                kind = next((name for test, name in _SPECIAL if test(status.st_mode)), "no regular file")
                yield Skipped(str(path), kind)

    def _leaves(self, path: Path) -> bool:
        if path in self._roots or not path.is_symlink():
            return False
        target = Path(os.path.realpath(path))
        return not any(target.is_relative_to(root) for root in self._inside)


def _why(path: Path, error: OSError) -> str:
    if path.is_symlink() and isinstance(error, FileNotFoundError):
        return "a symbolic link to nothing"
    return f"could not be read: {error.strerror or error}"
