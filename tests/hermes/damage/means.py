"""What damages are done with: talks to do them to, and ways around the release."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import Any

from tests.hermes.home import Conversation, HermesHome, assistant, user

SESSION = "20261201_090000_dddddd"


def memory() -> str | None:
    """A folder in memory, if there is one: stores that many short runs write one after the other are quicker
    there. What they hold is the same."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def elsewhere(home: HermesHome, *statements: str, bindings: tuple[Any, ...] = ()) -> None:
    """Another program changes the store, without foreign keys, while no release has it open."""
    home.rest()
    with closing(sqlite3.connect(home.state_db)) as connection, connection:
        for statement in statements:
            connection.execute(statement, bindings if "?" in statement else ())


def wipe(home: HermesHome, session: str) -> None:
    """Another program deletes a session with its messages."""
    tables = ("messages", "session_id"), ("sessions", "id")
    deletes = [f"DELETE FROM {table} WHERE {column} = ?" for table, column in tables]
    elsewhere(home, *deletes, bindings=(session,))


def talk(home: HermesHome, session: str = SESSION, turns: int = 3) -> list[int]:
    """A titled, ended conversation; its rows."""
    home.create_session(session)
    for number in range(turns):
        home.exchange(session, number)
    home.title(session, f"Talk {session}")
    home.end(session)
    return rows(home, session)


def rows(home: HermesHome, session: str, where: str = "1") -> list[int]:
    found = home.rows(f"SELECT id FROM messages WHERE session_id = ? AND {where} ORDER BY id", session)
    return [row for (row,) in found]


def rotated(home: HermesHome) -> tuple[str, str]:
    """A conversation that a compression carried into a second session; the ids of both."""
    chat = home.chat(SESSION)
    chat.turns(8, "garden")
    chat.count_tokens()
    home.title(SESSION, "Garden")
    continuation = chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."))
    home.end(continuation)
    return SESSION, continuation


def compacted(home: HermesHome) -> Conversation:
    chat = home.chat(SESSION)
    chat.turns(8, "castle")
    home.title(SESSION, "Castle")
    chat.compact()
    chat.say(user("A tower?"), assistant("Two."))
    return chat


def copy_rows(home: HermesHome, where: str, *bindings: Any) -> None:
    columns = ", ".join(
        name for _, name, *_ in home.rows("PRAGMA table_info(messages)") if name not in ("id", "message_uid")
    )
    home.rows(f"INSERT INTO messages ({columns}) SELECT {columns} FROM messages WHERE {where}", *bindings)


def mark(home: HermesHome, session: str, marker: str, value: str | None) -> None:
    home.rows(
        f"UPDATE sessions SET model_config = json_set(COALESCE(model_config, '{{}}'), '$.{marker}', ?) "
        "WHERE id = ?",
        value,
        session,
    )
