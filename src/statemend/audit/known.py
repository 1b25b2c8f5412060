"""Whether the store has anything of a session."""

from __future__ import annotations

from statemend.audit.context import Context

KNOWN = """
SELECT 1 FROM sessions WHERE id = ?
UNION ALL
SELECT 1 FROM messages WHERE session_id = ?
LIMIT 1
"""


def is_known(context: Context, session_id: str) -> bool:
    """Whether the store has the session's row, or a message of it."""
    return context.store.one(KNOWN, (session_id, session_id)) is not None
