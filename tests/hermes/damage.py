"""A catalogue of damages: each is done to a healthy home in use, and one rule has to tell of it.

A damage is a generator. Up to its ``yield`` it builds what it needs with the release's own code; the home is
healthy there. Then it does the damage: by what releases really did wrong where that is possible, else by
statements that the release accepts, as other programs and salvages run them. What it returns is what has to
be told. ``follows`` are rules that may tell of the consequences, since these are so too. Releases from 0.21.3
on prune by themselves, so what the next pruning takes may be told at any time.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hermes.home import DAY, HOUR, Conversation, HermesHome, assistant, user
from tests.hermes.releases import Release

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Verdict
from statemend.audit.outcome import Audit

FAULT, RISK, LEFTOVER, UNDECIDABLE = Verdict.FAULT, Verdict.RISK, Verdict.LEFTOVER, Verdict.UNDECIDABLE
SESSION = "20261201_090000_dddddd"


@dataclass(frozen=True)
class Told:
    """A finding that has to be there: of this session, and naming these rows where they are given."""

    rule: str
    session: str | None = None
    rows: frozenset[int] | None = None
    verdict: Verdict = FAULT


Act = Callable[[HermesHome], Generator[None, None, list[Told]]]


@dataclass(frozen=True)
class Damage:
    """One entry: what ``rule`` has to tell of, and with it the rules ``also``. ``since`` and ``before`` bound
    the releases in which it can be done."""

    name: str
    rule: str
    also: tuple[str, ...]
    act: Act
    follows: frozenset[str]
    since: str
    before: str

    def suits(self, release: Release) -> bool:
        return release.at_least(self.since) and not release.at_least(self.before)


CATALOGUE: list[Damage] = []


#: What may be told of any healthy home.
_ALWAYS = frozenset({"EXP012"})


def damage(
    rule: str, *also: str, follows: str = "", since: str = "0", before: str = "9"
) -> Callable[[Act], Act]:
    """Enter the function into the catalogue."""

    def enter(act: Act) -> Act:
        CATALOGUE.append(Damage(act.__name__, rule, also, act, _ALWAYS.union(follows.split()), since, before))
        return act

    return enter


def strike(home: HermesHome, entry: Damage) -> tuple[Audit, Audit, list[Told]]:
    """The audits before and after, and what has to be told. The release's process stays."""
    steps = entry.act(home)
    next(steps)
    home.rest()
    before = audit(home.path, now=home.now, deep=True)
    told: list[Told] = []
    try:
        next(steps)
    except StopIteration as done:
        told = done.value
    home.rest()
    return before, audit(home.path, now=home.now, deep=True), told


def wrongs(entry: Damage, before: Audit, after: Audit, told: Iterable[Told]) -> list[str]:
    """What the audit after the damage should have told and did not, and what it claims that is not so."""
    known = {(one.id, one.verdict, one.subject.message_ids) for one in before.findings}
    new = [one for one in after.findings if (one.id, one.verdict, one.subject.message_ids) not in known]
    missing = [f"missing {each}" for each in told if not any(_is(one, each) for one in new)]
    own = {each.rule for each in told}
    claimed = [
        f"claimed {one.rule} {one.verdict} {one.subject.session} {one.subject.message_ids}: {one.summary}"
        for one in new
        if (not any(_is(one, each) for each in told) if one.rule in own else one.rule not in entry.follows)
    ]
    broken = [] if entry.rule.startswith("STO") else [f"undetermined {cause}" for cause in after.undetermined]
    return missing + claimed + broken


def _is(one: Finding, told: Told) -> bool:
    return (one.rule, one.verdict) == (told.rule, told.verdict) and (
        told.session in (None, one.subject.session)
        and (told.rows is None or told.rows == frozenset(one.subject.message_ids))
    )


def memory() -> str | None:
    """A folder in memory, if there is one: stores that many short runs write one after the other are quicker
    there. What they hold is the same."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# What damages are done with


def elsewhere(home: HermesHome, *statements: str, bindings: tuple[Any, ...] = ()) -> None:
    """Another program changes the store, without foreign keys, while no release has it open."""
    home.rest()
    with closing(sqlite3.connect(home.state_db)) as connection, connection:
        for statement in statements:
            connection.execute(statement, bindings if "?" in statement else ())


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


# Messages


@damage("MSG001", since="0.16")
def a_row_loses_its_state(home: HermesHome) -> Generator[None, None, list[Told]]:
    """As in stores whose column came without its default, into which 0.16 and 0.17 wrote."""
    row = talk(home)[2]
    yield
    home.rest()
    with closing(sqlite3.connect(home.state_db)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL DEFAULT 1', '') WHERE name = 'messages'"
        )
    elsewhere(home, "UPDATE messages SET active = NULL WHERE id = ?", bindings=(row,))
    heals = home.release.at_least("0.18")
    return [Told("MSG001", SESSION, frozenset({row}), LEFTOVER if heals else FAULT)]


@damage("MSG002", follows="CNT001", since="0.18", before="0.22")
def archived_rows_come_to_life(home: HermesHome) -> Generator[None, None, list[Told]]:
    """``restore_rewound`` does not ask what a row was."""
    compacted(home)
    yield
    archived = rows(home, SESSION, "compacted = 1")
    home.store("restore_rewound", SESSION, archived[0])
    return [Told("MSG002", SESSION, frozenset(archived))]


@damage("MSG002", follows="CNT001 MSG004", since="0.18")
def a_row_is_live_and_archived(home: HermesHome) -> Generator[None, None, list[Told]]:
    compacted(home)
    yield
    row = rows(home, SESSION, "compacted = 1")[1]
    home.rows("UPDATE messages SET active = 1 WHERE id = ?", row)
    return [Told("MSG002", SESSION, frozenset({row}))]


@damage("MSG003", since="0.18")
def archived_rows_multiply(home: HermesHome) -> Generator[None, None, list[Told]]:
    """As each compaction of one talk left another archived copy of all that it kept (#86366)."""
    compacted(home)
    yield
    for _ in range(20):
        _copy(home, "session_id = ? AND compacted = 1 AND id <= ?", SESSION, rows(home, SESSION)[9])
    return [Told("MSG003", SESSION)]


@damage("MSG004", follows="CNT001")
def a_row_is_stored_twice(home: HermesHome) -> Generator[None, None, list[Told]]:
    row = talk(home)[3]
    yield
    _copy(home, "id = ?", row)
    return [Told("MSG004", SESSION)]


def _copy(home: HermesHome, where: str, *bindings: Any) -> None:
    columns = ", ".join(
        name for _, name, *_ in home.rows("PRAGMA table_info(messages)") if name not in ("id", "message_uid")
    )
    home.rows(f"INSERT INTO messages ({columns}) SELECT {columns} FROM messages WHERE {where}", *bindings)


@damage("MSG005")
def a_time_that_no_clock_shows(home: HermesHome) -> Generator[None, None, list[Told]]:
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
def cells_are_cut(home: HermesHome) -> Generator[None, None, list[Told]]:
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
def a_call_is_lost(home: HermesHome) -> Generator[None, None, list[Told]]:
    home.chat(SESSION).tool_turn("What is here?", "ls", "a b", "Two files.")
    calling = rows(home, SESSION, "tool_calls IS NOT NULL")[0]
    result = rows(home, SESSION, "role = 'tool'")[0]
    yield
    home.rows("DELETE FROM messages WHERE id = ?", calling)
    return [Told("MSG007", SESSION, frozenset({result}), UNDECIDABLE)]


@damage("MSG007")
def a_tool_is_cut_off(home: HermesHome) -> Generator[None, None, list[Told]]:
    """The process ended while the tool ran."""
    call = {"id": "call_cut", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    running = {"role": "assistant", "content": "Running.", "tool_calls": [call]}
    home.chat(SESSION).say(user("Run it"), running)
    calling = rows(home, SESSION)[-1]
    yield
    home.resume(SESSION).say(user("Are you there?"), assistant("Yes."))
    return [Told("MSG007", SESSION, frozenset({calling}), LEFTOVER)]


# Orphans


@damage("ORP001")
def the_session_of_messages_is_deleted(home: HermesHome) -> Generator[None, None, list[Told]]:
    messages = talk(home)
    yield
    elsewhere(home, "DELETE FROM sessions WHERE id = ?", bindings=(SESSION,))
    return [Told("ORP001", SESSION, frozenset(messages))]


@damage("ORP002", follows="ORP003")
def a_parent_is_deleted(home: HermesHome) -> Generator[None, None, list[Told]]:
    _, continuation = rotated(home)
    yield
    elsewhere(
        home,
        "DELETE FROM messages WHERE session_id = ?",
        "DELETE FROM sessions WHERE id = ?",
        bindings=(SESSION,),
    )
    return [Told("ORP002", continuation)]


@damage("ORP006", since="0.18", before="0.22")
def a_route_outlives_its_session(home: HermesHome) -> Generator[None, None, list[Told]]:
    """Up to 0.20 the release itself leaves the route of a session that is deleted."""
    routed = home.gateway_session("4711")
    home.resume(routed, "telegram").say(user("hi"), assistant("hi"))
    yield
    home.delete(routed)
    return [Told("ORP006", routed, verdict=RISK)]


@damage("ORP006", since="0.20")
def a_prompt_is_deleted(home: HermesHome) -> Generator[None, None, list[Told]]:
    talk(home)
    home.store("update_system_prompt", SESSION, "You are kind.")
    yield
    elsewhere(home, "DELETE FROM system_prompts WHERE prompt = 'You are kind.'")
    return [Told("ORP006")]


# Lineage


@damage("LIN001")
def a_handoff_breaks_off(home: HermesHome) -> Generator[None, None, list[Told]]:
    """Up to 0.19 the old session was ended before the new one was made, and a crash fell between."""
    home.create_session(SESSION)
    home.exchange(SESSION, 1)
    yield
    home.end(SESSION, "compression")
    return [Told("LIN001", SESSION)]


@damage("LIN009", "LIN001")
def a_continuation_is_cut_off(home: HermesHome) -> Generator[None, None, list[Told]]:
    first, continuation = rotated(home)
    yield
    home.rows("UPDATE sessions SET parent_session_id = NULL WHERE id = ?", continuation)
    return [Told("LIN009", continuation), Told("LIN001", first)]


@damage("LIN002", "LIN003", since="0.18")
def compressed_twice(home: HermesHome) -> Generator[None, None, list[Told]]:
    """A closed session is reopened, goes on and is compressed once more."""
    first, _ = rotated(home)
    yield
    home.store("reopen_session", first)
    again = home.resume(first)
    again.turns(8, "pond")
    younger = again.rotate()
    again.say(user("Fish?"), assistant("Two."))
    home.end(younger)
    return [Told("LIN002", first), Told("LIN003", first)]


@damage("LIN004")
def a_ring(home: HermesHome) -> Generator[None, None, list[Told]]:
    first, continuation = rotated(home)
    yield
    home.rows("UPDATE sessions SET parent_session_id = ? WHERE id = ?", continuation, first)
    return [Told("LIN004", first)]


def _mark(home: HermesHome, session: str, marker: str, value: str | None) -> None:
    home.rows(
        f"UPDATE sessions SET model_config = json_set(COALESCE(model_config, '{{}}'), '$.{marker}', ?) "
        "WHERE id = ?",
        value,
        session,
    )


@damage("LIN005")
def a_continuation_is_marked_as_a_branch(home: HermesHome) -> Generator[None, None, list[Told]]:
    first, continuation = rotated(home)
    yield
    _mark(home, continuation, "_branched_from", first)
    verdict = FAULT if home.release.at_least("0.16") else RISK
    return [Told("LIN005", continuation, verdict=verdict)]


@damage("LIN006", since="0.16")
def a_branch_loses_its_marker(home: HermesHome) -> Generator[None, None, list[Told]]:
    """As forks of the API had none; the parent is in use again."""
    chat = home.chat(SESSION)
    chat.say(user("one"), assistant("first"), user("two"), assistant("second"))
    home.title(SESSION, "Counting")
    branch = chat.branch()
    chat.say(user("three"), assistant("third"))
    home.store("reopen_session", SESSION)
    yield
    home.rows(
        "UPDATE sessions SET model_config = json_remove(model_config, '$._branched_from') WHERE id = ?",
        branch,
    )
    return [Told("LIN006", branch)]


@damage("LIN007", since="0.18")
def a_routed_chat_is_marked_as_a_run(home: HermesHome) -> Generator[None, None, list[Told]]:
    """As a program does that writes model_config by itself."""
    asking = SESSION
    talk(home, asking)
    routed = home.gateway_session("4713")
    home.resume(routed, "telegram").say(user("hi"), assistant("hi"))
    key = home.route_key("4713")
    yield
    _mark(home, routed, "_delegate_from", asking)
    home.rows("UPDATE sessions SET session_key = ? WHERE id = ?", key, routed)
    return [Told("LIN007", routed)]


@damage("LIN008")
def a_chat_is_marked_as_an_orphaned_run(home: HermesHome) -> Generator[None, None, list[Told]]:
    """As the migration of 0.17 guesses."""
    talk(home)
    yield
    _mark(home, SESSION, "_delegate_from", "__orphaned__")
    return [Told("LIN008", SESSION)]


@damage("LIN010", since="0.18", follows="CNT001")
def turns_beside_the_line(home: HermesHome) -> Generator[None, None, list[Told]]:
    """A second window writes into the session that a compression closed; 0.20 and newer refuse that, and a
    salvage brings it about."""
    first, _ = rotated(home)
    yield
    home.advance(HOUR)
    if home.release.at_least("0.20"):
        last = rows(home, first)[-1]
        _copy(home, "id = ?", last)
        row = rows(home, first)[-1]
        home.rows("UPDATE messages SET content = 'Still there?', timestamp = ? WHERE id = ?", home.now, row)
    else:
        row = home.append(first, "user", "Still there?")
    return [Told("LIN010", first, frozenset({row}))]


@damage("LIN010")
def turns_after_a_new_session(home: HermesHome) -> Generator[None, None, list[Told]]:
    talk(home)
    home.store("reopen_session", SESSION)
    home.end(SESSION, "new_session")
    yield
    home.advance(HOUR)
    row = home.append(SESSION, "user", "Wait, one more thing")
    return [Told("LIN010", SESSION, frozenset({row}), UNDECIDABLE)]


@damage("LIN012", since="0.18")
def one_chat_in_two_sessions(home: HermesHome) -> Generator[None, None, list[Told]]:
    """As two gateways that serve one chat leave it."""
    routed = home.gateway_session("4712")
    home.resume(routed, "telegram").say(user("hi"), assistant("hi"))
    key = home.route_key("4712")
    home.create_session(SESSION, "telegram")
    home.exchange(SESSION, 1)
    home.advance(600.0)
    home.exchange(routed, 2)
    home.exchange(SESSION, 2)
    yield
    home.rows("UPDATE sessions SET session_key = ? WHERE id IN (?, ?)", key, routed, SESSION)
    return [Told("LIN012", verdict=UNDECIDABLE)]


@damage("LIN011")
def the_row_of_a_run_is_made_in_passing(home: HermesHome) -> Generator[None, None, list[Told]]:
    """The accounting of tokens makes the row of a subagent whose own could not be made."""
    goal = "Which birds sing at night?"
    function = {"name": "delegate_task", "arguments": json.dumps({"goal": goal})}
    call = {"id": "call_birds", "type": "function", "function": function}
    asked = {"role": "assistant", "content": "I will ask.", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "call_birds", "tool_name": "delegate_task", "content": "Owls."}
    home.chat(SESSION).say(user("Find out"), asked, result, assistant("Owls do."))
    yield
    run = "20261201_091500_bbbbbb"
    home.store("update_token_counts", run, 7, 5)
    home.append(run, "user", goal)
    home.append(run, "assistant", "Owls do.")
    return [Told("LIN011", run)]


# Lifecycle, counters


@damage("LIF001")
def a_reason_without_an_end(home: HermesHome) -> Generator[None, None, list[Told]]:
    talk(home)
    yield
    home.rows("UPDATE sessions SET ended_at = NULL WHERE id = ?", SESSION)
    return [Told("LIF001", SESSION)]


@damage("LIF001")
def an_end_without_a_reason(home: HermesHome) -> Generator[None, None, list[Told]]:
    talk(home)
    yield
    home.rows("UPDATE sessions SET end_reason = NULL WHERE id = ?", SESSION)
    return [Told("LIF001", SESSION)]


@damage("LIF002")
def runs_that_never_end(home: HermesHome) -> Generator[None, None, list[Told]]:
    """Early releases did not end what cron began."""
    talk(home)
    yield
    for number in range(12):
        home.exchange(home.create_session(f"cron_flood_20261201_0900{number:02}", "cron"), number)
    home.advance(30 * DAY)
    return [Told("LIF002", verdict=LEFTOVER)]


@damage("LIF003")
def an_account_makes_a_ghost(home: HermesHome) -> Generator[None, None, list[Told]]:
    """Tokens are counted for a session that was deleted meanwhile."""
    talk(home)
    home.delete(SESSION)
    yield
    home.store("update_token_counts", SESSION, 7, 5)
    home.advance(2 * DAY)
    return [Told("LIF003", verdict=LEFTOVER)]


@damage("LIF004", since="0.16")
def a_lock_never_ends(home: HermesHome) -> Generator[None, None, list[Told]]:
    """The clock ran far ahead when it was taken."""
    talk(home)
    yield
    assert home.store("try_acquire_compression_lock", SESSION, "somebody")
    home.rows("UPDATE compression_locks SET expires_at = ?", home.now + 900 * DAY)
    return [Told("LIF004", SESSION)]


@damage("CNT001")
def the_counter_is_wrong(home: HermesHome) -> Generator[None, None, list[Told]]:
    talk(home)
    yield
    home.rows("UPDATE sessions SET message_count = 0 WHERE id = ?", SESSION)
    return [Told("CNT001", SESSION)]


# The search index


def _without_triggers(home: HermesHome, event: str, statement: str, *bindings: Any) -> None:
    """Run a statement while the triggers that keep the indexes up to date after ``event`` are away."""
    triggers = home.rows(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name GLOB ?", f"messages_fts*_{event}"
    )
    for name, _ in triggers:
        home.rows(f"DROP TRIGGER {name}")
    home.rows(statement, *bindings)
    for _, sql in triggers:
        home.rows(sql)


@damage("FTS001")
def a_row_is_written_past_the_index(home: HermesHome) -> Generator[None, None, list[Told]]:
    talk(home)
    yield
    columns = "session_id, role, content, timestamp"
    copied = "session_id, role, 'past the index', timestamp + 1.5"
    _without_triggers(
        home,
        "insert",
        f"INSERT INTO messages ({columns}) SELECT {copied} FROM messages WHERE session_id = ? LIMIT 1",
        SESSION,
    )
    row = rows(home, SESSION)[-1]
    home.rows("UPDATE sessions SET message_count = message_count + 1 WHERE id = ?", SESSION)
    return [Told("FTS001", rows=frozenset({row}))]


@damage("FTS002", follows="CNT001")
def a_row_is_deleted_past_the_index(home: HermesHome) -> Generator[None, None, list[Told]]:
    row = talk(home)[-1]
    yield
    _without_triggers(home, "delete", "DELETE FROM messages WHERE id = ?", row)
    lawful = [Told("FTS002", verdict=LEFTOVER)] if home.release.at_least("0.22") else []
    return [Told("FTS002"), *lawful]


# The file


@damage("STO001")
def the_file_is_zeroed(home: HermesHome) -> Generator[None, None, list[Told]]:
    talk(home)
    yield
    size = home.state_db.stat().st_size
    _remove_log(home)
    home.state_db.write_bytes(bytes(size))
    return [Told("STO001")]


@damage("STO001")
def the_file_is_cut_short(home: HermesHome) -> Generator[None, None, list[Told]]:
    talk(home)
    yield
    _remove_log(home)
    os.truncate(home.state_db, home.state_db.stat().st_size // 2 // 4096 * 4096)
    return [Told("STO001")]


@damage("STO002")
def a_log_of_another_store_lies_there(home: HermesHome) -> Generator[None, None, list[Told]]:
    """A restore swapped the main file and left a log whose frames follow from nothing."""
    talk(home)
    yield
    home.rest()
    log = home.path / "state.db-wal"
    log.write_bytes(b"\x37\x7f\x06\x82" + bytes(range(28)) + bytes(4096 + 24) * 3)
    return [Told("STO002")]


@damage("STO003")
def a_page_is_overwritten(home: HermesHome) -> Generator[None, None, list[Told]]:
    talk(home, turns=3)
    yield
    page = home.rows("SELECT rootpage FROM sqlite_master WHERE name = 'idx_messages_session'")[0][0]
    size = home.rows("PRAGMA page_size")[0][0]
    home.rest()
    _remove_log(home)
    with home.state_db.open("r+b") as file:
        file.seek((page - 1) * size + 8)
        file.write(b"\xff" * 200)
    return [Told("STO003")]


@damage("STO004", since="0.16")
def a_column_is_dropped(home: HermesHome) -> Generator[None, None, list[Told]]:
    talk(home)
    yield
    elsewhere(home, "ALTER TABLE sessions DROP COLUMN billing_mode")
    return [Told("STO004")]


@damage("STO005", follows="ORP003")
def the_store_is_begun_anew(home: HermesHome) -> Generator[None, None, list[Told]]:
    """The file is gone, a copy of it remains, and the release silently begins an empty one."""
    talk(home, turns=8)
    assert home.snapshot()
    yield
    home.rest()
    _remove_log(home)
    home.state_db.unlink()
    home.advance(HOUR)
    talk(home, "20261201_120000_eeeeee")
    return [Told("STO005")]


def _remove_log(home: HermesHome) -> None:
    home.rest()
    for suffix in ("-wal", "-shm"):
        (home.path / f"state.db{suffix}").unlink(missing_ok=True)


# Exports


@damage("EXP001", since="0.18", before="0.21.5")
def an_export_leaves_out_what_was_archived(home: HermesHome) -> Generator[None, None, list[Told]]:
    """The loss that the releases up to 0.21.4 write themselves."""
    compacted(home)
    yield
    assert home.export(SESSION, "md").files
    return [Told("EXP001", SESSION)]


@damage("EXP002", since="0.18", before="0.21.5")
def verified_and_deleted(home: HermesHome) -> Generator[None, None, list[Told]]:
    """The export is verified against its own selection, and all rows are deleted."""
    compacted(home)
    home.end(SESSION)
    yield
    home.delete_after_verified(SESSION)
    assert home.session(SESSION) is None
    return [Told("EXP002", SESSION)]


def _exported(home: HermesHome) -> Path:
    talk(home)
    (file,) = [path for path in home.export(SESSION, "md").files if path.suffix == ".md"]
    return file


@damage("EXP003", since="0.18")
def an_export_is_cut(home: HermesHome) -> Generator[None, None, list[Told]]:
    file = _exported(home)
    yield
    os.truncate(file, file.stat().st_size - 40)
    return [Told("EXP003")]


@damage("EXP004", since="0.18")
def a_talk_goes_on_after_its_export(home: HermesHome) -> Generator[None, None, list[Told]]:
    _exported(home)
    yield
    home.store("reopen_session", SESSION)
    home.exchange(SESSION, 99)
    return [Told("EXP004", SESSION, frozenset(rows(home, SESSION)[-2:]), LEFTOVER)]


@damage("EXP005", since="0.18")
def a_text_is_rewritten_after_its_export(home: HermesHome) -> Generator[None, None, list[Told]]:
    row = rows(home, (talk(home), SESSION)[1])[2]
    assert home.export(SESSION, "jsonl").files
    yield
    home.rows("UPDATE messages SET content = 'never said' WHERE id = ?", row)
    return [Told("EXP005", SESSION, frozenset({row}), UNDECIDABLE)]


@damage("EXP011", since="0.18")
def a_listed_export_is_gone(home: HermesHome) -> Generator[None, None, list[Told]]:
    file = _exported(home)
    yield
    file.unlink()
    return [Told("EXP011", verdict=LEFTOVER)]
