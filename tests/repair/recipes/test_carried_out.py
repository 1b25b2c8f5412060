"""Recipes of rows and counters, on every release: carried out by the engine, looked at again, taken back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.audit.builder import NOW, VERSIONS, HomeBuilder
from tests.audit.routes import bind
from tests.audit.unset import WITH_STATE, loosen
from tests.repair.planning import plan_of

from statemend.formats import jsonl
from statemend.repair.apply import apply
from statemend.repair.plan import Plan, dump
from statemend.repair.run import State
from statemend.repair.undo import undo
from statemend.store.connection import open_for_audit
from statemend.store.history import View, records, session_record
from statemend.store.identity import store_digest

Build = Callable[..., HomeBuilder]


#: All but the messages that get their state, and those that come back.
UNTOUCHED = "SELECT * FROM messages WHERE session_id NOT IN ('stateless', 'ghost') ORDER BY id"
GHOST = "SELECT id, session_id, role, content, timestamp FROM messages WHERE session_id = 'ghost' ORDER BY id"


def damaged(home: HomeBuilder) -> None:
    """Everything at once: two orphans, a child of one of them, wrong counters, a dead link, a topic bound to
    nothing, a tail without its beginning, and where messages have a state one that lost it."""
    for name in ("gone", "gone-too"):
        home.chat(name, 5)
    home.sql("DELETE FROM sessions")
    home.chat("child", 2, parent_session_id="gone")
    home.chat("detached", 2, parent_session_id="nobody")
    home.chat("miscounted", 4)
    home.sql("UPDATE sessions SET message_count = 77, tool_call_count = 5 WHERE id = 'miscounted'")
    bind(home, "nowhere")
    behead(home)
    if home.version in WITH_STATE:
        loosen(home).chat("stateless", 2)
        home.turns("stateless", 1, active=None)


def behead(home: HomeBuilder) -> None:
    """An exported session of which a row made in passing and the last two messages are left."""
    home.chat("ghost", 5)
    with open_for_audit(home.store) as store:
        row, rows = session_record(store, "ghost"), list(records(store, "ghost", View.RAW))
    home.file("session-exports/ghost.jsonl", "".join(jsonl.render(row or {}, rows)))
    home.sql("DELETE FROM messages WHERE session_id = 'ghost' AND content < 'turn 3'")
    home.sql("UPDATE sessions SET source = 'unknown', message_count = 2 WHERE id = 'ghost'")


def chosen(plan: Plan) -> Plan:
    """The plan with the first option of every choice."""
    choices = tuple(msgspec.structs.replace(choice, chosen=choice.options[0].id) for choice in plan.choices)
    return msgspec.structs.replace(plan, choices=choices)


def digest(home: HomeBuilder) -> str:
    with open_for_audit(home.store) as store:
        return store_digest(store)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_at_once(build: Build, tmp_path: Path, version: str) -> None:
    home = build(version)
    damaged(home)
    before, sequence = digest(home), home.sql("SELECT * FROM sqlite_sequence")
    messages = home.sql(UNTOUCHED)
    plan = chosen(plan_of(home))
    recipes = {"rebuild-session", "counters", "parents", "routing", "restore"}
    if version in WITH_STATE:
        recipes.add("heal-active")
    assert {step.recipe for step in plan.selected()} == recipes
    file = tmp_path / "plan.json"
    file.write_bytes(dump(plan))

    run = apply(file, run_dir=tmp_path / "run", now=NOW)

    assert (run.state, run.remaining, run.new, run.troubles) == (State.APPLIED, (), (), ())
    assert home.audit().findings == ()
    assert home.sql(UNTOUCHED) == messages
    assert [content for *_, content, _ in home.sql(GHOST)] == [f"turn {n} of ghost" for n in range(5)]
    again = plan_of(home)
    assert (again.findings, again.steps, again.choices, again.left) == ((), (), (), ())

    assert undo(tmp_path / "run", now=NOW).state is State.UNDONE

    assert digest(home) == before
    assert home.sql("SELECT * FROM sqlite_sequence") == sequence
    assert plan_of(home).id == plan.id
