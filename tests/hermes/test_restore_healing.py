"""A session deleted under a live agent: what 0.22.2 heals by itself beside what a restore gives back.

0.22.2 makes the row of the session anew when an append finds it gone, and writes again what its agent holds
in memory. That is nothing that was archived, and nothing at all where its accounting of tokens made a row
first. What healing left out is put beside what it wrote.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec
import pytest
from tests.hermes.home import HOUR, Conversation, HermesHome, Oracle, assistant, user
from tests.hermes.oracles import copy_store
from tests.hermes.shared import once

from statemend.repair.apply import apply
from statemend.repair.plan import Plan, dump
from statemend.repair.planner import make_plan
from statemend.repair.run import State
from statemend.repair.undo import undo
from statemend.store.content import decode_content, plain_text

Ask = Callable[[str], Oracle]
Row = dict[str, Any]

LOST, COUNTED = "20260801_090000_aaaaaa", "20260801_091500_bbbbbb"

#: The columns in which a row differs from what it was, and why.
HEALED_MESSAGES = {
    "id": "the rows are appended anew",
    "content": "what was sent as parts is stored as text when it is appended",
    "display_identity": "it is derived from the content",
    "display_order": "it is derived from the id, and what it was folded with is gone",
}
RESTORED_MESSAGES = {
    "display_identity": "Hermes derives it when it first shows the session",
    "display_order": "Hermes derives it when it first shows the session",
}
HEALED_SESSION = {
    "started_at": "the row is begun at the moment of the healing",
    "title": "it is not in the agent's memory",
    "title_source": "it has no title",
    "message_count": "two turns came since",
    "last_activity_at": "the row is new",
    "last_activity_description": "the row is new",
    "last_activity_provenance": "the row is new",
}
RESTORED_SESSION = {
    "model_config": "the mark of a row that was made again",
    "last_activity_at": "that of the latest message; a compaction was later, and is no message",
    "last_activity_description": "it belongs to a moment that has passed",
    "last_activity_provenance": "it belongs to a moment that has passed",
    "pinned": "0.22 prunes by itself, and nobody asked it to take this one",
}


class Healing(NamedTuple):
    """The home in which 0.22.2 healed what it could, the same damage unhealed, and the rows before it."""

    healed: Path
    unhealed: Path
    now: float
    rows: list[Row]
    session: Row
    display: dict[str, list[Row]]


@pytest.fixture(scope="module")
def healing(tmp_path_factory: pytest.TempPathFactory, worker_id: str, oracle: Ask) -> Healing:
    return once(tmp_path_factory, worker_id, "healing", lambda folder: healed(folder, oracle))


def healed(folder: Path, oracle: Ask) -> Healing:
    with HermesHome("0.22.2", folder / "healed") as home:
        chats = [talk(home, session_id) for session_id in (LOST, COUNTED)]
        rows, (session,) = stored(home.state_db, "messages"), stored(home.state_db, "sessions")
        display = {each: shown(oracle, home.state_db, folder / "copy", each) for each in (LOST, COUNTED)}
        home.advance(HOUR)
        for chat in chats:
            home.delete(chat.session_id)
        shutil.copytree(home.path, folder / "unhealed")
        home.store("update_token_counts", COUNTED, input_tokens=10, output_tokens=2)
        for chat in chats:
            chat.say(user("Are you still there?"), assistant("I am."))
    return Healing(home.path, folder / "unhealed", home.now, rows, session, display)


def talk(home: HermesHome, session_id: str) -> Conversation:
    chat = home.chat(session_id)
    chat.say(user([{"type": "text", "text": "Look at this."}]), assistant("I do. \n"))
    chat.turns(7)
    chat.tool_turn("How far are we?", "wc -l plan.md", "12 plan.md", "Twelve lines.")
    home.title(session_id, f"Plan {session_id}")
    chat.compact()
    chat.say(user("And the end?"), assistant("The end."))
    for fmt in ("jsonl", "md", "html"):
        home.export(session_id, fmt)
    return chat


def stored(store: Path, table: str, session_id: str = LOST) -> list[Row]:
    key = {"messages": "session_id", "sessions": "id"}[table]
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        cursor = connection.execute(f"SELECT * FROM {table} WHERE {key} = ? ORDER BY rowid", (session_id,))
        names = [name for name, _ in connection.execute(f"SELECT * FROM {table} LIMIT 1").get_description()]
        return [dict(zip(names, row, strict=True)) for row in cursor]
    finally:
        connection.close()


def shown(oracle: Ask, store: Path, scratch: Path, session_id: str) -> list[Row]:
    copy = copy_store(store, scratch)
    (found,) = oracle("0.22.2").ask(copy, [("get_messages", [session_id], {"include_compacted": True})])
    return found


def different(before: list[Row], after: list[Row]) -> set[str]:
    """The columns in which any of the rows differ."""
    pairs = zip(before, after, strict=True)
    return {name for one, other in pairs for name, value in one.items() if other[name] != value}


def restored(home: Path, folder: Path, now: float, *sessions: str) -> Plan:
    """The first option of every choice, carried out in a copy of the home."""
    shutil.copytree(home, folder / "home")
    plan = make_plan(folder / "home", now=now, restore=sessions)
    choices = [msgspec.structs.replace(each, chosen=each.options[0].id) for each in plan.choices]
    assert choices
    (folder / "plan.json").write_bytes(dump(msgspec.structs.replace(plan, choices=tuple(choices))))
    run = apply(folder / "plan.json", run_dir=folder / "run", now=now)
    assert (run.state, run.remaining, run.new, run.troubles) == (State.APPLIED, (), (), ())
    return plan


def test_healing_gives_back_what_was_in_memory(healing: Healing) -> None:
    rows = stored(healing.healed / "state.db", "messages")
    live = [row for row in healing.rows if row["active"]]

    assert len(live) < len(healing.rows)
    assert different(live, rows[:-2]) == HEALED_MESSAGES.keys()
    assert [row["content"] for row in rows[-2:]] == ["Are you still there?", "I am."]
    (session,) = stored(healing.healed / "state.db", "sessions")
    assert different([healing.session], [session]) == HEALED_SESSION.keys()


def test_a_restore_gives_back_every_row(healing: Healing, oracle: Ask, tmp_path: Path) -> None:
    restored(healing.unhealed, tmp_path, healing.now, LOST)

    store = tmp_path / "home" / "state.db"
    assert different(healing.rows, stored(store, "messages")) == RESTORED_MESSAGES.keys()
    (session,) = stored(store, "sessions")
    assert different([healing.session], [session]) == RESTORED_SESSION.keys()
    assert shown(oracle, store, tmp_path / "copy", LOST) == healing.display[LOST]


def test_what_healing_leaves_out_where_tokens_were_counted_first_is_put_in_front(
    healing: Healing, oracle: Ask, tmp_path: Path
) -> None:
    left = stored(healing.healed / "state.db", "messages", COUNTED)
    assert [row["content"] for row in left] == ["Are you still there?", "I am."]

    restored(healing.healed, tmp_path, healing.now)

    store = tmp_path / "home" / "state.db"
    assert stored(store, "messages", COUNTED)[-2:] == left
    display = shown(oracle, store, tmp_path / "copy", COUNTED)
    assert display[:-2] == healing.display[COUNTED]


def test_what_was_archived_comes_back_beside_what_healing_wrote(
    healing: Healing, oracle: Ask, tmp_path: Path
) -> None:
    left = stored(healing.healed / "state.db", "messages")

    plan = restored(healing.healed, tmp_path, healing.now, LOST)

    told = [each.summary for each in plan.findings if each.rule == "ORP005"]
    assert any("made again without 12 archived messages" in each for each in told)

    store = tmp_path / "home" / "state.db"
    rows = stored(store, "messages")
    assert rows[-len(left) :] == left
    archived = [row for row in healing.rows if row["compacted"]]
    assert different(archived, rows[: len(archived)]) <= RESTORED_MESSAGES.keys()
    (session,) = stored(store, "sessions")
    assert (session["started_at"], session["title"]) == (
        healing.session["started_at"],
        healing.session["title"],
    )
    display = shown(oracle, store, tmp_path / "copy", LOST)
    assert [row["content"] for row in display[-2:]] == ["Are you still there?", "I am."]
    assert different(healing.display[LOST], display[:-2]) == {"id", "active", "compacted"}
    assert [row["id"] for row in display if not row["active"]] == [*range(4, 16), 21]

    assert undo(tmp_path / "run").state is State.UNDONE
    assert stored(store, "messages") == left
    assert stored(store, "sessions") == stored(healing.healed / "state.db", "sessions")


@pytest.mark.parametrize("fmt", ["md", "html"])
def test_an_export_without_flags_gives_back_states_where_it_tells_how_many_were_live(
    healing: Healing, fmt: str, oracle: Ask, tmp_path: Path
) -> None:
    home = shutil.copytree(healing.unhealed, tmp_path / "one")
    for path in (home / "session-exports").iterdir():
        if not path.name.startswith(LOST) or path.suffix != f".{fmt}":
            path.unlink()

    plan = restored(home, tmp_path, healing.now, LOST)

    told = " ".join(plan.choices[0].options[0].evidence)
    store = tmp_path / "home" / "state.db"
    display = shown(oracle, store, tmp_path / "copy", LOST)
    display = list(dict.fromkeys(map(words, display)))  # on a page parts are text, and then one message
    assert display == list(dict.fromkeys(map(words, healing.display[LOST])))
    rows = [row for row in stored(store, "messages") if row["active"]]
    live = list(map(words, rows))
    if fmt == "md":
        before = [row for row in healing.rows if row["active"]]
        assert live == list(map(words, before))
        kept = ("_compressed_summary", "tool_calls", "tool_call_id", "tool_name")
        assert [[row[name] for name in kept] for row in rows] == [
            [row[name] for name in kept] for row in before
        ]
        assert "come back live" not in told
    else:
        assert set(live) == set(display)
        assert "16 messages come back live from before a summary: nothing tells which" in told
        assert "bear a wall time of an unknown zone" in told


def words(row: Row) -> tuple[str, str]:
    """What both formats keep of a message."""
    return row["role"], plain_text(decode_content(row["content"])).strip()
