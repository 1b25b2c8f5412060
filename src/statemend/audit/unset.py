"""Rows of a session whose ``active`` is unset, and what each of them would have to be.

``compacted`` says it of an archived row. A row that lies before the last archived one would have been
archived with it, and a row behind the first that was taken back may have been taken back with it: both happen
to live rows only, so an unset one was passed over. Every other row is live.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from statemend.store.connection import Store

_NEIGHBOURS = """
    SELECT MAX(id) FILTER (WHERE active <> 1 AND compacted = 1),
           MIN(id) FILTER (WHERE active <> 1 AND compacted IS NOT 1)
    FROM messages
    WHERE session_id = ?
"""
_UNSET = """
    SELECT id, compacted = 1
    FROM messages
    WHERE session_id = ? AND active IS NULL
    ORDER BY id
"""
#: What a row gets that is inserted without a state; no row where the column is missing.
_DEFAULT = "SELECT dflt_value FROM pragma_table_info('messages', 'main') WHERE name = 'active'"


class Lost(StrEnum):
    """What the rows around an unset one say that it was."""

    LIVE = "live"
    ARCHIVED = "archived"
    BEFORE_COMPACTION = "before compaction"  # live or archived
    AFTER_REWIND = "after rewind"  # live or taken back


#: States that the rows alone do not decide.
DOUBTFUL = frozenset({Lost.BEFORE_COMPACTION, Lost.AFTER_REWIND})


class UnsetRow(NamedTuple):
    """One row whose ``active`` is unset."""

    id: int
    lost: Lost


def unset_rows(store: Store, session_id: str) -> Iterator[UnsetRow]:
    """The unset rows of a session by id, streamed."""
    neighbours = store.one(_NEIGHBOURS, (session_id,)) or (None, None)
    last_archived, first_rewound = neighbours
    for row_id, archived in store.rows(_UNSET, (session_id,)):
        if archived:
            lost = Lost.ARCHIVED
        elif last_archived is not None and row_id < last_archived:
            lost = Lost.BEFORE_COMPACTION
        elif first_rewound is not None and row_id > first_rewound:
            lost = Lost.AFTER_REWIND
        else:
            lost = Lost.LIVE
        yield UnsetRow(row_id, lost)


def has_default(store: Store) -> bool:
    """Whether a row that is inserted without a state gets one."""
    return store.value(_DEFAULT) is not None
