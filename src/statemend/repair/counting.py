"""The two counters that Hermes keeps in a session row, as its own code would hold them for these rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from statemend.store.connection import Store
from statemend.store.content import parse_json
from statemend.store.schema import Era

_CALLS = """
    SELECT CASE WHEN active = 1 THEN 'live' WHEN active IS NULL THEN 'unset'
                WHEN compacted = 1 THEN 'archived' ELSE 'rewound' END,
           tool_calls
    FROM messages
    WHERE session_id = ?
"""


class Counted(NamedTuple):
    """``messages`` and ``calls`` are what the counters are set to. ``most_calls`` is the largest number of
    tool calls that some release would lawfully hold: those of turns that were taken back included."""

    messages: int
    calls: int
    most_calls: int


def count(store: Store, session_id: str) -> Counted:
    """Count the rows of a session by the rule of the store's era.

    0.13 to 0.15 count every row, later releases the live ones; from 0.18 on a row whose state is unset
    becomes live when Hermes opens the store. Each entry of a row's tool calls counts.
    """
    return count_rows(store.schema.era, store.rows(_CALLS, (session_id,)))


def count_rows(era: Era, rows: Iterable[tuple[Any, ...]]) -> Counted:
    """Count rows, each given by its state and the cell of its tool calls."""
    counts_as_live = {"live", "unset"} if era >= Era.V18 else {"live"}
    messages = calls = most = 0
    for state, raw in rows:
        number = _length(raw)
        if state in counts_as_live:
            messages += 1
            calls += number
        if state != "archived":
            most += number
    return Counted(messages, calls, most)


def _length(raw: Any) -> int:
    """How many tool calls a cell holds, as Hermes counts them: the entries of a list, or one."""
    if not raw:
        return 0
    calls = parse_json(raw, None)
    if isinstance(calls, list):
        return len(calls)
    return 0 if calls is None else 1
