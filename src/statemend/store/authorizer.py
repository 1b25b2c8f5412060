"""What a connection for audit may do: read. Enforced inside SQLite, for every statement that it compiles."""

from __future__ import annotations

import apsw

_READING = frozenset({apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE})
#: Pragmas that tell a fact of the file. With an argument most of them would set it.
_FACTS = frozenset(
    {
        "application_id",
        "data_version",
        "encoding",
        "freelist_count",
        "page_count",
        "page_size",
        "schema_version",
        "user_version",
    }
)
#: Pragmas whose argument names what to look at. Unless it is asked of ``main``, the name finds the TEMP view
#: instead of the table, and ``quick_check`` then says ``ok`` of anything.
_QUESTIONS = frozenset(
    {
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_xinfo",
    }
)


def reading_only(
    action: int, first: str | None, second: str | None, database: str | None, origin: str | None
) -> int:
    """An authorizer that allows reading and denies the rest: https://sqlite.org/c3ref/set_authorizer.html"""
    if action == apsw.SQLITE_FUNCTION:
        allowed = (second or "").lower() != "load_extension"
    elif action == apsw.SQLITE_PRAGMA:
        name = (first or "").lower()
        allowed = (
            second is None
            if name in _FACTS
            else name in _QUESTIONS and (second is None or database == "main")
        )
    else:
        allowed = action in _READING
    return apsw.SQLITE_OK if allowed else apsw.SQLITE_DENY
