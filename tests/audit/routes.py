"""Routes, topic bindings and what else points at a session, as the releases keep them."""

from __future__ import annotations

import json

from tests.audit.builder import START, VERSIONS, HomeBuilder

#: Releases that keep their routes in the store.
ROUTING = [version for version in VERSIONS if version >= "0.18.2"]
#: Those that begin a new session by themselves when the one they are led to is gone.
HEALING = [version for version in ROUTING if version >= "0.22.0"]
KEY = "agent:main:telegram:dm:42"


def route(home: HomeBuilder, session_id: str, key: str = KEY, **entry: object) -> None:
    """The gateway leads a chat to that session."""
    told = {"session_key": key, "session_id": session_id, "platform": "telegram", **entry}
    home.insert("gateway_routing", scope="/x", session_key=key, entry_json=told, updated_at=START)


def filed(home: HomeBuilder, session_id: str, key: str = KEY) -> None:
    """So does its file."""
    home.file("sessions/sessions.json", json.dumps({"_README": "x", key: {"session_id": session_id}}))


def bind(home: HomeBuilder, session_id: str, thread: str = "7") -> None:
    """A Telegram topic is bound to that session."""
    profile = "profile_name TEXT NOT NULL DEFAULT 'default', " if home.version in HEALING else ""
    first = "profile_name, " if profile else ""
    home.sql(
        f"CREATE TABLE IF NOT EXISTS telegram_dm_topic_bindings ({profile}chat_id TEXT NOT NULL, "
        "thread_id TEXT NOT NULL, user_id TEXT NOT NULL, session_key TEXT NOT NULL, "
        "session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, "
        "managed_mode TEXT NOT NULL DEFAULT 'auto', linked_at REAL NOT NULL, updated_at REAL NOT NULL, "
        f"PRIMARY KEY ({first}chat_id, thread_id))"
    )
    home.insert(
        "telegram_dm_topic_bindings",
        chat_id="42",
        thread_id=thread,
        user_id="42",
        session_key=f"{KEY}:{thread}",
        session_id=session_id,
        linked_at=START,
        updated_at=START,
    )
