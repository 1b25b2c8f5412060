"""Which canonical tables and columns a store really has, and the views that hide the difference.

``schema_version`` is not a description of the columns, so they are asked for by name. On opening, TEMP views
named like the tables shadow them and project every canonical column, with its default where the store lacks
it: one query serves every release. SQLite flattens such views, so indexes still work.
"""

from __future__ import annotations

import re
from enum import IntEnum, StrEnum

import apsw
import msgspec

from statemend.errors import StoreUnreadable
from statemend.store.catalogue import CATALOGUE, Column

__all__ = [
    "CATALOGUE",
    "NO_TABLES",
    "Era",
    "FtsLayout",
    "Schema",
    "install_views",
    "read_schema",
    "text_codec",
]


class Era(IntEnum):
    """The behaviour of Hermes that a store's columns allow. Told from columns that exist, never from a
    number."""

    V13 = 13  # every row is live
    V16 = 16  # rows can be rewound (``active``)
    V18 = 18  # rows can be archived in place (``compacted``)
    V20 = 20  # system prompts by hash, rows with a display kind
    V22 = 22  # rows carry their display order


class FtsLayout(StrEnum):
    """How the search index keeps its text."""

    NONE = "none"
    INLINE = "inline"  # a copy of its own: a place where text survives
    EXTERNAL = "external"  # reads the messages table


class Schema(msgspec.Struct, frozen=True):
    """What a store has. ``version`` is the number it claims, or ``None``. ``tables`` are its real tables (no
    views, no virtual tables), in lower case; ``columns`` lists the stored columns of the canonical ones."""

    version: int | None
    tables: frozenset[str]
    columns: dict[str, frozenset[str]]
    fts_layout: FtsLayout
    era: Era

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether the store itself has ``table``, or that stored column of it. Always false for a column of
        a table that is not in the catalogue."""
        if column is None:
            return table in self.tables
        return column in self.columns.get(table, frozenset())


#: That of a store without a table.
NO_TABLES = Schema(version=None, tables=frozenset(), columns={}, fts_layout=FtsLayout.NONE, era=Era.V13)


#: What tells a store of Hermes from other databases.
STORE_TABLES = frozenset({"sessions", "messages"})


def read_schema(connection: apsw.Connection, expected: frozenset[str] = STORE_TABLES) -> Schema:
    """Ask the main database for its tables and columns.

    Raises ``StoreUnreadable`` when it has none of the ``expected`` tables. Errors of SQLite pass through.
    """
    tables = _names(
        connection,
        "SELECT CAST(name AS BLOB) FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0",
    )
    if not tables & expected:
        raise StoreUnreadable(f"not a store of Hermes: {_whose(tables)}")
    columns = {
        name: _names(connection, "SELECT CAST(name AS BLOB) FROM pragma_table_info(?, 'main')", (name,))
        for name in CATALOGUE
        if name in tables
    }
    return Schema(
        version=_version(connection, columns),
        tables=tables,
        columns=columns,
        fts_layout=_fts_layout(connection),
        era=_era(columns),
    )


def install_views(connection: apsw.Connection, schema: Schema) -> None:
    """Create one TEMP view for each canonical table. A table that the store lacks gets an empty one."""
    for table in CATALOGUE.values():
        connection.execute(_view_sql(table.name, schema.columns.get(table.name)))


def text_codec(connection: apsw.Connection) -> str:
    """The name of the main database's text encoding for Python."""
    return {"UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}.get(connection.pragma("encoding"), "utf-8")


def _names(connection: apsw.Connection, sql: str, bindings: tuple[str, ...] = ()) -> frozenset[str]:
    """The names that a query gives as bytes, in lower case: a name may be no valid text."""
    codec = text_codec(connection)
    return frozenset(
        bytes(name).decode(codec, "backslashreplace").lower() for (name,) in connection.execute(sql, bindings)
    )


def _whose(tables: frozenset[str]) -> str:
    if not tables:
        return "the database holds no tables"
    named = ", ".join(repr(name[:40]) for name in sorted(tables)[:5])
    return f"a database of another program, with the tables {named}" + (" …" if len(tables) > 5 else "")


def _version(connection: apsw.Connection, columns: dict[str, frozenset[str]]) -> int | None:
    if "version" not in columns.get("schema_version", frozenset()):
        return None
    row = connection.execute(
        "SELECT version FROM main.schema_version WHERE typeof(version) = 'integer' "
        "ORDER BY version DESC LIMIT 1"
    ).fetchone()
    return int(row[0]) if row else None


def _fts_layout(connection: apsw.Connection) -> FtsLayout:
    row = connection.execute(
        "SELECT CAST(substr(sql, 1, 4096) AS BLOB) FROM main.sqlite_schema "
        "WHERE name = 'messages_fts' AND rootpage = 0"
    ).fetchone()
    if row is None:
        return FtsLayout.NONE
    sql = bytes(row[0] or b"").decode(text_codec(connection), "replace")
    return FtsLayout.EXTERNAL if re.search(r"[(,]\s*content\s*=", sql) else FtsLayout.INLINE


def _era(columns: dict[str, frozenset[str]]) -> Era:
    messages = columns.get("messages", frozenset())
    if "display_order" in messages:
        return Era.V22
    if "display_kind" in messages or "system_prompts" in columns:
        return Era.V20
    if "compacted" in messages:
        return Era.V18
    if "active" in messages:
        return Era.V16
    return Era.V13


def _view_sql(name: str, existing: frozenset[str] | None) -> str:
    """The statement that creates the view of one table of which ``existing`` columns are there (``None``: no
    table). It is put together as text, for the names are those of the catalogue, and every start needs it."""
    columns = ", ".join(_projected(column, existing or frozenset()) for column in CATALOGUE[name].columns)
    rows = "WHERE FALSE" if existing is None else f'FROM main."{name}"'
    return f'CREATE VIEW temp."{name}" AS SELECT {columns} {rows}'


def _projected(column: Column, existing: frozenset[str]) -> str:
    if column.name in existing:
        return f'"{column.name}"'
    return f'CAST({column.default or "NULL"} AS {column.type}) AS "{column.name}"'
