"""Walking folders for files that may be artifacts: once each, no loops, never blocking, never leaving."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from statemend.errors import Undetermined, UsageError
from statemend.evidence.partial import BROKEN_OFF, is_partial

_SPECIAL = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
#: Whoever wants what lies behind such a link can say so.
_LEADS_OUT = "a symbolic link that leads out of the folders looked at; name its target with --exports"


class Skipped(msgspec.Struct, frozen=True):
    """A path that was not read, and why. ``unread`` is true when it may hold what is looked for and could
    not be read, false when it is none of the things looked for."""

    path: str
    reason: str
    unread: bool = False


class Found(msgspec.Struct, frozen=True):
    """A regular file to look at. ``size`` is in bytes, ``modified_at`` epoch seconds."""

    path: Path
    size: int
    modified_at: float


def status_of(path: Path, what: str) -> os.stat_result:
    """What the system knows of a path that somebody named. ``what`` says in a few words what to name there.

    Raises ``UsageError`` when nothing can be there, ``Undetermined`` when it may not be looked at.
    """
    try:
        return path.stat()
    except PermissionError as error:
        raise Undetermined(f"{path}: may not be read by this user; run statemend as its owner") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        broken = "a symbolic link to nothing" if path.is_symlink() else "no such file or folder"
        raise UsageError(f"{path}: {broken}; name {what}") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; name {what}") from error
    except ValueError as error:
        raise UsageError(f"{str(path)!r}: not a possible path; name {what}") from error


def walk(roots: Sequence[Path], inside: Sequence[Path]) -> Iterator[Found | Skipped]:
    """Every regular file below ``roots`` (folders or files), in the order of their names.

    An export that was broken off is skipped. A symbolic link is followed only to something that lies in one
    of the folders or files ``inside``. A file or folder that can be reached by two ways is taken once.
    """
    yield from _Walk(roots, inside).run()


class _Walk:
    def __init__(self, roots: Sequence[Path], inside: Sequence[Path]) -> None:
        self._roots = roots
        self._inside = [Path(os.path.realpath(each)) for each in inside]
        self._seen: set[tuple[int, int, bool]] = set()
        self._links: list[str] = []

    def run(self) -> Iterator[Found | Skipped]:
        for root in self._roots:
            yield from self._visit(str(root), root.is_symlink())
        # What a link leads to is named by its own path where it has one below a root.
        while self._links:
            yield from self._visit(self._links.pop(0), True)

    def _visit(self, start: str, is_link: bool) -> Iterator[Found | Skipped]:
        waiting = [start]
        while waiting:
            path = waiting.pop()
            try:
                status = os.stat(path)
                if is_link and path == start and self._leaves(path):
                    yield Skipped(path, _LEADS_OUT)
                elif is_partial(os.path.basename(path)) and stat.S_ISREG(status.st_mode):
                    if self._is_new(status, partial=True):
                        yield Skipped(path, BROKEN_OFF)
                elif self._is_new(status):
                    if stat.S_ISDIR(status.st_mode):
                        waiting.extend(self._entries(path))
                    elif stat.S_ISREG(status.st_mode):
                        yield Found(Path(path), status.st_size, status.st_mtime)
                    else:
                        yield Skipped(path, _special(status.st_mode))
            except OSError as error:
                broken = is_link and path == start and isinstance(error, FileNotFoundError)
                reason = f"could not be read: {error.strerror or error}"
                told = "a symbolic link to nothing" if broken else reason
                yield Skipped(path, told, unread=not broken or Path(path) in self._roots)

    def _entries(self, folder: str) -> list[str]:
        """The entries of a folder that are no links, last first. Links are kept for later."""
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name, reverse=True)
        self._links.extend(entry.path for entry in reversed(entries) if entry.is_symlink())
        return [entry.path for entry in entries if not entry.is_symlink()]

    def _is_new(self, status: os.stat_result, *, partial: bool = False) -> bool:
        # A process killed between the two names of an export leaves both: the partial one hides no other.
        identity = (status.st_dev, status.st_ino, partial)
        if identity in self._seen:
            return False
        self._seen.add(identity)
        return True

    def _leaves(self, path: str) -> bool:
        target = Path(os.path.realpath(path))
        return not any(target.is_relative_to(root) for root in self._inside)


def _special(mode: int) -> str:
    return next((name for test, name in _SPECIAL if test(mode)), "no regular file")
