"""Which sessions have rows that a rule should look at, asked for several rules in one pass over the messages.

To visit a row costs more than to judge it. So a rule that would visit every row says what makes a session
worth its look, as an aggregate over the rows of the session: its sign. Nearly all sessions show none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statemend.store.connection import Store


def suspects(store: Store, signs: Mapping[str, str]) -> dict[str, tuple[Any, ...]]:
    """For the name of each sign the ids of the sessions that show it, in the order of the index."""
    columns = ", ".join(f"{sign} AS sign{place}" for place, sign in enumerate(signs.values()))
    any_sign = " OR ".join(f"sign{place}" for place in range(len(signs)))
    sql = f"SELECT session_id, {columns} FROM messages GROUP BY session_id HAVING {any_sign}"
    found: dict[str, list[Any]] = {name: [] for name in signs}
    for session_id, *shown in store.rows(sql):
        for sessions, shows in zip(found.values(), shown, strict=True):
            if shows:
                sessions.append(session_id)
    return {name: tuple(sessions) for name, sessions in found.items()}
