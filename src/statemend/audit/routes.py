"""The ways by which the gateway finds the session of a chat, and those of them that lead to a session that is
gone.

Gone is a session of which neither the row nor a message is there: one whose messages remain is rebuilt, and
its ways are right again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from statemend.audit.context import Context
from statemend.audit.facts import words
from statemend.evidence.owed_replies import is_own_chat
from statemend.store.connection import Store

#: Whether neither a session ``{id}`` nor a message of it is there.
GONE = (
    "NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = {id}) "
    "AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = {id})"
)
_ROUTES = f"""
    SELECT r.session_id, r.scope, r.session_key
    FROM (
        SELECT scope, session_key, CASE WHEN json_valid(entry_json)
                                        THEN json_extract(entry_json, '$.session_id') END AS session_id
        FROM gateway_routing
    ) AS r
    WHERE typeof(r.session_id) = 'text'
      AND r.session_id <> ''
      AND {GONE.format(id="r.session_id")}
"""
_BINDINGS = f"""
    SELECT b.session_id, b.profile_name, b.chat_id, b.thread_id
    FROM telegram_dm_topic_bindings AS b
    WHERE typeof(b.session_id) = 'text'
      AND {GONE.format(id="b.session_id")}
"""
_LEADING = """
    SELECT CASE WHEN json_valid(entry_json) THEN json_extract(entry_json, '$.session_id') END, session_key
    FROM gateway_routing
    ORDER BY session_key
"""
_BINDING = """
    SELECT session_id, chat_id, thread_id FROM telegram_dm_topic_bindings ORDER BY chat_id, thread_id
"""
ROUTES, BINDINGS = "gateway_routing", "telegram_dm_topic_bindings"


class Way(NamedTuple):
    """One row that leads to a session that is gone. ``key`` holds the columns that name the row, in any
    release; ``name`` is what a person calls it."""

    table: str
    session_id: str
    name: str
    key: Mapping[str, Any]


def ways_to_nothing(context: Context) -> list[Way]:
    """Every route and topic binding of this store's own chats that leads to a session that is gone, by
    session. One that another store of the home has is not gone.

    The gateway of a home keeps the routes of all its profiles, whose sessions are in stores of their own: a
    route of another profile says nothing about this store.
    """
    return sorted((way for way in _ways(context) if not context.elsewhere(way.session_id)), key=_place)


def ways_elsewhere(context: Context) -> list[Way]:
    """Every route and topic binding of this store's own chats that leads to a session which this store lacks
    and another of the home has, by session."""
    return sorted((way for way in _ways(context) if context.elsewhere(way.session_id)), key=_place)


def _place(way: Way) -> tuple[str, ...]:
    return way.session_id, way.table, way.name, *map(str, way.key.values())


def _ways(context: Context) -> Iterator[Way]:
    for session_id, scope, key in context.store.rows(_ROUTES):
        name = words(key) or "a chat without a key"
        if is_own_chat(Path(context.home.root), name):
            yield Way(ROUTES, session_id, name, {"scope": scope, "session_key": key})
    for session_id, profile, chat, thread in context.store.rows(_BINDINGS):
        yield Way(
            BINDINGS,
            session_id,
            _topic(thread, chat),
            {"profile_name": profile, "chat_id": chat, "thread_id": thread},
        )


def led_to(store: Store) -> Mapping[str, tuple[str, ...]]:
    """The ways to each session, by what a person calls them. A store without the tables has none."""
    return store.fact("ways to sessions", lambda: _led_to(store))


def _led_to(store: Store) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for session_id, key in store.rows(_LEADING):
        if isinstance(session_id, str) and session_id:
            found.setdefault(session_id, []).append(f"the route of {words(key) or 'a chat without a key'}")
    for session_id, chat, thread in store.rows(_BINDING):
        if isinstance(session_id, str) and session_id:
            found.setdefault(session_id, []).append(_topic(thread, chat))
    return {session_id: tuple(names) for session_id, names in found.items()}


def _topic(thread: Any, chat: Any) -> str:
    return f"topic {words(thread, 40)} of chat {words(chat, 40)}"
