"""Reading artifact files: one pass, bounded memory, hash on the way.

A reader here never fails on what a file contains. It fails only when the operating system does
(``Undetermined``), or when the path is not a regular file: opening a pipe would block for ever.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from statemend.errors import Undetermined

#: How much of a file decides its kind.
HEAD_BYTES = 64 * 1024
#: A line longer than this is skipped and reported; it bounds the memory that one line can take.
LONGEST_LINE = 256 * 1024 * 1024

#: Editors on Windows put this before the text when they save it again.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_CHUNK = 1024 * 1024


class Line(NamedTuple):
    """One line with its newline. ``number`` counts from 1, ``offset`` is in bytes; ``data`` is empty and
    ``overlong`` true when the line was too long to be kept, or held too much."""

    number: int
    offset: int
    length: int
    data: bytes
    overlong: bool = False


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file, open for reading in binary. Raises ``Undetermined`` for every failure of the system."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Undetermined(f"{path}: not a regular file, so it was not read")
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise Undetermined(f"{path}: could not be read: {error.strerror or error}") from error


def head(path: Path) -> bytes:
    """The first 64 KiB."""
    with opened(path) as file:
        return file.read(HEAD_BYTES)


def size(path: Path) -> int:
    """The size of the file in bytes."""
    with opened(path) as file:
        return os.fstat(file.fileno()).st_size


def chunk(path: Path, offset: int, length: int) -> bytes:
    """``length`` bytes from ``offset``, fewer at the end of the file."""
    with opened(path) as file:
        file.seek(offset)
        return file.read(length)


def lines_between(path: Path, offset: int, length: int) -> Iterator[bytes]:
    """The lines of one part of a file, with their newlines, one at a time."""
    with opened(path) as file:
        file.seek(offset)
        left = length
        while left > 0 and (data := file.readline(left)):
            left -= len(data)
            yield data


def pieces_between(path: Path, offset: int, length: int) -> Iterator[bytes]:
    """The same part in pieces of whole lines, about a megabyte each where lines are short."""
    with opened(path) as file:
        file.seek(offset)
        left = length
        while left > 0 and (lines := file.readlines(min(left, _CHUNK))):
            piece = b"".join(lines)[:left]
            left -= len(piece)
            yield piece


class Scan:
    """One pass over a file by line that also learns its size, time and sha256.

    Iterate it to the end once; ``sha256`` holds for the bytes that were read. ``changed`` tells that the
    file grew, shrank or was rewritten meanwhile. A line that does not ``fit`` counts as too long.
    """

    def __init__(
        self, path: Path, longest: int = LONGEST_LINE, fits: Callable[[bytes], bool] | None = None
    ) -> None:
        self.path = path
        self.size = 0
        self.modified_at = 0.0
        self.changed = False
        self._longest = longest
        self._fits = fits
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[Line]:
        with opened(self.path) as file:
            before = os.fstat(file.fileno())
            self.modified_at = before.st_mtime
            number = 0
            while data := file.readline(self._longest):
                number += 1
                offset, length = self.size, len(data)
                self._hash.update(data)
                overlong = length == self._longest and not data.endswith(b"\n")
                if overlong:
                    length += self._skip_rest(file)
                elif self._fits is not None:
                    overlong = not self._fits(data)
                self.size += length
                yield Line(number, offset, length, b"" if overlong else data, overlong)
            after = os.fstat(file.fileno())
            self.changed = (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)

    def _skip_rest(self, file: BinaryIO) -> int:
        skipped = 0
        while rest := file.readline(_CHUNK):
            self._hash.update(rest)
            skipped += len(rest)
            if rest.endswith(b"\n"):
                break
        return skipped

    def chunks(self, length: int = _CHUNK) -> Iterator[bytes]:
        """The whole file in pieces of this length, not by line. Also to be gone through once."""
        with opened(self.path) as file:
            before = os.fstat(file.fileno())
            self.modified_at = before.st_mtime
            while data := file.read(length):
                self._hash.update(data)
                self.size += len(data)
                yield data
            after = os.fstat(file.fileno())
            self.changed = (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)

    def drain(self) -> Scan:
        """Read the whole file for its hash alone."""
        for _ in self.chunks():
            pass
        return self
