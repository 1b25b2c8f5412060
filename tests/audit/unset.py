"""Stores in which messages can lose their state, as in those whose column was added without its default."""

from __future__ import annotations

from tests.audit.builder import VERSIONS, HomeBuilder

#: Releases whose messages have a state, and those that archive in place.
WITH_STATE = [version for version in VERSIONS if version >= "0.16.0"]
WITH_ARCHIVE = [version for version in VERSIONS if version >= "0.18.2"]
#: Releases that give every row a state when they open the store.
HEALING = WITH_ARCHIVE


def loosen(home: HomeBuilder) -> HomeBuilder:
    """Let ``active`` be NULL, and give it no default."""
    strict, loose = "active INTEGER NOT NULL DEFAULT 1", "active INTEGER"
    home.sql(
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_schema SET sql = replace(sql, '{strict}', '{loose}') WHERE name = 'messages'",
        "PRAGMA writable_schema = OFF",
    )
    asked = "SELECT [notnull], dflt_value FROM pragma_table_info('messages') WHERE name = 'active'"
    (column,) = home.sql(asked)
    assert column == (0, None)
    return home
