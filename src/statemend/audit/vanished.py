"""Whether rows are missing from the time just after a session ended."""

from __future__ import annotations

from bisect import bisect_left

from statemend.audit.context import Context
from statemend.audit.facts import is_time
from statemend.audit.holes import GAPS, gaps, highest_ever
from statemend.store.lineage import Node

#: A continuation stores its first rows within this time (seconds): at the latest when the turn ends.
FIRST_ROWS_WITHIN = 3600.0

#: When the rows were written that were stored just before those of a session, as the latest of them says.
STORED_BEFORE = """
    SELECT MAX(timestamp)
    FROM (
        SELECT timestamp
        FROM messages
        WHERE id < (SELECT MIN(id) FROM messages WHERE session_id = ?)
        ORDER BY id DESC
        LIMIT 1000
    )
    WHERE timestamp BETWEEN 0 AND 4.2e9
"""
LAST_ROW = "SELECT MAX(id) FROM messages WHERE session_id = ?"
LATER_ROWS = "SELECT timestamp FROM messages WHERE id > ? AND id <= ? ORDER BY id"
#: The last row of a session before those of another, and the first of these.
AROUND = """
    SELECT (SELECT MAX(m.id) FROM messages AS m WHERE m.session_id = ? AND m.id < began.id), began.id
    FROM (SELECT MIN(id) AS id FROM messages WHERE session_id = ?) AS began
"""
WRITTEN = "SELECT timestamp FROM messages WHERE id = ?"
#: What a rule that uses this module reads.
READS = (STORED_BEFORE, LAST_ROW, GAPS, LATER_ROWS, AROUND, WRITTEN)


def rows_vanished(context: Context, node: Node) -> bool:
    """Whether row ids are missing from the stretch in which a continuation would have put its first rows, or
    that stretch is not in this store, since the session was brought in later."""
    last = context.store.value(LAST_ROW, (node.id,))
    if last is None:
        return True
    if brought_in_later(context, node):
        return True
    found = gaps(context.store)
    gap, *_ = found[bisect_left(found, (last,))]
    highest = highest_ever(context.store)
    if gap == found[-1][0] and (highest is None or highest <= gap):
        return False
    between = context.store.rows(LATER_ROWS, (last, gap))
    end = _first_rows_until(node)
    return not any(is_time(at) and at > end for (at,) in between)


def row_missing_between(context: Context, first: int, last: int) -> bool:
    """Whether the id of a row that is gone lies between two that are there."""
    found = gaps(context.store)
    return found[bisect_left(found, (first,))][0] < last


def one_may_have_stood_between(context: Context, before: str, after: str) -> bool:
    """Whether rows are gone from between those of two sessions, as the rows of a third would be."""
    last, first = context.store.one(AROUND, (before, after)) or (None, None)
    return last is not None and first is not None and row_missing_between(context, last, first)


def has_all_since_it_began(context: Context, session: Node, parent: str) -> bool:
    """Whether the first row of a session is the first that it ever had: its parent's last one before that is
    from before the session began, and no row is gone from between."""
    last, first = context.store.one(AROUND, (parent, session.id)) or (None, None)
    if last is None or first is None or not is_time(session.started_at):
        return False
    written = context.store.value(WRITTEN, (last,))
    return (
        is_time(written) and written <= session.started_at and not row_missing_between(context, last, first)
    )


def brought_in_later(context: Context, node: Node) -> bool:
    """Whether a session was stored after rows that are younger than that stretch: an import or a repair did
    that, and what followed the session elsewhere leaves no trace here."""
    before = context.store.value(STORED_BEFORE, (node.id,))
    return is_time(before) and is_time(node.ended_at) and before > _first_rows_until(node)


def _first_rows_until(node: Node) -> float:
    """When a continuation of a session has stored its first rows at the latest."""
    return node.ended_at + FIRST_ROWS_WITHIN if is_time(node.ended_at) else 0.0
