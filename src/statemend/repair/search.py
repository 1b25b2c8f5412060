"""Rebuilds a search index inside a repair's transaction, whichever way it keeps its text."""

from __future__ import annotations

import re

from statemend.repair.digests import quoted
from statemend.repair.statements import rebuilding
from statemend.store.connection import Store
from statemend.store.permissions import Allowed
from statemend.store.writing import RepairConnection

#: What an index that keeps a copy of its own holds for a message.
_TEXT = "COALESCE(m.content, '') || ' ' || COALESCE(m.tool_name, '') || ' ' || COALESCE(m.tool_calls, '')"
_INLINE_TRIGGER = re.compile(
    r"AFTER INSERT ON messages BEGIN INSERT INTO \w+\(rowid, content\) VALUES \( new\.id, "
    r"COALESCE\(new\.content, ''\) \|\| ' ' \|\| COALESCE\(new\.tool_name, ''\) \|\| ' ' \|\| "
    r"COALESCE\(new\.tool_calls, ''\) \); END$"
)
#: Hermes' index of Chinese, Japanese and Korean words. What splits its text is an extension of its own.
_FOREIGN = "messages_fts_cjk"
_TRIGGERS = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = 'messages'"


def rebuild(connection: RepairConnection, index: str) -> None:
    """Build the index anew from the rows.

    One that reads the messages table is rebuilt by SQLite. One that keeps a copy of its own text is first
    rebuilt from that copy, then brought in line with the messages: rows that it lacks are added, rows of
    messages that changed are written anew. Rows of messages that are gone stay: it may be the only copy of
    their text.
    """
    name = quoted(index)
    with connection.allowing({index: Allowed(insert=True, delete=True)}):
        connection.execute(rebuilding(index))
        if not keeps_text(connection.store, index):
            return
        stale = (
            f"SELECT m.id FROM main.messages AS m LEFT JOIN main.{name} AS f ON f.rowid = m.id "
            f"WHERE f.rowid IS NULL OR f.content IS NOT {_TEXT}"
        )
        for (message,) in list(connection.store.rows(stale)):
            connection.execute(f"DELETE FROM main.{name} WHERE rowid = ?", (message,))
            connection.execute(
                f"INSERT INTO main.{name}(rowid, content) "
                f"SELECT m.id, {_TEXT} FROM main.messages AS m WHERE m.id = ?",
                (message,),
            )


def keeps_text(store: Store, index: str) -> bool:
    """Whether the index keeps a copy of the text of every message, as the store's own trigger writes it."""
    return any(
        name == f"{index}_insert" and _INLINE_TRIGGER.search(" ".join(str(sql).split())) is not None
        for name, sql in store.rows(_TRIGGERS)
    )


def foreign_index(store: Store, event: str) -> str | None:
    """An index that a message cannot come (``insert``) or go (``delete``) without, and that only Hermes can
    write."""
    found = {str(name) for name, _ in store.rows(_TRIGGERS)}
    return _FOREIGN if f"{_FOREIGN}_{event}" in found else None


def only_searched(store: Store) -> bool:
    """Whether all that the store's triggers do is to keep such indexes. Then an update that leaves the text
    of a message alone needs none of them: they would take the text out and put the same text in again, and
    an index that another release of SQLite built may not let them."""
    owners = {
        f"{index}_{event}"
        for index in ("messages_fts", "messages_fts_trigram")
        for event in ("insert", "update", "delete")
        if keeps_text(store, index)
    }
    found = {str(name) for name, _ in store.rows(_TRIGGERS)}
    return bool(found) and found <= owners
