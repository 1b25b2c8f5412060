"""Texts that an old search index kept of messages whose rows are gone.

Up to 0.19 the index had a copy of every text, under the id of its row. Where rows were deleted without the
index (its triggers dropped, a release between two layouts, another tool), the copy stayed. It has the words
of a message, its tool's name and its calls in one text, and neither role, nor time, nor session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from statemend.errors import StoreUnreadable

if TYPE_CHECKING:
    from statemend.store.connection import Store

#: The index's own tables, and those that 0.22 puts aside to empty them bit by bit. Their names are bounded,
#: so they may stand in a statement.
_INDEXES = re.compile(r"(?:fts_v22_trash_)?messages_fts(?:_trigram)?_content")
_LAYOUT = "SELECT name FROM pragma_table_info(?, 'main')"
_KEPT = {"id", "c0"}


class IndexText(NamedTuple):
    """The text of a message whose row is gone, and the id that the row had."""

    row_id: int
    text: str


def leftover_texts(store: Store) -> Iterator[IndexText]:
    """Every such text once, by table and row id. Raises ``StoreUnreadable``."""
    earlier: list[str] = []
    for table in _tables(store):
        sql = f"SELECT id, c0 FROM main.{table} WHERE id IN ({_gone(table, earlier)}) ORDER BY id"
        for row_id, text in store.rows(sql):
            if isinstance(text, str):
                yield IndexText(row_id, text)
        earlier.append(table)


def leftover_places(store: Store) -> Iterator[tuple[int, str]]:
    """The id that each such row had, and the table that keeps its text. Raises ``StoreUnreadable``."""
    earlier: list[str] = []
    for table in _tables(store):
        yield from ((row_id, table) for (row_id,) in store.rows(_gone(table, earlier)))
        earlier.append(table)


def text_at(store: Store, row_id: int, table: str) -> str | None:
    """The text that one of the tables keeps under the id of a row. Raises ``StoreUnreadable``."""
    text = store.value(f"SELECT c0 FROM main.{table} WHERE id = ?", (row_id,))
    return text if isinstance(text, str) else None


def count_leftovers(store: Store) -> int:
    """How many there are. Raises ``StoreUnreadable``."""
    earlier: list[str] = []
    total = 0
    for table in _tables(store):
        total += store.value(f"SELECT COUNT(*) FROM ({_gone(table, earlier)})")
        earlier.append(table)
    return total


def _gone(table: str, earlier: list[str]) -> str:
    """A query for the ids in one table that no message and no earlier table has."""
    others = [*earlier, "messages"]
    return f"SELECT id FROM main.{table}" + "".join(f" EXCEPT SELECT id FROM main.{name}" for name in others)


def _tables(store: Store) -> list[str]:
    """The tables with texts, those of the whole words first."""
    if not store.schema.has("messages"):
        raise StoreUnreadable(f"{store.path}: it has no messages to compare its search index with")
    named = sorted(name for name in store.schema.tables if _INDEXES.fullmatch(name))
    return sorted(
        (name for name in named if {column for (column,) in store.rows(_LAYOUT, (name,))} >= _KEPT),
        key=lambda name: "trigram" in name,
    )
