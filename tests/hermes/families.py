"""Families of sessions as releases make them, and what goes wrong with them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tests.hermes.home import HermesHome, assistant, user

FIRST = "20261110_090000_000011"


def rotated(home: HermesHome) -> tuple[str, str]:
    """A conversation that a compression carried into a second session; the ids of both."""
    chat = home.chat(FIRST)
    chat.turns(10, "garden")
    home.title(FIRST, "Garden")
    continuation = chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."))
    home.end(continuation)
    return FIRST, continuation


def forked(home: HermesHome) -> tuple[str, str, str]:
    """A conversation compressed twice: the first session and both continuations, the older first."""
    first, older = rotated(home)
    return first, older, compressed_again(home, first)


def compressed_again(home: HermesHome, first: str) -> str:
    """A closed session is reopened, goes on and is compressed once more; its other continuation."""
    home.store("reopen_session", first)
    again = home.resume(first)
    again.turns(8, "pond")
    younger = again.rotate()
    again.say(user("Fish?"), assistant("Two."))
    home.end(younger)
    return younger


def hijacked(home: HermesHome, newer: str) -> tuple[str, str]:
    """An unmarked subagent run beside the continuation, upgraded; the run and the continuation."""
    chat = home.chat(FIRST)
    chat.turns(5, "garden")
    run = chat.delegate("Which birds sing at night?")
    run.say(user("Which birds sing at night?"), assistant("Nightingales do."))
    run.close()
    chat.turns(5, "shed")
    home.title(FIRST, "Garden")
    continuation = chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."))
    home.end(continuation)
    home.upgrade(newer)
    return run.session_id, continuation


def branched(home: HermesHome) -> tuple[str, str]:
    """A conversation and a branch of it, which has ended."""
    chat = home.chat(FIRST)
    chat.say(user("one"), assistant("first"), user("two"), assistant("second"))
    home.title(FIRST, "Counting")
    branch = chat.branch()
    chat.say(user("three"), assistant("third"))
    home.end(branch)
    return FIRST, branch


def unlinked(home: HermesHome) -> list[str]:
    """Three segments of one conversation as releases before 0.13 left them, by rows that this one accepts."""
    prefix = home.summary_prefix()
    ids = [f"20260801_09000{number}_0000aa" for number in range(3)]
    for number, session in enumerate(ids):
        home.create_session(session)
        home.append(session, "user", "What of my taxes?" if number == 0 else f"{prefix} They spoke of taxes.")
        home.append(session, "assistant", f"Answer {number}", finish_reason="stop")
        home.store("update_token_counts", session, 900, 90, api_call_count=1)
        home.end(session)
        home.title(session, "Taxes" if number == 0 else f"Taxes #{number + 1}")
    return ids


def damage(home: HermesHome, statement: str, *bindings: object) -> None:
    """What a crash of an old release, or a tool without foreign keys, leaves behind."""
    home.stop()
    with closing(sqlite3.connect(home.state_db)) as connection, connection:
        connection.execute(statement, bindings)


def unmark(home: HermesHome) -> None:
    """What a program leaves that copies rows and forgets the mark."""
    damage(home, "UPDATE sessions SET model_config = NULL WHERE parent_session_id IS NOT NULL")


def forget(home: HermesHome, session_id: str) -> None:
    """What a program without foreign keys does: the row goes, the messages stay."""
    home.rows("PRAGMA foreign_keys = OFF")
    home.rows("DELETE FROM sessions WHERE id = ?", session_id)
    home.rows("PRAGMA foreign_keys = ON")
