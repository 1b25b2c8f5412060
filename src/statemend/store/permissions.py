"""What a connection for repair may do: read, and write what it was given. Enforced inside SQLite, for every
statement that it compiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import apsw
import msgspec

from statemend.store.authorizer import reading_only

Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]

#: Columns that triggers of a store derive from the other columns of ``messages``.
DERIVED = frozenset({"display_identity", "display_order", "message_uid"})
#: The search indexes that Hermes keeps over ``messages``.
SEARCH_INDEXES = ("messages_fts", "messages_fts_trigram")
#: What the names of Hermes' own triggers begin with.
_HERMES = "messages_"
_SHADOW = re.compile(r"(messages_fts(?:_[a-z0-9]+)?)_(data|idx|content|docsize|config)")
_WRITES = {
    apsw.SQLITE_INSERT: "insert into",
    apsw.SQLITE_DELETE: "delete from",
    apsw.SQLITE_UPDATE: "update",
}
#: ``sqlite3changeset_apply`` sets this for the transaction it runs in; it is no setting of the file.
_DEFERS = "defer_foreign_keys"


class Allowed(msgspec.Struct, frozen=True):
    """What may be written to one table: the columns that may be updated, whether rows may be added or
    removed."""

    columns: frozenset[str] = frozenset()
    insert: bool = False
    delete: bool = False


class Permissions:
    """The writes that a connection may do now; none until ``allow``. ``denied`` names the last thing that was
    refused, for the message.

    Triggers of Hermes may do what they are there for: keep the search indexes and the derived columns. Any
    other trigger may write nothing.
    The tables in which a search index keeps its pages are written by SQLite itself; that a statement cannot
    write them is what ``SQLITE_DBCONFIG_DEFENSIVE`` is for.
    """

    def __init__(self) -> None:
        self.denied = ""
        self.allowed: Mapping[str, Allowed] = {}

    def allow(self, tables: Mapping[str, Allowed]) -> None:
        """Allow these writes, and no other."""
        self.allowed = {name.lower(): allowed for name, allowed in tables.items()}

    def __call__(
        self, action: int, first: str | None, second: str | None, database: str | None, origin: str | None
    ) -> int:
        """See https://sqlite.org/c3ref/set_authorizer.html"""
        if self._may(action, first, second, database, origin):
            return apsw.SQLITE_OK
        what = _WRITES.get(action) or apsw.mapping_authorizer_function.get(action, action)
        self.denied = " ".join(str(part) for part in (what, first, second) if part)
        return apsw.SQLITE_DENY

    def _may(
        self, action: int, first: str | None, second: str | None, database: str | None, origin: str | None
    ) -> bool:
        if action in (apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT):
            return True
        if action == apsw.SQLITE_PRAGMA and (first or "").lower() == _DEFERS:
            return True
        if action not in _WRITES:
            return reading_only(action, first, second, database, origin) == apsw.SQLITE_OK
        if database != "main" or first is None:
            return False
        table, column = first.lower(), (second or "").lower()
        if _SHADOW.fullmatch(table):
            return origin is None
        if (origin or "").startswith(_HERMES) and (
            table in SEARCH_INDEXES
            or (action == apsw.SQLITE_UPDATE and table == "messages" and column in DERIVED)
        ):
            return True
        allowed = self.allowed.get(table)
        if allowed is None or origin is not None:
            return False
        if action == apsw.SQLITE_UPDATE:
            return column in allowed.columns
        return allowed.insert if action == apsw.SQLITE_INSERT else allowed.delete


def is_shadow(table: str) -> bool:
    """Whether ``table`` is one in which a search index keeps its pages."""
    return _SHADOW.fullmatch(table.lower()) is not None


def everything(columns: Mapping[str, Iterable[str]]) -> dict[str, Allowed]:
    """Every kind of write to these tables and columns: what applying a recorded change needs."""
    return {
        table: Allowed(columns=frozenset(map(str.lower, names)), insert=True, delete=True)
        for table, names in columns.items()
    }
