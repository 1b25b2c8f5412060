"""A copy of a store as of one moment, proven equal to it before anything relies on it."""

from __future__ import annotations

import hashlib
import re
from contextlib import closing
from pathlib import Path

import apsw
import msgspec

from statemend.errors import Refused, StoreUnreadable, Undetermined
from statemend.store import durable
from statemend.store.bundle import fingerprint, inspect
from statemend.store.connection import Access, Store, StoreFault, open_for_audit
from statemend.store.identity import store_digest
from statemend.store.schema import CATALOGUE, read_schema
from statemend.store.writing import connect, unreadable

#: What the check says of cells that the schema forbids: the pages are sound.
_VALUE = re.compile(r"^(?:NULL|TEXT|NUMERIC|numeric|non-\S+) value in |^CHECK constraint failed in ")


class Snapshot(msgspec.Struct, frozen=True):
    """A snapshot that was verified. ``sha256`` and ``size`` (bytes) are of the file, ``digest`` is
    ``identity.store_digest`` of its rows, the same as the source's, ``page_count`` its pages."""

    path: str
    sha256: str
    size: int
    digest: str
    page_count: int


def take(source: Path, target: Path) -> Snapshot:
    """Copy the store at ``source`` to the new file ``target``; see ``take_from``. Raises ``UsageError`` where
    there is no store, ``StoreFault`` for one that must not be opened."""
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


def take_from(connection: apsw.Connection, store: Store, target: Path) -> Snapshot:
    """Copy the store that ``connection`` has open, and ``store`` reads, to the new file ``target``.

    The copy comes through SQLite's backup API. It is readable by this user alone, on the disk with its name,
    and proven: every canonical table passes ``quick_check``, and the rows have the digest that those of the
    source had in the same read transaction.

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
        connection.execute("BEGIN")
        try:
            digest = store_digest(store)
            _copy(connection, target)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        durable.sync_file(target)
        durable.sync_folder(target.parent)
        return _verified(target, digest)
    except BaseException as error:
        for suffix in ("", "-journal", "-wal", "-shm"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise Undetermined(f"{target}: the snapshot cannot be written ({error.strerror})") from error
        if isinstance(error, apsw.Error):
            raise unreadable(str(target), error) from error
        raise


def _copy(connection: apsw.Connection, target: Path) -> None:
    with closing(apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)) as copy:
        copy.pragma("synchronous", 2)
        backup = copy.backup("main", connection, "main")
        try:
            backup.step(-1)
            backup.finish()
        finally:
            backup.close(True)  # says nothing a second time


def _verified(target: Path, expected: str) -> Snapshot:
    """The facts of the copy, once everything about it was checked."""
    with open_for_audit(target) as copy:
        for table in CATALOGUE:
            if copy.schema.has(table):
                lines = [str(line) for (line,) in copy.rows(f"PRAGMA main.quick_check('{table}')")]
                broken = [line for line in lines if line != "ok" and not _VALUE.search(line)]
                if broken:
                    raise StoreUnreadable(
                        f"{target}: the table {table} is damaged ({broken[0][:200]}); salvage the store first"
                    )
        digest = store_digest(copy)
        pages = int(copy.value("PRAGMA page_count"))
    if digest != expected:
        raise StoreUnreadable(
            f"{target}: the snapshot's rows are not those of the store; nothing was changed"
        )
    with open(target, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.seek(0, 2)
    return Snapshot(path=str(target), sha256=sha256, size=size, digest=digest, page_count=pages)
