"""The rows of one session, counted and digested, and what in other tables hangs on it."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager

import msgspec

from statemend.repair.cleanup_plan import Rows
from statemend.repair.digests import primary_key, quoted
from statemend.store.connection import Store
from statemend.store.history import census
from statemend.store.records import table_columns
from statemend.store.schema import install_views
from statemend.store.writing import RepairConnection

_PACK = msgspec.msgpack.Encoder()
_REFERENCES = """
    SELECT m.name, f."from", lower(f."table"), COALESCE(f."to", 'id'), upper(f.on_delete)
    FROM main.sqlite_schema AS m JOIN pragma_foreign_key_list(m.name, 'main') AS f
    WHERE m.type = 'table' AND lower(f."table") IN ('sessions', 'messages')
"""
_OWN = {("sessions", "parent_session_id"), ("messages", "session_id")}


class Reference(msgspec.Struct, frozen=True):
    """A column of another table that names sessions, or messages by their ``target``, a column of ``parent``.
    Its rows go with a session where it ``cascades``."""

    table: str
    column: str
    parent: str
    target: str
    cascades: bool


@contextmanager
def with_views(connection: RepairConnection) -> Iterator[Store]:
    """The store of a repair connection, with the TEMP views that let it be read as an audit reads it. They
    live in this connection alone; statements that change anything name ``main``."""
    raw = connection.raw
    permissions = raw.authorizer
    raw.authorizer = None
    try:
        install_views(raw, connection.store.schema)
    finally:
        raw.authorizer = permissions
    yield connection.store


def rows_of(store: Store, session_id: str) -> Rows:
    """The message rows of a session by state."""
    counted = next(iter(census(store, session_id)), None)
    if counted is None:
        return Rows()
    ends = store.one("SELECT MIN(id), MAX(id) FROM main.messages WHERE session_id = ?", (session_id,))
    first, last = ends or (None, None)
    return Rows(
        live=counted.live,
        archived=counted.archived,
        rewound=counted.rewound,
        unset=counted.unset,
        first_id=first,
        last_id=last,
    )


def digest_of(store: Store, session_id: str) -> tuple[str, int]:
    """sha256 (hex) of every stored column of a session's row and of its messages in the order of their ids,
    with types, and the bytes that they hold."""
    digest = hashlib.sha256()
    size = 0
    for table, condition in (("sessions", "id = ?"), ("messages", "session_id = ? ORDER BY id")):
        columns = table_columns(store, table)
        digest.update(_PACK.encode([table, columns]))
        listed = ", ".join(
            f"typeof({name}), iif(typeof({name}) = 'text', CAST({name} AS BLOB), {name})"
            for name in map(quoted, columns)
        )
        for row in store.rows(f"SELECT {listed} FROM main.{table} WHERE {condition}", (session_id,)):
            digest.update(hashlib.sha256(_PACK.encode(row)).digest())
            size += sum(len(cell) if isinstance(cell, bytes) else 8 for cell in row[1::2])
    return digest.hexdigest(), size


def references(store: Store) -> tuple[Reference, ...]:
    """The columns of other tables that name a session or a message, as the store declares them."""
    return tuple(
        Reference(table, column, parent, target, action == "CASCADE" and parent == "sessions")
        for table, column, parent, target, action in store.rows(_REFERENCES)
        if (table, column) not in _OWN
    )


def named_by(store: Store, reference: Reference, session_id: str) -> int:
    """How many rows of the other table name the session, or a message of it."""
    sql = f"SELECT COUNT(*) FROM main.{quoted(reference.table)} WHERE {_naming(reference)}"
    return int(store.value(sql, (session_id,)))


def can_be_undone(store: Store, reference: Reference, session_id: str) -> bool:
    """Whether the rows that name the session can be recorded: only those with a whole primary key are."""
    key = primary_key(store, reference.table)
    empty = " OR ".join(f"{quoted(name)} IS NULL" for name in key)
    sql = f"SELECT 1 FROM main.{quoted(reference.table)} WHERE {_naming(reference)} AND ({empty})"
    return bool(key) and store.one(sql, (session_id,)) is None


def _naming(reference: Reference) -> str:
    if reference.parent == "sessions":
        return f"{quoted(reference.column)} = ?"
    named = f"SELECT {quoted(reference.target)} FROM main.messages WHERE session_id = ?"
    return f"{quoted(reference.column)} IN ({named})"


def holds_nul(store: Store, session_id: str) -> bool:
    """Whether a text of the session holds a NUL."""
    with closing(rows_with_nul(store, session_id)) as found:
        return next(found, None) is not None


def rows_with_nul(store: Store, session_id: str) -> Generator[int, None, None]:
    """The ids of the messages of a session of which a text holds a NUL."""
    cells = " OR ".join(
        f"instr(CAST({name} AS BLOB), x'00') > 0" for name in ("content", "tool_name", "tool_calls")
    )
    sql = f"SELECT id FROM main.messages WHERE session_id = ? AND ({cells})"
    for (row_id,) in store.rows(sql, (session_id,)):
        yield row_id
