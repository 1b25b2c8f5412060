"""Whether rows are missing from the time just after a session ended."""

from __future__ import annotations

from statemend.audit.context import Context
from statemend.audit.facts import is_time
from statemend.store.lineage import Node

#: A continuation stores its first rows within this time (seconds): at the latest when the turn ends.
FIRST_ROWS_WITHIN = 3600.0

LAST_ROW = "SELECT MAX(id) FROM messages WHERE session_id = ?"
LATER_ROWS = "SELECT id, timestamp FROM messages WHERE id > ? ORDER BY id"
HIGHEST_EVER = "SELECT seq FROM sqlite_sequence WHERE name = 'messages'"
#: What a rule that uses this module reads.
READS = (LAST_ROW, LATER_ROWS)


def rows_vanished(context: Context, node: Node) -> bool:
    """Whether row ids are missing from the stretch in which a continuation would have put its first rows."""
    last = context.store.value(LAST_ROW, (node.id,))
    if last is None:
        return True
    end = node.ended_at + FIRST_ROWS_WITHIN if is_time(node.ended_at) else 0.0
    previous = last
    for row_id, at in context.store.rows(LATER_ROWS, (last,)):
        if row_id != previous + 1:
            return True
        if is_time(at) and at > end:
            return False
        previous = row_id
    highest = context.store.value(HIGHEST_EVER) if context.store.schema.has("sqlite_sequence") else None
    return isinstance(highest, int) and highest > previous
