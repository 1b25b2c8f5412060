"""The lines of a log, plain or gzipped, in bounded memory whatever it holds."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence

from statemend.formats import files

#: Of a line longer than this only the start is kept.
LONGEST_LINE = 64 * 1024
#: How much a gzipped log may unpack to; what lies behind is not read, and reported as damage.
LONGEST_UNPACKED = 512 * 1024 * 1024

_MAGIC = b"\x1f\x8b\x08"
_GZIP = 31
#: How much of a log is held at once, as it is read and as it is unpacked.
CHUNK = 256 * 1024


class LogLines:
    """The lines of a log of which ``chunks`` are the bytes, to be gone through once.

    After that ``fault`` says why a gzip could not be unpacked to its end, or is ``None``; the chunks that
    follow the fault are left.
    """

    def __init__(self, chunks: Iterable[bytes], longest_unpacked: int = LONGEST_UNPACKED) -> None:
        self.fault: str | None = None
        self._chunks = iter(chunks)
        self._limit = longest_unpacked

    def marked(self, marks: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        """The lines that hold one of ``marks``; a log has millions of others. Each with its number, from 1,
        without its line break, and without zeroes.

        Only the part of an overlong line that is kept is looked at. A mark has no line break in it."""
        number, start = 1, b""
        for block in self._texts():
            whole = block.rfind(b"\n") + 1
            if not whole:
                start += block[: LONGEST_LINE - len(start)]
                continue
            # A line of which the start is kept already gets no more than its limit; the others are cut below.
            first = block.find(b"\n")
            lines = start + block[: min(first, LONGEST_LINE - len(start))] + block[first:whole]
            number = yield from _marked(lines, marks, number)
            start = block[whole : whole + LONGEST_LINE]
        if any(mark in start for mark in marks):
            yield number, start

    def _texts(self) -> Iterator[bytes]:
        """The blocks without zeroes: a power cut leaves them where the end of the log was, and the next line
        follows right behind them, however many they are."""
        return (block.translate(None, b"\0") if b"\0" in block else block for block in self._blocks())

    def _blocks(self) -> Iterator[bytes]:
        first = next(self._chunks, b"")
        if first.startswith(_MAGIC):
            yield from self._unpacked(first)
        else:
            yield first
            yield from self._chunks

    def _unpacked(self, first: bytes) -> Iterator[bytes]:
        inflater, packed, produced = zlib.decompressobj(_GZIP), first, 0
        while True:
            if not packed:
                packed = next(self._chunks, b"")
                if not packed:
                    if not inflater.eof:
                        self.fault = "the gzip is cut off"
                    return
            if inflater.eof:
                if not packed.startswith(_MAGIC[: len(packed)]):
                    if packed.strip(b"\0"):
                        self.fault = "something that is no gzip follows the gzip"
                    return
                inflater = zlib.decompressobj(_GZIP)
            try:
                block = inflater.decompress(packed, CHUNK)
            except zlib.error:
                self.fault = "the gzip is corrupt"
                return
            packed = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            produced += len(block)
            if produced > self._limit:
                limit = f"{self._limit / 1024**2:g} MiB"
                self.fault = f"the gzip unpacks to more than {limit}, the rest was not read"
                return
            if block:
                yield block


def _marked(lines: bytes, marks: Sequence[bytes], number: int) -> Generator[tuple[int, bytes], None, int]:
    """The marked ones of whole ``lines``, of which the first has this number. Returns the number of the line
    that follows."""
    position = 0
    places = {mark: lines.find(mark) for mark in marks}
    while found := [place for place in places.values() if place >= 0]:
        place = min(found)
        start, end = lines.rfind(b"\n", position, place) + 1 or position, lines.find(b"\n", place)
        number += lines.count(b"\n", position, start)
        line = lines[start : min(end, start + LONGEST_LINE)]
        if any(mark in line for mark in marks):
            yield number, line
        number, position = number + 1, end + 1
        places = {
            mark: lines.find(mark, position) if 0 <= place < position else place
            for mark, place in places.items()
        }
    return number + lines.count(b"\n", position)


def unpacked_head(head: bytes) -> bytes:
    """The start of a log, unpacked as far as the start of a gzip allows."""
    if not head.startswith(_MAGIC):
        return head
    try:
        return zlib.decompressobj(_GZIP).decompress(head, files.HEAD_BYTES)
    except zlib.error:
        return b""
