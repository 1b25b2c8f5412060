"""One question that somebody else wrote, asked of a store: what it may read, and how long it may take.

The statement is compiled under an authorizer that knows the tables and the functions that a question may
use, and that notes every column it reads. What SQLite says there is the truth, whatever a parser made of the
text. While it runs, a clock and the size of its temporary files stop it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Final, NamedTuple

import apsw

from statemend.errors import StatemendError, StoreUnreadable, Undetermined, UsageError
from statemend.store.catalogue import CATALOGUE

#: Table functions that take a value apart.
TAKING_APART: Final = frozenset({"json_each", "json_tree"})

#: What a question may call. Nothing here makes a long value out of a short one, looks outside, or tells two
#: runs apart.
FUNCTIONS: Final = frozenset(
    name
    for line in (
        "-> ->> abs avg ceil ceiling coalesce concat concat_ws count cume_dist current_date current_time",
        "current_timestamp date datetime dense_rank first_value floor glob group_concat if ifnull iif instr",
        "json_array_length json_extract json_type json_valid julianday lag last_value lead length like",
        "likelihood likely lower ltrim max median min mod nth_value ntile nullif octet_length percent_rank",
        "rank round row_number rtrim sign strftime string_agg substr substring sum time timediff total trim",
        "trunc typeof unixepoch unlikely upper",
    )
    for name in line.split()
)

#: The longest value, and the longest LIKE pattern (bytes), while a question is asked: one comparison may take
#: as long as their product.
_LIMITS: Mapping[int, int] = {
    apsw.SQLITE_LIMIT_LENGTH: 32 * 1024 * 1024,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    apsw.SQLITE_LIMIT_COLUMN: 200,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 200,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 50,
}
#: Bytes that a question may keep in temporary files.
_LARGEST_SPILL = 1024 * 1024 * 1024
#: Instructions between two looks at the clock. Each may take milliseconds when values are long.
_STEPS = 250
#: Seconds between two looks at the temporary files.
_BETWEEN_LOOKS = 0.1
_OPEN_FILES = "/proc/self/fd"
#: How the system marks a file without a name, as those that SQLite makes for a statement are.
_NAMELESS = " (deleted)"
#: How tables begin that are no part of a store, and tell of the file or of SQLite.
_INTERNAL = ("sqlite_", "pragma_", "dbstat")
_PROGRESS = "statemend-question"
_LONGEST_REASON = 200


class Relation(NamedTuple):
    """A table that only the question sees. ``columns`` are names with their types."""

    columns: Mapping[str, str]
    rows: Sequence[Sequence[Any]]


class Origin(NamedTuple):
    """A column of the answer. ``table`` and ``column`` say which column it is, unchanged; ``None`` where it
    was computed."""

    name: str
    table: str | None
    column: str | None


class Shape(NamedTuple):
    """What a compiled question is like: the columns of its answer, the columns (table, column) that it reads
    anywhere, and the names that it wants bound."""

    columns: tuple[Origin, ...]
    reads: frozenset[tuple[str, str]]
    bindings: tuple[str, ...]


@contextmanager
def asking(
    connection: apsw.Connection,
    sql: str,
    *,
    relations: Mapping[str, Relation],
    real: frozenset[str] = frozenset(),
    seconds: float,
) -> Iterator[Shape]:
    """Compile ``sql`` and let it run within the block, where ``relations`` are tables too.

    ``real`` are the tables of the store itself, whose names are no table functions. Raises ``UsageError`` for
    a statement that may not be asked, ``Undetermined`` when it was stopped or failed; no cell is quoted.
    """
    clock = _Clock(seconds)
    authorizer, limits = connection.authorizer, {limit: connection.limit(limit) for limit in _LIMITS}
    with _created(connection, relations):
        watch = _Watch(relations.keys(), TAKING_APART - real)
        connection.authorizer = watch
        connection.set_progress_handler(clock, _STEPS, id=_PROGRESS)
        try:
            for limit, most in _LIMITS.items():
                connection.limit(limit, min(most, limits[limit]))
            yield _compiled(connection, sql, watch)
        except (StatemendError, apsw.InterruptError) as error:
            if clock.stopped:
                raise Undetermined(clock.stopped) from error
            if isinstance(error.__cause__, apsw.TooBigError):
                most = _LIMITS[apsw.SQLITE_LIMIT_LENGTH] >> 20
                raise Undetermined(f"a value longer than {most} MiB; ask for less") from error
            if isinstance(error, StoreUnreadable) and isinstance(error.__cause__, apsw.SQLError):
                said = str(error.__cause__).partition(":")[0]  # what comes then may quote a cell
                raise Undetermined(f"no answer: {said}; mend the query") from error
            raise
        finally:
            connection.set_progress_handler(None, id=_PROGRESS)
            for limit, most in limits.items():
                connection.limit(limit, most)
            connection.authorizer = authorizer


class _Clock:
    """Says when a statement has to stop, and then ``stopped`` says why."""

    def __init__(self, seconds: float) -> None:
        self.stopped = ""
        self._seconds = seconds
        self._begun = self._looked = time.monotonic()
        self._spilled = _spilled()

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self._begun > self._seconds:
            self.stopped = f"no answer after {self._seconds:g} seconds; ask for less, or allow more seconds"
        elif now - self._looked > _BETWEEN_LOOKS:
            self._looked = now
            if _spilled() - self._spilled > _LARGEST_SPILL:
                self.stopped = (
                    f"it takes more than {_LARGEST_SPILL >> 20} MiB of temporary files; ask for less"
                )
        return bool(self.stopped)


def _spilled() -> int:
    """Bytes in files without a name that this process has open. Zero where the system does not say; then the
    clock alone is the bound."""
    total = 0
    with suppress(OSError):
        for entry in os.scandir(_OPEN_FILES):
            with suppress(OSError):  # closed meanwhile
                if os.readlink(entry.path).endswith(_NAMELESS):
                    total += os.stat(entry.path).st_size
    return total


class _Watch:
    """An authorizer that allows one question, and notes what it reads or what was refused."""

    def __init__(self, relations: Iterable[str], functions: frozenset[str]) -> None:
        self.reads: set[tuple[str, str]] = set()
        self.refused: str | None = None
        self._shown = {*CATALOGUE, *relations}
        self._functions = functions

    def __call__(
        self, action: int, first: str | None, second: str | None, database: str | None, origin: str | None
    ) -> int:
        if self._allowed(action, first or "", second or "", database, origin):
            return apsw.SQLITE_OK
        self.refused = self.refused or _named(action, first, second)
        return apsw.SQLITE_DENY

    def _allowed(
        self, action: int, first: str, second: str, database: str | None, origin: str | None
    ) -> bool:
        if action == apsw.SQLITE_READ:
            table = first.lower()
            if not second:  # rows are counted, and no column is read
                return not table.startswith(_INTERNAL)
            if database == "temp" and table in self._shown:
                self.reads.add((table, second.lower()))
                return True
            if database == "main" and table in self._functions:
                return True
            return database == "main" and table in CATALOGUE and (origin or "").lower() == table
        if action == apsw.SQLITE_FUNCTION:
            return second.lower() in FUNCTIONS
        if action == apsw.SQLITE_PRAGMA:
            return first.lower() == "encoding" and not second  # to decode text that is none
        return action in (apsw.SQLITE_SELECT, apsw.SQLITE_RECURSIVE)


def _named(action: int, first: str | None, second: str | None) -> str:
    if action == apsw.SQLITE_READ:
        return f"the table {first!r}"
    if action == apsw.SQLITE_FUNCTION:
        return f"the function {second}()"
    return "anything but a SELECT"


@contextmanager
def _created(connection: apsw.Connection, relations: Mapping[str, Relation]) -> Iterator[None]:
    """Temporary tables with the relations, for as long as the block lasts. They shadow tables of the same
    name, and nothing of them reaches the store."""
    try:
        with _writable(connection):
            for name, relation in relations.items():
                columns = ", ".join(f'"{column}" {kind}' for column, kind in relation.columns.items())
                marks = ", ".join("?" for _ in relation.columns)
                connection.execute(f'CREATE TEMP TABLE "{name}" ({columns})')
                connection.executemany(f'INSERT INTO temp."{name}" VALUES ({marks})', relation.rows)
        yield
    finally:
        with _writable(connection):
            for name in relations:
                connection.execute(f'DROP TABLE IF EXISTS temp."{name}"')


@contextmanager
def _writable(connection: apsw.Connection) -> Iterator[None]:
    """Temporary tables can be made within the block."""
    authorizer = connection.authorizer
    connection.authorizer = None
    try:
        query_only = connection.pragma("query_only")
        connection.pragma("query_only", False)
        yield
        connection.pragma("query_only", query_only)
    finally:
        connection.authorizer = authorizer


def _compiled(connection: apsw.Connection, sql: str, watch: _Watch) -> Shape:
    """Compile the statement without a step of it."""
    found: list[tuple[str, Shape]] = []

    def note(cursor: apsw.Cursor, statement: str, _: object) -> bool:
        origins = tuple(
            Origin(name, table if database in ("main", "temp") else None, column)
            for name, _, database, table, column in cursor.description_full
        )
        names = cursor.bindings_names
        found.append((statement, Shape(origins, frozenset(watch.reads), tuple(map(str, names)))))
        return False

    with closing(connection.cursor()) as cursor:
        cursor.exec_trace = note
        try:
            cursor.execute(sql, _Anything(), can_cache=False)
        except apsw.ExecTraceAbort:
            pass
        except apsw.BindingsError as error:
            raise UsageError("a value without a name; write :name for an input") from error
        except (apsw.SQLError, apsw.AuthError, apsw.TooBigError) as error:
            raise UsageError(_reason(error, watch)) from error
    if not found:
        raise UsageError("no statement; write one SELECT")
    ((statement, shape),) = found
    if sql.strip()[len(statement.strip()) :].strip("; \t\r\n"):
        raise UsageError("more than one statement; a check asks one question")
    return shape


class _Anything(dict[str, None]):
    """Bindings that have every name: a statement is compiled before its values are known."""

    def __missing__(self, key: str) -> None:
        return None


def _reason(error: apsw.Error, watch: _Watch) -> str:
    if isinstance(error, apsw.AuthError) or watch.refused:
        return f"a check may not use {watch.refused or 'this'}"
    return " ".join(str(error).split())[:_LONGEST_REASON]
