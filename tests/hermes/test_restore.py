"""Sessions that a release really deleted come back, and the releases read them as they read them before."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.hermes.home import HOUR, HermesHome, Oracle, assistant, user
from tests.hermes.judging import digest
from tests.hermes.oracles import copy_store

from statemend.repair.apply import apply
from statemend.repair.plan import Plan, dump
from statemend.repair.planner import make_plan
from statemend.repair.run import Run, State
from statemend.repair.undo import undo

Homes = Callable[..., HermesHome]
Ask = Callable[[str], Oracle]

LOST, OTHER = "20260801_090000_aaaaaa", "20260801_091500_bbbbbb"
#: What a release derives for itself, or mints anew for a row that another release wrote.
DERIVED = frozenset({"display_identity", "display_order", "message_uid"})


def planned(home: HermesHome, **options: Any) -> Plan:
    """The plan with every choice for a session that is gone made: the first option."""
    plan = make_plan(home.path, now=home.now, **options)
    assert plan.choices
    choices = tuple(msgspec.structs.replace(each, chosen=each.options[0].id) for each in plan.choices)
    return msgspec.structs.replace(plan, choices=choices)


def restored(home: HermesHome, **options: Any) -> Run:
    home.stop()
    file = home.path.parent / "plan.json"
    file.write_bytes(dump(planned(home, **options)))
    run = apply(file, run_dir=home.path.parent / "run", now=home.now)
    assert (run.state, run.remaining, run.new, run.troubles) == (State.APPLIED, (), (), ())
    home.restart()
    return run


def taken_back(home: HermesHome) -> str:
    """The digest of the store after an undo."""
    home.stop()
    assert undo(home.path.parent / "run", now=home.now).state is State.UNDONE
    return digest(home)


def read(oracle: Ask, home: HermesHome, release: str, scratch: Path, **options: Any) -> list[dict[str, Any]]:
    """The messages of the lost session as ``release`` reads a copy of the store."""
    asked = [("get_messages", [LOST], options)]
    (found,) = oracle(release).ask(copy_store(home.state_db, scratch), asked)
    return [{name: value for name, value in row.items() if name not in DERIVED} for row in found]


def reads(oracle: Ask, home: HermesHome, scratch: Path) -> list[list[dict[str, Any]]]:
    """The live messages as the old and the newest release read them, and the newest one's display."""
    old = home.release.version
    return [
        read(oracle, home, old, scratch),
        read(oracle, home, "0.22.2", scratch),
        read(oracle, home, "0.22.2", scratch, include_compacted=True),
    ]


def talk(home: HermesHome) -> Any:
    home.chat(OTHER).say(user("hello"), assistant("hi"))
    chat = home.chat(LOST)
    chat.say(user([{"type": "text", "text": "Look at this."}]), assistant("I do. \n"))
    chat.turns(7)
    chat.tool_turn("How far are we?", "wc -l plan.md", "12 plan.md", "Twelve lines.")
    home.title(LOST, "Plan")
    return chat


def test_deleted_after_a_complete_export(hermes_home: Homes, oracle: Ask, tmp_path: Path) -> None:
    home = hermes_home("0.19.0")
    talk(home)
    home.end(LOST)
    home.export(LOST, "jsonl")
    before, row = reads(oracle, home, tmp_path / "copy"), home.session(LOST)
    home.delete(LOST)
    home.stop()
    lost = digest(home)

    restored(home, restore=[LOST])

    assert reads(oracle, home, tmp_path / "copy") == before
    now = home.session(LOST)
    told = ("source", "title", "started_at", "ended_at", "model", "message_count", "tool_call_count")
    assert [now[name] for name in told] == [row[name] for name in told]
    assert taken_back(home) == lost


def test_the_release_goes_on_with_what_came_back(hermes_home: Homes) -> None:
    home = hermes_home("0.19.0")
    talk(home)
    home.export(LOST, "jsonl")
    highest = home.value("SELECT MAX(id) FROM messages", [])
    home.delete(LOST)

    restored(home, restore=[LOST])

    assert home.append(LOST, "user", "and now?") == highest + 1
    assert home.rows("SELECT COUNT(*) FROM messages_fts WHERE messages_fts MATCH 'Twelve'") == [[1]]
    chat = home.resume(LOST)
    chat.say(user("Go on."), assistant("Gladly."))
    chat.compact()
    home.upgrade("0.22.2")
    assert home.messages(LOST)[-1]["content"] == "Gladly."
    assert home.append(LOST, "user", "one more") > highest + 1
    assert home.delete(LOST)


@pytest.mark.parametrize("release", ["0.19.0", "0.20.1"])
def test_compacted_and_deleted_after_an_incomplete_export_while_an_older_one_survives(
    hermes_home: Homes, oracle: Ask, tmp_path: Path, release: str
) -> None:
    home = hermes_home(release)
    talking = talk(home)
    home.export(LOST, "jsonl", name="older.jsonl")
    talking.compact()
    talking.say(user("And the end?"), assistant("The end."))
    home.end(LOST)
    before = reads(oracle, home, tmp_path / "copy")
    home.delete_after_verified(LOST)
    assert home.session(LOST) is None
    home.stop()
    lost = digest(home)

    restored(home, restore=[LOST])

    now = reads(oracle, home, tmp_path / "copy")
    assert [len(view) for view in now] == [len(view) for view in before]
    for one, other in zip(chain(*now), chain(*before), strict=True):
        assert said(one) == said(other)
        assert one["timestamp"] == pytest.approx(other["timestamp"], rel=0, abs=2e-6)
    assert taken_back(home) == lost


def said(message: dict[str, Any]) -> list[Any]:
    """What Markdown keeps of a message: it drops the ids of calls and white space at the end, and cuts times
    to the microsecond."""
    content = message["content"]
    calls = [call["function"] for call in message["tool_calls"] or ()]
    return [
        message["role"],
        content.rstrip() if isinstance(content, str) else content,
        calls,
    ]


@pytest.mark.parametrize("fmt", ["jsonl", "md"])
def test_a_tail_that_a_live_agent_went_on_appending_is_merged(
    hermes_home: Homes, oracle: Ask, tmp_path: Path, fmt: str
) -> None:
    home = hermes_home("0.19.0")
    chat = talk(home)
    home.export(LOST, fmt)
    before, row = reads(oracle, home, tmp_path / "copy"), home.session(LOST)
    home.advance(HOUR)
    home.delete(LOST)
    home.store("update_token_counts", LOST, input_tokens=10, output_tokens=2)
    chat.say(user("Are you still there?"), assistant("I am."), gap=60)
    tail = reads(oracle, home, tmp_path / "copy")
    assert 0 < len(tail[0]) < len(before[0])

    restored(home)

    now = reads(oracle, home, tmp_path / "copy")
    whole = [old + new for old, new in zip(before, tail, strict=True)]
    if fmt == "jsonl":
        assert now == whole
    assert [list(map(said, view)) for view in now] == [list(map(said, view)) for view in whole]
    assert [view[-2:] for view in now] == tail
    merged = home.session(LOST)
    told = ("source", "title", "model")
    assert [merged[name] for name in told] == [row[name] for name in told]
    assert merged["started_at"] == pytest.approx(row["started_at"], rel=0, abs=2e-6)
    assert merged["message_count"] == len(now[0])
    home.append(LOST, "user", "and now?")
    assert home.messages(LOST)[-1]["content"] == "and now?"
    assert home.delete(LOST)


def test_deleted_under_a_live_agent_whose_appends_then_failed(
    hermes_home: Homes, oracle: Ask, tmp_path: Path
) -> None:
    """What it said since was never stored: the logs go on telling so."""
    home = hermes_home("0.19.0")
    chat = talk(home)
    home.export(LOST, "jsonl")
    before = reads(oracle, home, tmp_path / "copy")
    home.advance(HOUR)
    home.hermes("sessions", "delete", LOST, "--yes")
    chat.say(user("Are you still there?"), assistant("I am."), gap=60)

    run = restored(home)

    assert reads(oracle, home, tmp_path / "copy") == before
    assert [served.partition("-")[0] for served in run.served] == ["ORP004"]
    home.append(LOST, "user", "and now?")
    assert home.messages(LOST)[-1]["content"] == "and now?"


def test_what_nothing_held_is_listed(hermes_home: Homes, oracle: Ask, tmp_path: Path) -> None:
    home = hermes_home("0.19.0")
    chat = talk(home)
    chat.compact()
    chat.say(user("And the end?"), assistant("The end."))
    home.end(LOST)
    before = reads(oracle, home, tmp_path / "copy")
    home.delete_after_verified(LOST)
    home.stop()

    plan = planned(home)
    said = " ".join(plan.choices[0].options[0].evidence)
    restored(home)

    now = reads(oracle, home, tmp_path / "copy")
    assert len(now[0]) == len(before[0])
    assert [row["role"] for row in now[0]] == [row["role"] for row in before[0]]
    assert len(before[2]) > len(now[2])
    assert "is in no file and stays lost: a summary stands for turns that nothing shows" in said
