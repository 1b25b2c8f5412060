"""What the bytes of a store's main file say, before anything opens it as a database."""

from __future__ import annotations

import os
import struct
from typing import Literal

import msgspec

MAGIC = b"SQLite format 3\x00"
_BTREE_PAGES = frozenset({2, 5, 10, 13})
_SAMPLES = 64


class Header(msgspec.Struct, frozen=True):
    """The 100 bytes that begin an SQLite file (https://sqlite.org/fileformat2.html, section 1.3).

    ``page_count`` is 0 where the header does not know it. ``sqlite_version`` is the version number of the
    library that wrote last, as in 3045001.
    """

    page_size: int
    page_count: int
    change_counter: int
    journal: Literal["wal", "rollback"]
    schema_cookie: int
    freelist_pages: int
    application_id: int
    user_version: int
    text_encoding: int
    sqlite_version: int

    @property
    def codec(self) -> str:
        """The name of the text encoding for Python."""
        return {2: "utf-16-le", 3: "utf-16-be"}.get(self.text_encoding, "utf-8")


def sample_offsets(size: int, page_size: int) -> list[int]:
    """Offsets of the first page, the last, and others spread evenly: at most 64."""
    pages = -(-size // page_size)
    if pages <= _SAMPLES:
        return [page * page_size for page in range(pages)]
    return sorted({(pages - 1) * step // (_SAMPLES - 1) * page_size for step in range(_SAMPLES)})


def judge(descriptor: int, size: int) -> tuple[Header | None, str | None, str]:
    """Header, fault and detail of an open main file of ``size`` bytes; see ``Bundle`` for the faults."""
    if not size:
        return None, "empty", "the file has 0 bytes"
    first = os.pread(descriptor, 65536, 0)
    if not first.startswith(MAGIC):
        return None, *_without_magic(descriptor, first, size)
    if size < 512:
        return None, "too-short", f"the file has {size} bytes, less than one page"
    header = _parse_header(first)
    if header is None:
        return None, "overwritten-first-page", "the header's fields are impossible"
    if first[100] not in (5, 13):
        return header, "overwritten-first-page", "the root of the schema table is overwritten"
    promised = header.page_count * header.page_size
    if promised > size:
        return header, "page-count", f"the header promises {promised} bytes and the file has {size}"
    return header, None, ""


def _parse_header(first: bytes) -> Header | None:
    """The header's fields, ``None`` where they cannot be those of a database."""
    page_size = struct.unpack_from(">H", first, 16)[0]
    page_size = 65536 if page_size == 1 else page_size
    write_version, read_version, reserved = first[18], first[19], first[20]
    if page_size < 512 or page_size & (page_size - 1) or page_size - reserved < 480:
        return None
    if first[21:24] != b"\x40\x20\x20" or write_version not in (1, 2) or read_version not in (1, 2):
        return None
    counter, count, _, free_pages, cookie = struct.unpack_from(">5I", first, 24)
    encoding, user_version = struct.unpack_from(">II", first, 56)
    application_id = struct.unpack_from(">I", first, 68)[0]
    valid_for, sqlite_version = struct.unpack_from(">II", first, 92)
    return Header(
        page_size=page_size,
        page_count=count if valid_for == counter else 0,
        change_counter=counter,
        journal="wal" if read_version == 2 else "rollback",
        schema_cookie=cookie,
        freelist_pages=free_pages,
        application_id=application_id,
        user_version=user_version,
        text_encoding=encoding,
        sqlite_version=sqlite_version,
    )


def _without_magic(descriptor: int, first: bytes, size: int) -> tuple[str, str]:
    """Why a file that does not begin as an SQLite file does not."""
    for page_size in (4096, 1024, 8192, 16384, 32768, 65536, 2048, 512):
        offsets = [offset for offset in sample_offsets(size, page_size) if offset]
        alike = sum(_is_btree_page(os.pread(descriptor, 8, offset), page_size) for offset in offsets)
        if alike >= 2 or (alike and len(offsets) <= 3):
            noun, verb = ("page" if len(offsets) == 1 else "pages"), ("is" if alike == 1 else "are")
            return (
                "overwritten-first-page",
                f"the header is gone, yet {alike} of {len(offsets)} {noun} looked at {verb} SQLite's",
            )
    sampled = [os.pread(descriptor, 4096, offset) for offset in sample_offsets(size, 4096)]
    if not any(any(page) for page in sampled):
        pages = "the one page looked at holds"
        if len(sampled) > 1:
            pages = f"all {len(sampled)} pages looked at hold"
        return "zeroed", f"{size} bytes, {pages} nothing but zeros"
    if size < 512:
        return "too-short", f"the file has {size} bytes, less than one page"
    kind = "text" if b"\x00" not in first and _is_text(first) else "binary data"
    return "not-sqlite", f"the file holds {kind}, not an SQLite database"


def _is_btree_page(start: bytes, page_size: int) -> bool:
    """Whether a page's first 8 bytes can be those of a b-tree page."""
    if len(start) < 8 or start[0] not in _BTREE_PAGES:
        return False
    free_block, cells, content = struct.unpack_from(">HHH", start, 1)
    content = content or 65536
    return (
        free_block < page_size
        and content <= page_size
        and cells > 0
        and 8 + 2 * cells <= content
        and start[7] <= 60
    )


def _is_text(sample: bytes) -> bool:
    try:
        sample[:4096].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(sample[:4096]) - 4
    return True
