"""Conversations whose archived rows multiplied, row by row as a release leaves them."""

from __future__ import annotations

from tests.audit.builder import START, HomeBuilder


def compacted(
    home: HomeBuilder, session_id: str, *, messages: int, times: int, **session: object
) -> list[int]:
    """A session of which all live rows are archived and written again ``times`` times, as pruning old tool
    results does. Returns the ids of its rows."""
    home.session(session_id, message_count=messages, **session)
    columns = sorted(home.columns("messages") - {"id", "active", "compacted", "display_order"})
    for number in range(messages):
        home.message(
            session_id,
            ("user", "assistant")[number % 2],
            f"message {number} of {session_id}, with words to find " + "x" * 80,
            timestamp=START + number,
            display_identity=f"{session_id} {number}".encode(),
        )
    listed = ", ".join(columns)
    for _ in range(times):
        home.sql(
            f"CREATE TEMP TABLE live AS SELECT {listed} FROM messages "
            f"WHERE session_id = '{session_id}' AND active = 1 ORDER BY id",
            f"UPDATE messages SET active = 0, compacted = 1 WHERE session_id = '{session_id}' AND active = 1",
            f"INSERT INTO messages ({listed}, active, compacted) SELECT {listed}, 1, 0 FROM live",
            "DROP TABLE live",
        )
    return [
        row for (row,) in home.sql(f"SELECT id FROM messages WHERE session_id = '{session_id}' ORDER BY id")
    ]
