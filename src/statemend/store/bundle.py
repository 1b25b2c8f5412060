"""A store on disk, seen before SQLite touches it: the file, its sidecars, its header, its fingerprint.

Opening a damaged store can destroy evidence (SQLite deletes the ``-wal`` beside a main file that is empty),
so the bytes are judged first. Nothing here opens a database. A descriptor opened and closed on a store drops
the POSIX locks that *this* process holds on it: look at a store before opening it for writing, or after
closing it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from statemend.errors import Undetermined, UsageError

MAGIC = b"SQLite format 3\x00"
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_BTREE_PAGES = frozenset({2, 5, 10, 13})
_SAMPLES = 64
#: A ``-wal`` up to this size holds no whole frame: 32 bytes of header, 24 of frame header, the smallest page.
_WAL_WITHOUT_FRAMES = 32 + 24 + 512 - 1
#: What the names of the copies that Hermes leaves beside a store contain.
_SIBLING_MARKS = (
    ".retired-wal-",
    ".malformed-backup-",
    ".zeroed-",
    ".notadb-",
    ".pre-update-emergency-",
    ".pre-clean-markers-backup-",
    ".backup-staging-",
)


class StoreFile(msgspec.Struct, frozen=True):
    """One file of the bundle. ``path`` has its symbolic links resolved, ``mode`` is its permissions."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    device: int
    mode: int


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


class Bundle(msgspec.Struct, frozen=True):
    """A store's files. ``fault`` says why SQLite must not open it, as a slug, with ``detail`` in words:

    ``empty`` · ``zeroed`` · ``too-short`` · ``not-sqlite`` · ``overwritten-first-page`` · ``page-count`` (the
    header promises more pages than the file has). ``siblings`` names quarantined copies and retired
    write-ahead logs.
    """

    path: str
    main: StoreFile
    wal: StoreFile | None = None
    shm: StoreFile | None = None
    journal: StoreFile | None = None
    hot_journal: bool = False
    header: Header | None = None
    fault: str | None = None
    detail: str = ""
    siblings: tuple[str, ...] = ()

    @property
    def wal_content(self) -> bool:
        """Whether the ``-wal`` is large enough to hold rows that the main file may lack."""
        return self.wal is not None and self.wal.size > _WAL_WITHOUT_FRAMES

    @property
    def files(self) -> tuple[StoreFile, ...]:
        """The main file and the sidecars that exist."""
        return tuple(file for file in (self.main, self.wal, self.shm, self.journal) if file is not None)


class Fingerprint(msgspec.Struct, frozen=True):
    """What a store's content looks like from outside; two that are equal say that nothing wrote in between.

    Covers size, modification time in ns, inode, header and sampled pages of the main file, and the same of a
    ``-wal`` or ``-journal`` that is not empty. An empty sidecar holds nothing, so a reader that leaves one
    behind does not change the fingerprint; neither does ``-shm``, which only mirrors the ``-wal``.
    """

    main: tuple[int, int, int, int]
    sidecars: tuple[tuple[str, int, int, int], ...]
    digest: str


def inspect(path: Path) -> Bundle:
    """Look at the store at ``path`` without opening it as a database.

    Raises ``UsageError`` where there is no regular file, ``Undetermined`` where it cannot be read.
    """
    given = os.fspath(path)
    with _reading(given):
        real = os.path.realpath(given)
        main = _store_file(real)
    if main is None:
        raise UsageError(f"{given}: no such file; give the path of a state.db")
    with _reading(real):
        wal, shm, journal = (_store_file(real + suffix) for suffix in ("-wal", "-shm", "-journal"))
        header, fault, detail = _judge(main, wal)
        hot = journal is not None and _begins_with(journal.path, _JOURNAL_MAGIC)
        if wal is not None:
            _begins_with(wal.path, b"")  # an unreadable log must not pass for an absent one
    return Bundle(
        path=given,
        main=main,
        wal=wal,
        shm=shm,
        journal=journal,
        hot_journal=hot,
        header=header,
        fault=fault,
        detail=detail,
        siblings=_siblings(real),
    )


def fingerprint(store: Bundle | Path) -> Fingerprint:
    """Take the fingerprint of a store as it is now. Reads at most 64 pages, whatever the size.

    Raises ``Undetermined`` when a file has gone or cannot be read.
    """
    real = store.main.path if isinstance(store, Bundle) else os.path.realpath(store)
    digest = hashlib.sha256()
    stats = []
    with _reading(real):
        for suffix in ("", "-wal", "-journal"):
            file = _store_file(real + suffix)
            if file is None and not suffix:
                raise Undetermined(f"{real}: the store is gone")
            if file is None or (suffix and not file.size):
                continue
            stats.append((suffix, file))
            with open(file.path, "rb") as source:
                for offset in _sample_offsets(file.size, 4096):
                    digest.update(os.pread(source.fileno(), 4096, offset))
    (_, main), *sidecars = stats
    return Fingerprint(
        main=(main.size, main.mtime_ns, main.inode, main.device),
        sidecars=tuple((suffix, file.size, file.mtime_ns, file.inode) for suffix, file in sidecars),
        digest=digest.hexdigest(),
    )


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn what the operating system says into an error that names the path."""
    try:
        yield
    except PermissionError as error:
        raise Undetermined(f"{error.filename or path}: may not be read by this user") from error
    except ValueError as error:
        raise UsageError(f"{path!r}: not a possible path ({error})") from error
    except OSError as error:
        raise Undetermined(f"{error.filename or path}: cannot be read ({error.strerror or error})") from error


def _store_file(path: str) -> StoreFile | None:
    """The facts of one file, ``None`` if there is none. A pipe or a device is never opened."""
    try:
        facts = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(facts.st_mode):
        raise UsageError(f"{path}: a folder, not a store; give the state.db in it")
    if not stat.S_ISREG(facts.st_mode):
        raise UsageError(f"{path}: not a regular file, so not a store")
    return StoreFile(
        path=path,
        size=facts.st_size,
        mtime_ns=facts.st_mtime_ns,
        inode=facts.st_ino,
        device=facts.st_dev,
        mode=stat.S_IMODE(facts.st_mode),
    )


def _begins_with(path: str, magic: bytes) -> bool:
    with open(path, "rb") as source:
        return source.read(len(magic)) == magic


def _sample_offsets(size: int, page_size: int) -> list[int]:
    """Offsets of the first page, the last, and others spread evenly: at most 64."""
    pages = -(-size // page_size)
    if pages <= _SAMPLES:
        return [page * page_size for page in range(pages)]
    return sorted({(pages - 1) * step // (_SAMPLES - 1) * page_size for step in range(_SAMPLES)})


def _judge(main: StoreFile, wal: StoreFile | None) -> tuple[Header | None, str | None, str]:
    """Header, fault and detail of a main file, from its bytes alone."""
    beside = f"; a -wal of {wal.size} bytes lies beside it" if wal is not None and wal.size else ""
    if not main.size:
        return None, "empty", f"the file has 0 bytes{beside}"
    with open(main.path, "rb") as source:
        first = os.pread(source.fileno(), 65536, 0)
        if not first.startswith(MAGIC):
            fault, detail = _without_magic(source.fileno(), first, main.size)
            return None, fault, detail + beside
    if main.size < 512:
        return None, "too-short", f"the file has {main.size} bytes, less than one page{beside}"
    header = _parse_header(first)
    if header is None:
        return None, "overwritten-first-page", f"the header's fields are impossible{beside}"
    if first[100] not in (5, 13):
        return header, "overwritten-first-page", f"the root of the schema table is overwritten{beside}"
    promised = header.page_count * header.page_size
    log_may_extend = wal is not None and wal.size > _WAL_WITHOUT_FRAMES
    if promised > main.size and not log_may_extend:
        return header, "page-count", f"the header promises {promised} bytes and the file has {main.size}"
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
        offsets = [offset for offset in _sample_offsets(size, page_size) if offset]
        alike = sum(_is_btree_page(os.pread(descriptor, 8, offset), page_size) for offset in offsets)
        if alike >= 2 or (alike and len(offsets) <= 3):
            return (
                "overwritten-first-page",
                f"the header is gone, yet {alike} of {len(offsets)} pages looked at are SQLite's",
            )
    sampled = [os.pread(descriptor, 4096, offset) for offset in _sample_offsets(size, 4096)]
    if not any(any(page) for page in sampled):
        return "zeroed", f"{size} bytes, all {len(sampled)} pages looked at hold nothing but zeros"
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


def _siblings(real: str) -> tuple[str, ...]:
    """Names of the copies that Hermes left beside the store; none where the folder may not be listed."""
    folder, name = os.path.split(real)
    try:
        names = os.listdir(folder)
    except OSError:
        return ()
    marks = tuple(name + mark for mark in _SIBLING_MARKS)
    return tuple(sorted(entry for entry in names if entry.startswith(marks)))
