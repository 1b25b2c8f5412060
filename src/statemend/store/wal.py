"""A write-ahead log, judged from its bytes (https://sqlite.org/fileformat2.html, section 4).

SQLite reads a log up to the first frame whose salts or checksum do not follow from what precedes, and ignores
the rest without a word. So a log that lost its beginning, or that belongs to another generation of the store,
looks to a reader like no log at all. Nothing here opens a database.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

import msgspec

from statemend.errors import Undetermined
from statemend.store.bundle import StoreFile

HEADER = 32
FRAME_HEADER = 24
_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
_FORMAT = 3007000
_PAGE_SIZES = frozenset(1 << power for power in range(9, 17))

#: How much of a log has its checksums verified unless all of it is asked for, in bytes. Beyond it, only salts
#: are.
CHECKED = 16 * 1024 * 1024


class Log(msgspec.Struct, frozen=True):
    """What a ``-wal`` holds. Sizes are bytes, the rest are numbers of frames.

    ``header`` is ``False`` when the first 32 bytes are not those of a log: SQLite then ignores all of it.
    ``frames`` is how many whole frames the file has room for, ``valid`` how many SQLite would accept,
    ``committed`` how many of those up to the last commit. ``lost`` counts frames *behind* the point where
    SQLite stops that carry the log's own salts and are marked as a commit: transactions that were written
    here and are not read any more. ``foreign`` counts the frames with other salts: what an earlier use of the
    file left. ``verified`` is how many frames had their checksum verified.
    """

    size: int
    header: bool
    page_size: int
    frames: int
    valid: int = 0
    committed: int = 0
    lost: int = 0
    foreign: int = 0
    verified: int = 0


def read_log(file: StoreFile, *, whole: bool = False) -> Log:
    """Judge a ``-wal``. ``whole`` verifies the checksum of every frame instead of those in the first 16 MiB.

    Raises ``Undetermined`` when the file cannot be read.
    """
    try:
        with open(file.path, "rb") as stream:
            return _read(stream, file.size, file.size if whole else CHECKED)
    except OSError as error:
        raise Undetermined(f"{file.path}: cannot be read ({error.strerror or error})") from error


def _read(stream: BinaryIO, size: int, limit: int) -> Log:
    head = stream.read(HEADER)
    fields = struct.unpack(">8I", head) if len(head) == HEADER else (0,) * 8
    magic, version, page_size = fields[:3]
    order = _MAGIC.get(magic)
    if order is None or version != _FORMAT or page_size not in _PAGE_SIZES:
        return Log(size=size, header=False, page_size=0, frames=0)
    sums = _checksum(head[:24], (0, 0), order)
    frame_size = FRAME_HEADER + page_size
    frames = (size - HEADER) // frame_size
    if sums != fields[6:8]:
        return Log(size=size, header=False, page_size=page_size, frames=frames)
    salts = head[16:24]
    valid = committed = lost = foreign = verified = 0
    accepted = True
    for number in range(frames):
        start = HEADER + number * frame_size
        stream.seek(start)
        checked = accepted and start + frame_size <= limit
        frame = stream.read(frame_size if checked else FRAME_HEADER)
        if len(frame) < FRAME_HEADER:
            break
        commit = frame[4:8] != b"\0\0\0\0"
        if frame[8:16] != salts:
            foreign += 1
            accepted = False
            continue
        if checked:
            verified += 1
            sums = _checksum(frame[FRAME_HEADER:], _checksum(frame[:8], sums, order), order)
            accepted = sums == struct.unpack(">2I", frame[16:24])
        if accepted:
            valid = number + 1
            committed = valid if commit else committed
        else:
            lost += commit
    return Log(
        size=size,
        header=True,
        page_size=page_size,
        frames=frames,
        valid=valid,
        committed=committed,
        lost=lost,
        foreign=foreign,
        verified=verified,
    )


def _checksum(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    """SQLite's running checksum over ``data``, whose length is a multiple of 8."""
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for even, odd in zip(words, words, strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
