"""The only place that opens a store to change it, and only what was allowed can be changed.

Nothing persistent is set: the journal mode, the encoding, the versions in the header stay as they are. Until
``allow`` is called, the connection can only read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import apsw
import msgspec

from statemend.errors import Refused, StoreHeld, StoreUnreadable, Undetermined
from statemend.store.bundle import Bundle, fingerprint, inspect
from statemend.store.connection import Access, Bindings, Store, StoreFault
from statemend.store.holders import find_holders
from statemend.store.permissions import Allowed, Permissions, is_shadow
from statemend.store.schema import read_schema

_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
_BUSY_MILLISECONDS = 5000


class FileConnection(apsw.Connection):
    """A connection to a store with a descriptor of the same file, ``file``, to see the bytes themselves.

    To close any descriptor of a file drops the locks that SQLite holds on it for this process, so this one is
    opened before and closed after.
    """

    def __init__(self, path: str, uri: str) -> None:
        self.file = os.open(path, os.O_RDONLY)
        try:
            super().__init__(uri, flags=_FLAGS)
        except BaseException:
            os.close(self.file)
            raise

    def close(self, force: bool = False) -> None:
        """Close the connection, then the descriptor. A second time does nothing."""
        try:
            super().close(force)
        finally:
            file, self.file = self.file, -1
            if file >= 0:
                os.close(file)


class RepairConnection:
    """A store opened to be changed. ``store`` reads it as it is now, within a fence too. ``locked_seconds``
    is how long the last fence kept other writers waiting."""

    def __init__(self, connection: FileConnection, store: Store) -> None:
        self.path = store.path
        self.store = store
        self.asked_to_commit = False
        self.committed = False
        self.locked_seconds = 0.0
        self._connection = connection
        self._permissions = Permissions()
        connection.authorizer = self._permissions

    def allow(self, tables: Mapping[str, Allowed]) -> None:
        """Allow writing these tables so far, and nothing else, from the next statement on."""
        self._permissions.allow(tables)

    @contextmanager
    def allowing(self, tables: Mapping[str, Allowed]) -> Iterator[None]:
        """Allow these writes meanwhile, and afterwards what was allowed before."""
        before = self._permissions.allowed
        self._permissions.allow(tables)
        try:
            yield
        finally:
            self._permissions.allow(before)

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        return int(self.store.value("PRAGMA data_version"))

    def execute(self, sql: str, bindings: Bindings = ()) -> int:
        """Carry out one statement; the number of rows it changed itself (triggers not counted).

        Raises ``Refused`` for what was not allowed, and SQLite's own errors as they are.
        """
        before = self._connection.total_changes()
        try:
            with closing(self._connection.cursor()) as cursor:
                cursor.execute(sql, bindings)
        except apsw.AuthError as error:
            raise Refused(
                f"{self.path}: the plan does not list what it does: {self._permissions.denied}"
            ) from error
        return self._connection.changes() if self._connection.total_changes() != before else 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Have several reads see one state of the store: within a fence, that of the fence."""
        if self._connection.in_transaction:
            yield
            return
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._roll_back()

    @contextmanager
    def fence(self) -> Iterator[None]:
        """The one transaction in which the last check and the change happen. It holds the write lock from the
        first moment, commits at the end, and takes everything back on an error.

        Raises ``Refused`` when another process is writing.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except (apsw.BusyError, apsw.LockedError) as error:
            raise StoreHeld(f"{self.path}: another process is writing; stop it and run this again") from error
        begun = time.monotonic()
        try:
            yield
            self.asked_to_commit = True
            self._connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        finally:
            self.locked_seconds = time.monotonic() - begun
        self.committed = True

    @contextmanager
    def recording(self) -> Iterator[apsw.Session]:
        """Record every change of every table that has a primary key, search indexes left out: they are
        derived."""
        session = apsw.Session(self._connection, "main")
        session.table_filter(lambda name: not is_shadow(name) and not name.startswith("sqlite_"))
        session.attach()
        try:
            yield session
        finally:
            session.close()

    @contextmanager
    def without_triggers(self) -> Iterator[None]:
        """Carry out statements as if the store had no triggers."""
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        try:
            yield
        finally:
            self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)

    @property
    def raw(self) -> FileConnection:
        """The connection itself, to copy from or to apply a recorded change to. What it may do stays
        limited."""
        return self._connection

    def _roll_back(self) -> None:
        """Take the transaction back; SQLite has done it by itself after some errors. Where even that fails,
        closing leaves a hot journal, and the next to open the store takes the change back from it."""
        if self._connection.in_transaction:
            with suppress(apsw.Error):
                self._connection.execute("ROLLBACK")


@contextmanager
def open_for_repair(
    path: Path, *, foreign_keys: bool = True, known_as: str | None = None
) -> Iterator[RepairConnection]:
    """Open the store at ``path`` to change it. Errors name it by ``known_as``, where it is a copy of that.

    ``foreign_keys`` is off only to restore a state that already broke them. Raises ``UsageError`` where there
    is no store, ``StoreHeld`` when another process has it open for writing, ``StoreFault`` and
    ``StoreUnreadable`` when it cannot be read, ``Refused`` when it may not be written.
    """
    bundle = inspect(path)
    if bundle.fault is not None:
        raise StoreFault(bundle)
    holders = find_holders(bundle)
    if holders:
        named = ", ".join(map(str, holders))
        raise StoreHeld(f"{bundle.path}: held by {named}; stop it and run this again")
    bundle = msgspec.structs.replace(bundle, path=known_as or bundle.path)
    taken = fingerprint(bundle)
    with closing(connect(bundle)) as connection:
        try:
            if connection.readonly("main"):
                raise Refused(f"{bundle.path}: may not be written by this user; run statemend as its owner")
            connection.pragma("synchronous", 3)
            connection.pragma("foreign_keys", foreign_keys)
            schema = read_schema(connection)
        except apsw.ReadOnlyError as error:
            raise Refused(f"{bundle.path}: may not be written here ({error})") from error
        except apsw.Error as error:
            raise unreadable(bundle.path, error) from error
        except StoreUnreadable as error:
            raise StoreUnreadable(f"{bundle.path}: {error}") from error
        store = Store(
            connection, bundle=bundle, schema=schema, access=Access.ORIGINAL, holders=(), taken=taken
        )
        opened = RepairConnection(connection, store)
        yield opened
        if opened.committed:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


def connect(bundle: Bundle) -> FileConnection:
    """Open a store for reading and writing as Hermes would, trusting nothing in it.

    A ``-wal`` with content is left as it is when the connection closes, so that looking changes no file.
    """
    uri = f"file://{quote(bytes(Path(bundle.main.path).absolute()))}?mode=rw"
    try:
        connection = FileConnection(bundle.main.path, uri)
    except OSError as error:
        raise Undetermined(f"{bundle.path}: cannot be read ({error.strerror})") from error
    except apsw.Error as error:
        raise unreadable(bundle.path, error) from error
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(bundle.wal_content))
    return connection


def unreadable(path: str, error: apsw.Error) -> StoreUnreadable | Undetermined | StoreHeld:
    """The error to raise for one that SQLite gives while a store is looked at."""
    said = " ".join(str(error).split())[:300]
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreHeld(f"{path}: another process is writing; stop it and run this again")
    if isinstance(error, apsw.FullError | apsw.IOError | apsw.CantOpenError):
        return Undetermined(f"{path}: cannot be opened for repair here ({said})")
    return StoreUnreadable(f"{path}: SQLite cannot read it: {said}")
