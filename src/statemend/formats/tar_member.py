"""The store in a gzipped tar, found and unpacked in one pass each.

A tar has no directory, and its headers may be of any length, so it is read here block by block: nothing is
held but the header at hand.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from statemend.formats.archive_member import (
    HIGHEST_RATIO,
    RATIO_COUNTS_FROM,
    STORE_NAME,
    ArchiveFault,
    Member,
    check_name,
    check_size,
    is_store_name,
)

_GZIP = b"\x1f\x8b\x08"
_USTAR = b"ustar"
_BLOCK = 512
_CHUNK = 256 * 1024
#: The longest header of names and attributes that is read.
_LONGEST_HEADER = 1024 * 1024
#: A profile lies in a folder of its own in the archive: a store lies no deeper than that.
_DEEPEST = 2
_REGULAR = b"0\0"
_RECORD = re.compile(rb"(\d{1,9}) ")


def recognise(head: bytes) -> bool:
    """Whether a file begins as a gzipped tar does."""
    if not head.startswith(_GZIP):
        return False
    try:
        start = zlib.decompressobj(31).decompress(head, _BLOCK)
    except zlib.error:
        return False
    return len(start) == _BLOCK and start[257:262] == _USTAR


def find(file: BinaryIO) -> Member | None:
    """The first store in the file. Raises ``ArchiveFault``."""
    return next((member for member, _ in _stores(file)), None)


def blocks(file: BinaryIO, member: Member) -> Iterator[bytes]:
    """The bytes of the store. Raises ``ArchiveFault``."""
    for found, stream in _stores(file):
        if found == member:
            yield from stream.pieces(found.size)
            return
    raise ArchiveFault("the archive changed while it was read", broken=True)


def _stores(file: BinaryIO) -> Iterator[tuple[Member, _Stream]]:
    """Each store with the stream that stands at its first byte."""
    stream = _Stream(file)
    long_name: str | None = None
    long_size: int | None = None
    while (header := stream.take(_BLOCK)).strip(b"\0"):
        if header[257:262] != _USTAR:
            raise ArchiveFault("the archive is damaged: a header is missing", broken=True)
        kind, size = header[156:157], _number(header[124:136])
        name = long_name if long_name is not None else _name(header)
        if kind in b"xgLK" and kind:
            if size > _LONGEST_HEADER:
                raise ArchiveFault("the archive has a header of names that is too long")
            data = stream.take(_padded(size))[:size]
            if kind == b"L":
                long_name = _text(data)
            elif kind == b"x":
                fields = _fields(data)
                long_name = fields.get("path", long_name)
                long_size = int(fields["size"]) if fields.get("size", "").isdigit() else None
            continue
        size = size if long_size is None else long_size
        long_name = long_size = None
        if is_store_name(name) and len(name.removeprefix("./").split("/")) <= _DEEPEST:
            check_name(name)
            if not kind or kind not in _REGULAR:
                raise ArchiveFault(f"its {STORE_NAME} is a link or no regular file")
            check_size(size, size)
            yield Member(name, size), stream
            return
        stream.skip(_padded(size))


class _Stream:
    """What a gzip unpacks to, in bounded steps."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.seek(0)
        self._inflater = zlib.decompressobj(31)
        self._packed = b""
        self._ready = b""
        self._read = self._made = 0

    def take(self, length: int) -> bytes:
        """The next bytes, all of them. Raises ``ArchiveFault`` at the end of the stream."""
        return b"".join(self.pieces(length))

    def skip(self, length: int) -> None:
        """Pass over the next bytes."""
        for _ in self.pieces(length):
            continue

    def pieces(self, length: int) -> Iterator[bytes]:
        """The next bytes piece by piece."""
        while length > 0:
            if not self._ready:
                self._unpack()
            piece, self._ready = self._ready[:length], self._ready[length:]
            length -= len(piece)
            if piece:
                yield piece

    def _unpack(self) -> None:
        if self._inflater.eof:
            self._packed, self._inflater = self._inflater.unused_data, zlib.decompressobj(31)
        if not self._packed:
            self._packed = self._file.read(_CHUNK)
            self._read += len(self._packed)
            if not self._packed:
                raise ArchiveFault("the archive is cut off", broken=True)
        try:
            self._ready = self._inflater.decompress(self._packed, _CHUNK)
        except zlib.error as error:
            raise ArchiveFault("the archive is damaged: its gzip does not unpack", broken=True) from error
        self._packed = self._inflater.unconsumed_tail
        self._made += len(self._ready)
        if self._made > RATIO_COUNTS_FROM and self._made > HIGHEST_RATIO * self._read:
            raise ArchiveFault(f"the archive is packed more than {HIGHEST_RATIO} to 1, as only a bomb is")


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _number(field: bytes) -> int:
    """A size: octal digits, or a binary number marked by its first bit."""
    if field[0] & 0x80:
        value = int.from_bytes(field, "big") & ((1 << 8 * len(field) - 1) - 1)
    else:
        digits = field.strip(b" \0")
        if re.fullmatch(rb"[0-7]*", digits) is None:
            raise ArchiveFault("the archive is damaged: a header has no size", broken=True)
        value = int(digits or b"0", 8)
    return value


def _name(header: bytes) -> str:
    name = _text(header[:100])
    prefix = _text(header[345:500]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")


def _fields(data: bytes) -> dict[str, str]:
    """The records of an extended header: ``LENGTH KEY=VALUE\\n`` each."""
    found: dict[str, str] = {}
    at = 0
    while match := _RECORD.match(data, at):
        end = at + int(match[1])
        record = data[match.end() : end - 1]
        if end <= match.end() or end > len(data):
            break
        key, _, value = record.partition(b"=")
        found[key.decode("utf-8", "replace")] = value.decode("utf-8", "backslashreplace")
        at = end
    return found
