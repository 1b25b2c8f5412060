"""A copy of a store as of one moment, proven equal to it before anything relies on it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from statemend.errors import Refused, StoreUnreadable, Undetermined
from statemend.store import durable
from statemend.store.bundle import fingerprint, inspect
from statemend.store.connection import Access, Store, StoreFault, open_for_audit
from statemend.store.identity import Content, content
from statemend.store.schema import CATALOGUE, read_schema
from statemend.store.writing import FileConnection, connect, unreadable

#: What the check says of cells that the schema forbids: the pages are sound.
_VALUE = re.compile(r"^(?:NULL|TEXT|NUMERIC|numeric|non-\S+) value in |^CHECK constraint failed in ")

_CACHED_PAGES = 16
_CHUNK = 1 << 20
#: The page at this offset is never used, and no backup copies it: https://sqlite.org/fileformat2.html, 1.4.
_LOCK_PAGE = 1 << 30
#: The header of the file but for the counter of its changes, that of its schema's, and the last writer.
_COMPARED_OF_HEADER = ((0, 24), (28, 40), (44, 92))


class Snapshot(msgspec.Struct, frozen=True):
    """A snapshot that was verified. ``sha256`` and ``size`` (bytes) are of the file, ``digest`` is
    ``identity.store_digest`` of its rows, the same as the source's, ``page_count`` its pages."""

    path: str
    sha256: str
    size: int
    digest: str
    page_count: int


class Taken(NamedTuple):
    """A snapshot, and the digests of all that is in it."""

    snapshot: Snapshot
    content: Content


def take(source: Path, target: Path) -> Snapshot:
    """Copy the store at ``source`` to the new file ``target``; see ``take_with_content``. Raises
    ``UsageError`` where there is no store, ``StoreFault`` for one that must not be opened."""
    bundle = inspect(source)
    if bundle.fault is not None:
        raise StoreFault(bundle)
    taken = fingerprint(bundle)
    with closing(connect(bundle)) as connection:
        try:
            schema = read_schema(connection)
        except apsw.Error as error:
            raise unreadable(bundle.path, error) from error
        store = Store(
            connection, bundle=bundle, schema=schema, access=Access.ORIGINAL, holders=(), taken=taken
        )
        return take_from(connection, store, target)


def take_from(connection: FileConnection, store: Store, target: Path) -> Snapshot:
    """The snapshot alone of ``take_with_content``."""
    return take_with_content(connection, store, target).snapshot


def take_with_content(connection: FileConnection, store: Store, target: Path) -> Taken:
    """Copy the store that ``connection`` has open, and ``store`` reads, to the new file ``target``.

    The copy is readable by this user alone, on the disk with its name, and proven: read back from the disk,
    every byte is the store's as it was in one read transaction, and every canonical table passes
    ``quick_check``. That transaction keeps every other process from writing to the file meanwhile. Where a
    write-ahead log holds a part of the store, its bytes lie in no one file: the copy comes through SQLite's
    backup API, and the rows are compared by digest instead.

    Raises ``Refused`` when ``target`` is there already, ``StoreUnreadable`` when the source or the copy is
    damaged, ``Undetermined`` when it cannot be written. Only a file that it made itself is ever removed.
    """
    try:
        durable.create(target)
    except FileExistsError as error:
        raise Refused(f"{target}: is there already; a snapshot never replaces a file") from error
    except OSError as error:
        raise Undetermined(f"{target}: no snapshot can be made here ({error.strerror})") from error
    try:
        connection.execute("BEGIN; SELECT 1 FROM main.sqlite_schema")
        try:
            found = content(store)
            write_copy(connection, store, target)
            durable.sync_file(target)
            durable.sync_folder(target.parent)
            durable.forget(target)
            sha256 = _prove(connection, store, target, found)
            pages = int(store.value("PRAGMA page_count"))
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        _check_sound(target)
        return Taken(Snapshot(str(target), sha256, target.stat().st_size, found.digest, pages), found)
    except BaseException as error:
        for suffix in ("", "-journal", "-wal", "-shm"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise Undetermined(f"{target}: the snapshot cannot be written ({error.strerror})") from error
        if isinstance(error, apsw.Error):
            raise unreadable(str(target), error) from error
        raise


def write_copy(connection: FileConnection, store: Store, target: Path) -> None:
    """Copy what ``connection`` has open, and reads in a transaction, into the empty file ``target``. The
    caller has it put on the disk."""
    if _has_log(store):
        _back_up(connection, target)
        return
    size = int(store.value("PRAGMA page_size")) * int(store.value("PRAGMA page_count"))
    durable.fill(target, _chunks(connection.file, size))


def _chunks(file: int, size: int) -> Iterator[bytes]:
    """The first ``size`` bytes of a file, or all where there are less: the proof tells."""
    offset = 0
    while data := os.pread(file, min(size - offset, _CHUNK), offset):
        yield data
        offset += len(data)


def _back_up(connection: apsw.Connection, target: Path) -> None:
    """The same through the backup API. It needs no journal, since a copy that does not become whole is
    removed."""
    with closing(apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)) as copy:
        copy.pragma("journal_mode", "off")
        copy.pragma("synchronous", 0)
        copy.pragma("locking_mode", "exclusive")
        copy.pragma("cache_size", _CACHED_PAGES)
        backup = copy.backup("main", connection, "main")
        try:
            backup.step(-1)
            backup.finish()
        finally:
            backup.close(True)  # says nothing a second time


def _has_log(store: Store) -> bool:
    """Whether a write-ahead log holds a part of the store."""
    log = Path(store.bundle.main.path + "-wal")
    return log.exists() and log.stat().st_size > 0


def _prove(connection: FileConnection, store: Store, target: Path, found: Content) -> str:
    """The sha256 of the copy, which is the store. Raises ``StoreUnreadable`` when it is not."""
    if _has_log(store):
        with open_for_audit(target) as copy:
            same = content(copy).digest == found.digest
        with open(target, "rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    else:
        same, sha256 = _same_bytes(connection.file, store, target)
    if not same:
        raise StoreUnreadable(f"{target}: the snapshot is not the store; nothing was changed")
    return sha256


def _same_bytes(source: int, store: Store, target: Path) -> tuple[bool, str]:
    """Whether the copy has the bytes of the store, but for what SQLite notes in the header of a file that it
    wrote, and its sha256."""
    sha256 = hashlib.sha256()
    page_size = int(store.value("PRAGMA page_size"))
    same = target.stat().st_size == page_size * int(store.value("PRAGMA page_count"))
    with open(target, "rb") as copy:
        while data := copy.read(_CHUNK):
            offset = copy.tell() - len(data)
            sha256.update(data)
            one, other = data, os.pread(source, len(data), offset)
            if offset == 0:
                one, other = _without_notes(one), _without_notes(other)
            elif offset == _LOCK_PAGE:
                one, other = one[page_size:], other[page_size:]
            same = same and one == other
    return same, sha256.hexdigest()


def _without_notes(chunk: bytes) -> bytes:
    return b"".join(chunk[begin:end] for begin, end in _COMPARED_OF_HEADER) + chunk[100:]


def _check_sound(target: Path) -> None:
    """Raise ``StoreUnreadable`` for a copy of damage."""
    with open_for_audit(target) as copy:
        for table in CATALOGUE:
            if copy.schema.has(table):
                lines = [str(line) for (line,) in copy.rows(f"PRAGMA main.quick_check('{table}')")]
                broken = [line for line in lines if line != "ok" and not _VALUE.search(line)]
                if broken:
                    raise StoreUnreadable(
                        f"{target}: the table {table} is damaged ({broken[0][:200]}); salvage the store first"
                    )
