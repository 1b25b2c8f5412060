"""Whether a store has anything of a session."""

from __future__ import annotations

from statemend.store.connection import Store

KNOWN = """
SELECT 1 FROM sessions WHERE id = ?
UNION ALL
SELECT 1 FROM messages WHERE session_id = ?
LIMIT 1
"""


def is_known(store: Store, session_id: str) -> bool:
    """Whether the store has the session's row, or a message of it."""
    return store.one(KNOWN, (session_id, session_id)) is not None
