"""What a store's rows were and are, as digests that can be compared across a change, a crash and an undo."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Set
from functools import lru_cache

import apsw

from statemend.errors import Refused, StoreUnreadable
from statemend.repair.cells import SqlValue, row_digest
from statemend.store.connection import Store
from statemend.store.identity import SESSION_COLUMN, Content, codec_of, content
from statemend.store.permissions import SEARCH_INDEXES, Allowed
from statemend.store.records import table_columns
from statemend.store.schema import CATALOGUE
from statemend.store.writing import RepairConnection

__all__ = [
    "SESSION_COLUMN",
    "Broken",
    "Content",
    "broken_references",
    "content",
    "digest_of",
    "indexes_of",
    "persistent",
    "primary_key",
    "quoted",
    "row_of",
    "search_health",
    "search_indexes",
    "sequence",
]

_CONTENT = re.compile(r"\bcontent\s*=\s*['\"]?(\w+)", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_MISMATCH = re.compile(r'foreign key mismatch - "(.*)" referencing "(.*)"', re.DOTALL)


def row_of(store: Store, table: str, key: Mapping[str, SqlValue]) -> dict[str, SqlValue] | None:
    """The row of ``main.TABLE`` with this key: every stored column, exactly. ``None`` where there is none.

    Text that is not valid in the store's encoding keeps its bytes as lone surrogates.
    """
    columns = table_columns(store, table)
    codec = codec_of(store)
    row = store.one(_selecting(table, columns, tuple(key)), tuple(key.values()))
    if row is None:
        return None
    return {
        name: value.decode(codec, "surrogateescape") if kind == "text" else value
        for name, kind, value in zip(columns, row[::2], row[1::2], strict=True)
    }


@lru_cache(maxsize=256)
def _selecting(table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
    """Reads one row, each text as its bytes beside its type."""
    cells = ", ".join(
        f"typeof({name}), iif(typeof({name}) = 'text', CAST({name} AS BLOB), {name})"
        for name in map(quoted, columns)
    )
    condition = " AND ".join(f"{quoted(name)} IS ?" for name in key)
    return f"SELECT {cells} FROM main.{quoted(table)} WHERE {condition}"


def digest_of(store: Store, table: str, key: Mapping[str, SqlValue]) -> str | None:
    """The digest of a row, ``None`` where there is none."""
    row = row_of(store, table, key)
    return None if row is None else row_digest(row)


def primary_key(store: Store, table: str) -> tuple[str, ...]:
    """The columns of a table's primary key, in its order."""
    named = "SELECT name FROM pragma_table_info(?, 'main') WHERE pk > 0 ORDER BY pk"
    return store.fact(("key", table), lambda: tuple(name for (name,) in store.rows(named, (table,))))


def sequence(store: Store) -> dict[str, int]:
    """The highest id that each table with ``AUTOINCREMENT`` ever gave; empty where none has."""
    if "sqlite_sequence" not in store.schema.tables:
        return {}
    # What is no number there counts as SQLite counts it.
    rows = store.rows("SELECT name, MAX(CAST(seq AS INTEGER)) FROM main.sqlite_sequence GROUP BY name")
    return {str(name): seq for name, seq in rows if seq is not None}


#: One broken reference: table, row id (``None`` in a table without), table referred to, number of the key.
Broken = tuple[str, int | None, str, int]


def broken_references(store: Store) -> Counter[Broken]:
    """Every row that names a row which is not there. Raises ``Refused`` for a table with a foreign key that
    names no unique column: SQLite then checks none, and changes no row that such a key may name."""
    try:
        return Counter(
            (str(table), rowid, str(parent), int(number))
            for table, rowid, parent, number in store.rows("PRAGMA main.foreign_key_check")
        )
    except StoreUnreadable as error:
        wrong = _MISMATCH.search(str(error))
        if wrong is None:
            raise
        raise Refused(
            f"{store.path}: the table {wrong[1]!r} has a foreign key to {wrong[2]!r} that names no unique "
            "column there, so no reference can be checked; copy the store, then mend or drop that table and "
            "plan again"
        ) from error


def search_indexes(store: Store) -> tuple[str, ...]:
    """The search indexes that the store has."""
    listed = "SELECT 1 FROM main.sqlite_schema WHERE name = ? AND rootpage = 0"
    return tuple(name for name in SEARCH_INDEXES if store.one(listed, (name,)) is not None)


def indexes_of(store: Store, tables: Set[str]) -> tuple[str, ...]:
    """The search indexes whose content hangs on rows of these tables: those that read them, directly or by a
    view, and those that a trigger of them writes."""
    return tuple(name for name in search_indexes(store) if tables & _concern(store, name))


def _concern(store: Store, index: str) -> set[str]:
    """The tables whose rows an index hangs on."""
    named = "SELECT sql FROM main.sqlite_schema WHERE name = ? COLLATE NOCASE"
    source = _CONTENT.search(str(store.value(named, (index,))))
    waiting, read = [] if source is None else [source[1]], set[str]()
    while waiting:
        name = waiting.pop().lower()
        if name not in read:
            read.add(name)
            if name not in CATALOGUE:  # a view, or a word of it
                waiting += _WORD.findall(str(store.value(named, (name,)) or ""))
    triggers = store.rows("SELECT tbl_name, sql FROM main.sqlite_schema WHERE type = 'trigger'")
    written = {str(table).lower() for table, sql in triggers if index in _WORD.findall(str(sql).lower())}
    return (read & CATALOGUE.keys()) | written


def search_health(connection: RepairConnection, indexes: Collection[str] | None = None) -> dict[str, str]:
    """What SQLite says of each search index, or of those named: ``ok``, or its error. One with a tokenizer
    that this SQLite lacks is not damaged, and not told about."""
    found = {}
    for name in search_indexes(connection.store):
        if indexes is not None and name not in indexes:
            continue
        try:
            with connection.allowing({name: Allowed(insert=True)}):
                connection.execute(f"INSERT INTO main.{name}({name}, rank) VALUES ('integrity-check', 1)")
        except apsw.CorruptError as error:
            found[name] = str(error)
        except apsw.SQLError:
            continue
        else:
            found[name] = "ok"
    return found


def persistent(store: Store) -> dict[str, str]:
    """The settings that the file keeps, none of which a repair may change."""
    names = ("application_id", "encoding", "page_size", "schema_version", "user_version")
    return {name: str(store.value(f"PRAGMA main.{name}")) for name in names}


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
