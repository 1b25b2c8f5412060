"""The only place that opens a store, and never in a way that leaves a trace beside it.

A plain read-only open of a store in WAL mode creates ``-wal`` and ``-shm`` and leaves them behind. So the
original is opened ``immutable`` when no sidecar holds anything, a private copy is opened when one does, and a
store that a live process holds is refused, or copied through SQLite's backup API on request.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import apsw

from statemend.errors import StatemendError, StoreHeld, StoreUnreadable, Undetermined
from statemend.store.authorizer import reading_only
from statemend.store.bundle import Bundle, Fingerprint, fingerprint, inspect
from statemend.store.copies import copy_store, private_folder, require_space
from statemend.store.holders import Holder, find_holders
from statemend.store.question import Relation, Shape, asking
from statemend.store.schema import (
    NO_TABLES,
    STORE_TABLES,
    Schema,
    install_views,
    read_schema,
    text_codec,
)

Row = tuple[Any, ...]
T = TypeVar("T")
Bindings = Sequence[Any] | Mapping[str, Any]

_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_READ_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
_CACHE_KIB = 32 * 1024
#: The longest cell that is read, in bytes. It bounds the memory that one row takes.
_LONGEST_CELL = 256 * 1024 * 1024
_LONGEST_ERROR = 300
_BUSY_MILLISECONDS = 5000
#: What a caller got wrong. Everything else that apsw raises is about the store.
_MISUSE = (apsw.AuthError, apsw.BindingsError, apsw.MisuseError, apsw.ThreadingViolationError)


class Access(StrEnum):
    """How the bytes that are read came about."""

    ORIGINAL = "original, immutable"
    COPY = "private copy"
    BACKUP = "live copy"


class StoreFault(StoreUnreadable):
    """The bytes of a store show that it must not be opened. ``bundle`` has the facts."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(f"{bundle.path}: {bundle.detail} ({bundle.fault})")
        self.bundle = bundle


class Store:
    """A store opened for reading. A query sees the canonical tables and columns of every release, by name."""

    def __init__(
        self,
        connection: apsw.Connection,
        *,
        bundle: Bundle,
        schema: Schema,
        access: Access,
        holders: tuple[Holder, ...],
        taken: Fingerprint,
    ) -> None:
        self.path = bundle.path
        self.bundle = bundle
        self.schema = schema
        self.access = access
        self.holders = holders
        self.sqlite_version = apsw.sqlite_lib_version()
        self._connection = connection
        self._taken = taken
        self._facts: dict[Hashable, Any] = {}

    def rows(self, sql: str, bindings: Bindings = (), *, exact: bool = False) -> Generator[Row, None, None]:
        """The rows of a query, as they are read. Blobs come as bytes.

        Text that is not valid in the store's encoding comes with the odd bytes as ``\\xff`` escapes, never as
        an error, and if it shall be ``exact``, with the odd bytes as lone surrogates, which no valid text
        holds; a binding that no text of a store can equal (a file may name such a session) equals none.
        Raises ``StoreUnreadable`` where a page is damaged, a cell is too long, or reading fails.
        """
        count = 0
        bindings = _encodable(bindings)
        cursor = self._connection.cursor()
        try:
            for row in cursor.execute(sql, bindings):
                count += 1
                yield row
        except UnicodeDecodeError as error:
            if sql.lstrip()[:6].upper() == "PRAGMA":
                raise StoreUnreadable(f"{self.path}: a name in it is not valid text") from error
            width, odd = self._width(cursor, error), "surrogateescape" if exact else "backslashreplace"
            yield from self._rows_as_bytes(sql, bindings, width=width, skip=count, odd=odd)
        except apsw.Error as error:
            raise _unreadable(self.path, error) from error
        finally:
            cursor.close()

    def one(self, sql: str, bindings: Bindings = ()) -> Row | None:
        """The first row of a query, or ``None``."""
        with closing(self.rows(sql, bindings)) as rows:
            return next(rows, None)

    def value(self, sql: str, bindings: Bindings = ()) -> Any:
        """The first column of a query's first row; ``None`` also where there is no row."""
        row = self.one(sql, bindings)
        return None if row is None else row[0]

    @contextmanager
    def asking(self, sql: str, *, relations: Mapping[str, Relation], seconds: float) -> Iterator[Shape]:
        """Within the block ``rows`` may be asked ``sql``, a question that somebody else wrote: it sees the
        canonical tables and ``relations``, and is stopped after ``seconds``.

        Raises ``UsageError`` for a question that may not be asked, ``Undetermined`` when it was stopped.
        """
        real = self.schema.tables
        try:
            with asking(self._connection, sql, relations=relations, real=real, seconds=seconds) as shape:
                yield shape
        except apsw.Error as error:
            raise _unreadable(self.path, error) from error

    def fact(self, name: Hashable, compute: Callable[[], T]) -> T:
        """What ``compute`` says of the store's layout, which stays while it is open, asked for once."""
        if name not in self._facts:
            self._facts[name] = compute()
        found: T = self._facts[name]
        return found

    def unchanged(self) -> bool:
        """Whether the original is still as it was before opening. If not, nothing read can be trusted."""
        try:
            return fingerprint(self.bundle) == self._taken
        except StatemendError:
            return False

    def table_exists(self, table: str) -> bool:
        """Whether the store itself has the table."""
        return self.schema.has(table)

    def has_column(self, table: str, column: str) -> bool:
        """Whether the store itself has the column."""
        return self.schema.has(table, column)

    def _width(self, cursor: apsw.Cursor, cause: UnicodeDecodeError) -> int:
        """How many columns the query has that ``cursor`` could not decode a row of."""
        try:
            return len(cursor.get_description())
        except (UnicodeDecodeError, apsw.Error):
            raise StoreUnreadable(f"{self.path}: a name in it is not valid text") from cause

    def _rows_as_bytes(
        self, sql: str, bindings: Bindings, *, width: int, skip: int, odd: str
    ) -> Generator[Row, None, None]:
        """The rows after the first ``skip``, with each text taken as bytes and decoded here; ``odd`` is what
        Python shall do about bytes that are no text.

        A query that orders its rows keeps that order inside the wrapper, so ``skip`` counts the same rows.
        """
        codec = text_codec(self._connection)
        names = [f"c{number}" for number in range(width)]
        cells = ", ".join(
            f"typeof({name}) = 'text', iif(typeof({name}) = 'text', CAST({name} AS BLOB), {name})"
            for name in names
        )
        inner = sql.strip().rstrip(";")
        wrapped = f"WITH q({', '.join(names)}) AS ({inner}\n) SELECT {cells} FROM q LIMIT -1 OFFSET {skip}"
        try:
            with closing(self._connection.cursor()) as cursor:
                for row in cursor.execute(wrapped, bindings):
                    yield tuple(
                        value.decode(codec, odd) if is_text else value
                        for is_text, value in zip(row[::2], row[1::2], strict=True)
                    )
        except apsw.Error as error:
            raise _unreadable(self.path, error) from error


@contextmanager
def open_for_audit(
    path: Path,
    *,
    live: bool = False,
    without_wal: bool = False,
    cache_kib: int = _CACHE_KIB,
    expected: frozenset[str] = STORE_TABLES,
) -> Iterator[Store]:
    """Open the store at ``path`` for reading, without a trace in its folder.

    ``live`` takes a copy of a store that is in use. ``without_wal`` shows the main file alone, as if there
    were no write-ahead log: what a log of another store hides. ``cache_kib`` bounds what SQLite keeps of it
    in memory. A database with none of the ``expected`` tables is not read. Raises ``UsageError`` where there
    is no store, ``StoreHeld`` when a process has it open and ``live`` is false, ``StoreUnreadable`` when its
    bytes or SQLite say that it cannot be read (``StoreFault`` for the bytes).
    """
    with ExitStack() as stack:
        bundle = inspect(path)
        holders = find_holders(bundle)
        if holders and not live:
            named = ", ".join(map(str, holders))
            raise StoreHeld(f"{bundle.path}: held by {named}; stop it, or audit a live copy with --live")
        if bundle.fault is not None:
            raise StoreFault(bundle)
        taken = fingerprint(bundle)
        if without_wal:
            access, source = Access.ORIGINAL, Path(bundle.main.path)
        else:
            access, source = _choose(bundle, holders, stack)
        try:
            connection = _connect(source, immutable=access is Access.ORIGINAL)
            stack.callback(connection.close)
            schema = _prepare(connection, cache_kib, expected)
        except apsw.Error as error:
            raise _unreadable(bundle.path, error) from error
        except StoreUnreadable as error:
            raise StoreUnreadable(f"{bundle.path}: {error}") from error
        yield Store(connection, bundle=bundle, schema=schema, access=access, holders=holders, taken=taken)


def compile_question(sql: str, *, relations: Mapping[str, Relation], seconds: float) -> Shape:
    """What a question is like, found without a store. Raises as ``Store.asking`` does."""
    with closing(apsw.Connection(":memory:")) as connection:
        install_views(connection, NO_TABLES)
        with asking(connection, sql, relations=relations, seconds=seconds) as shape:
            return shape


def _choose(bundle: Bundle, holders: tuple[Holder, ...], stack: ExitStack) -> tuple[Access, Path]:
    """How to get at the content, and the file to open for it."""
    if holders:
        return Access.BACKUP, _live_copy(bundle, stack.enter_context(private_folder()))
    if bundle.wal_content or bundle.hot_journal:
        return Access.COPY, copy_store(bundle, stack.enter_context(private_folder()))
    return Access.ORIGINAL, Path(bundle.main.path)


def _live_copy(bundle: Bundle, folder: Path) -> Path:
    """Copy a store that is in use, as of one moment, into ``folder``.

    With ``readonly_shm`` SQLite reads through the holder's sidecars and creates or changes none. Where they
    are not there, or cannot be used so, the files are copied and watched meanwhile.
    """
    in_wal_mode = bundle.header is not None and bundle.header.journal == "wal"
    if in_wal_mode and (bundle.wal is None or bundle.shm is None):
        return copy_store(bundle, folder)
    require_space(folder, bundle.main.size + (bundle.wal.size if bundle.wal else 0))
    target = folder / "state.db"
    try:
        with (
            closing(_connect_to_held(bundle)) as source,
            closing(apsw.Connection(str(target))) as copy,
            copy.backup("main", source, "main") as backup,
        ):
            backup.step(-1)
    except (apsw.ReadOnlyError, apsw.CantOpenError):
        return copy_store(bundle, folder)
    except apsw.Error as error:
        raise _unreadable(bundle.path, error) from error
    return target


def _connect_to_held(bundle: Bundle) -> apsw.Connection:
    connection = apsw.Connection(_uri(Path(bundle.main.path), "mode=ro&readonly_shm=1"), flags=_READ_ONLY)
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    return connection


def _uri(path: Path, parameters: str) -> str:
    return f"file://{quote(bytes(path.absolute()))}?{parameters}"


def _connect(path: Path, *, immutable: bool) -> apsw.Connection:
    """Open a file that stands still: the original as immutable, or a private copy that SQLite may recover."""
    if immutable:
        return apsw.Connection(_uri(path, "immutable=1"), flags=_READ_ONLY)
    connection = apsw.Connection(_uri(path, "mode=rw"), flags=_READ_WRITE)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.pragma("locking_mode", "exclusive")
    return connection


def _prepare(connection: apsw.Connection, cache_kib: int, expected: frozenset[str]) -> Schema:
    """Distrust the file, install the views, then forbid everything but reading."""
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)  # those of the file; TEMP views stay enabled
    # Otherwise a partial index makes SQLite plan a keyed query anew for each value bound to it.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, _LONGEST_CELL)
    connection.pragma("cell_size_check", True)
    connection.pragma("cache_size", -cache_kib)
    schema = read_schema(connection, expected)
    install_views(connection, schema)
    connection.pragma("query_only", True)
    connection.authorizer = reading_only
    return schema


def _encodable(bindings: Bindings) -> Bindings:
    """The bindings with each text that holds a lone surrogate as a blob, for SQLite takes no such text."""
    if isinstance(bindings, Mapping):
        return {name: _as_blob(value) for name, value in bindings.items()}
    return tuple(map(_as_blob, bindings))


def _as_blob(value: Any) -> Any:
    if not isinstance(value, str) or value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def _unreadable(path: str, error: apsw.Error) -> StatemendError:
    """The error to raise for one of SQLite's. A mistake of the caller is raised as it is."""
    if isinstance(error, _MISUSE):
        raise error
    if isinstance(error, apsw.TooBigError):
        return StoreUnreadable(f"{path}: a cell is longer than {_LONGEST_CELL >> 20} MiB")
    if isinstance(error, apsw.FullError):
        return Undetermined(f"{path}: no room for temporary files ({error}); set TMPDIR to a roomier folder")
    said = " ".join(str(error).split())[:_LONGEST_ERROR]  # it may quote the schema, which may hold anything
    return StoreUnreadable(f"{path}: SQLite cannot read it: {said}")
