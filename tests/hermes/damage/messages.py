"""Damages to messages."""

from __future__ import annotations

from tests.hermes.damage.catalogue import FAULT, LEFTOVER, UNDECIDABLE, Steps, Told, damage
from tests.hermes.damage.means import SESSION, compacted, copy_rows, elsewhere, rows, talk
from tests.hermes.home import HermesHome, assistant, user


@damage("MSG001", since="0.16")
def a_row_loses_its_state(home: HermesHome) -> Steps:
    """As in stores whose column came without its default, into which 0.16 and 0.17 wrote."""
    row = talk(home)[2]
    yield
    elsewhere(
        home,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL DEFAULT 1', '') WHERE name = 'messages'",
    )
    elsewhere(home, "UPDATE messages SET active = NULL WHERE id = ?", bindings=(row,))
    heals = home.release.at_least("0.18")
    return [Told("MSG001", SESSION, frozenset({row}), LEFTOVER if heals else FAULT)]


@damage("MSG002", follows="CNT001", since="0.18", before="0.22")
def archived_rows_come_to_life(home: HermesHome) -> Steps:
    """``restore_rewound`` does not ask what a row was."""
    compacted(home)
    yield
    archived = rows(home, SESSION, "compacted = 1")
    home.store("restore_rewound", SESSION, archived[0])
    return [Told("MSG002", SESSION, frozenset(archived))]


@damage("MSG002", follows="CNT001 MSG004", since="0.18")
def a_row_is_live_and_archived(home: HermesHome) -> Steps:
    compacted(home)
    yield
    row = rows(home, SESSION, "compacted = 1")[1]
    home.rows("UPDATE messages SET active = 1 WHERE id = ?", row)
    return [Told("MSG002", SESSION, frozenset({row}))]


@damage("MSG003", since="0.18")
def archived_rows_multiply(home: HermesHome) -> Steps:
    """As each compaction of one talk left another archived copy of all that it kept (#86366)."""
    compacted(home)
    yield
    for _ in range(20):
        copy_rows(home, "session_id = ? AND compacted = 1 AND id <= ?", SESSION, rows(home, SESSION)[9])
    return [Told("MSG003", SESSION)]


@damage("MSG004", follows="CNT001")
def a_row_is_stored_twice(home: HermesHome) -> Steps:
    row = talk(home)[3]
    yield
    copy_rows(home, "id = ?", row)
    return [Told("MSG004", SESSION)]


@damage("MSG005")
def a_time_that_no_clock_shows(home: HermesHome) -> Steps:
    """0.17 to 0.20 store what they are given; for the others a salvage does it."""
    talk(home)
    yield
    home.store("reopen_session", SESSION)
    if home.release.at_least("0.17") and not home.release.at_least("0.22"):
        row = home.append(SESSION, "user", "odd", timestamp=8.4e252)
    else:
        row = home.append(SESSION, "user", "odd")
        home.rows("UPDATE messages SET timestamp = 8.4e252 WHERE id = ?", row)
    return [Told("MSG005", SESSION, frozenset({row}))]


@damage("MSG006")
def cells_are_cut(home: HermesHome) -> Steps:
    """As a text copy of the store leaves structured content and calls."""
    chat = home.chat(SESSION)
    chat.tool_turn("What is here?", "ls", "a b", "Two files.")
    picture = home.append(SESSION, "user", [{"type": "text", "text": "What is this? " * 9}])
    calling = rows(home, SESSION, "tool_calls IS NOT NULL")[0]
    yield
    cut = "UPDATE messages SET {0} = CAST(substr(CAST({0} AS BLOB), 1, 30) AS TEXT) WHERE id = ?"
    home.rows(cut.format("content"), picture)
    home.rows(cut.format("tool_calls"), calling)
    return [Told("MSG006", SESSION, frozenset({picture, calling}))]


@damage("MSG007", follows="CNT001")
def a_call_is_lost(home: HermesHome) -> Steps:
    home.chat(SESSION).tool_turn("What is here?", "ls", "a b", "Two files.")
    calling = rows(home, SESSION, "tool_calls IS NOT NULL")[0]
    result = rows(home, SESSION, "role = 'tool'")[0]
    yield
    home.rows("DELETE FROM messages WHERE id = ?", calling)
    return [Told("MSG007", SESSION, frozenset({result}), UNDECIDABLE)]


@damage("MSG007")
def a_tool_is_cut_off(home: HermesHome) -> Steps:
    """The process ended while the tool ran."""
    call = {"id": "call_cut", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    running = {"role": "assistant", "content": "Running.", "tool_calls": [call]}
    home.chat(SESSION).say(user("Run it"), running)
    calling = rows(home, SESSION)[-1]
    yield
    home.resume(SESSION).say(user("Are you there?"), assistant("Yes."))
    return [Told("MSG007", SESSION, frozenset({calling}), LEFTOVER)]
