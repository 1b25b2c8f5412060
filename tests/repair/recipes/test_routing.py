from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.audit.builder import NOW, START, VERSIONS, HomeBuilder
from tests.audit.routes import KEY, ROUTING, bind, filed, route
from tests.repair.planning import only_choice, only_step, option_steps, plan_of

from statemend.repair.apply import apply
from statemend.repair.plan import Kind, Plan, StepClass, dump
from statemend.repair.run import Run, State
from statemend.repair.undo import undo
from statemend.store.connection import open_for_audit
from statemend.store.identity import store_digest

Build = Callable[..., HomeBuilder]


def applied(home: HomeBuilder, plan: Plan) -> Run:
    """The run that carries out a plan, with the first option of every choice."""
    choices = tuple(msgspec.structs.replace(choice, chosen=choice.options[0].id) for choice in plan.choices)
    file = home.root.parent / "plan.json"
    file.write_bytes(dump(msgspec.structs.replace(plan, choices=choices)))
    return apply(file, run_dir=home.root.parent / "run", now=NOW)


def digest(home: HomeBuilder) -> str:
    with open_for_audit(home.store) as store:
        return store_digest(store)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_leads_nowhere_is_dropped_and_comes_back_with_an_undo(build: Build, version: str) -> None:
    home = build(version)
    home.chat("here", 2)
    bind(home, "here", "1")
    bind(home, "gone", "2")
    if version in ROUTING:
        route(home, "here", f"{KEY}:1")
        route(home, "gone")
    before = digest(home)

    step = only_step(plan_of(home))

    assert (step.recipe, step.step_class, step.sessions) == ("routing", StepClass.SAFE, ())
    assert {operation.kind for operation in step.operations} == {Kind.DELETE}
    run = applied(home, plan_of(home))
    assert (run.state, run.remaining, run.new, run.troubles) == (State.APPLIED, (), (), ())
    assert home.sql("SELECT thread_id FROM telegram_dm_topic_bindings") == [("1",)]
    if version in ROUTING:
        assert home.sql("SELECT session_key FROM gateway_routing") == [(f"{KEY}:1",)]
    assert home.audit().findings == ()
    again = plan_of(home)
    assert (again.findings, again.steps, again.choices, again.left) == ((), (), (), ())
    assert undo(Path(run.folder), now=NOW).state is State.UNDONE
    assert digest(home) == before


def test_a_row_with_a_column_of_a_later_release_is_dropped_and_comes_back(build: Build) -> None:
    home = build("0.22.2")
    home.sql("ALTER TABLE gateway_routing ADD COLUMN added_later TEXT")
    route(home, "gone")
    home.sql("UPDATE gateway_routing SET added_later = 'kept'")
    run = applied(home, plan_of(home))
    assert home.sql("SELECT * FROM gateway_routing") == []
    undo(Path(run.folder), now=NOW)
    assert home.sql("SELECT added_later FROM gateway_routing") == [("kept",)]


def test_a_table_from_before_scopes_is_served_too(build: Build) -> None:
    home = build("0.18.2")
    home.sql(
        "DROP TABLE gateway_routing",
        "CREATE TABLE gateway_routing (session_key TEXT PRIMARY KEY, entry_json TEXT NOT NULL, "
        "updated_at REAL NOT NULL, scope TEXT NOT NULL DEFAULT '')",
    )
    route(home, "gone")

    assert applied(home, plan_of(home)).state is State.APPLIED

    assert home.sql("SELECT COUNT(*) FROM gateway_routing") == [(0,)]


def test_a_route_that_the_gateway_reads_back_is_left_until_its_file_is_mended(build: Build) -> None:
    home = build("0.19.0")
    route(home, "gone")
    filed(home, "gone")

    plan = plan_of(home)

    (left,) = plan.left
    assert (plan.steps, plan.choices) == ((), ())
    assert KEY in left.reason
    assert "sessions/sessions.json" in left.reason
    home.file("sessions/sessions.json", json.dumps({"_README": "x"}))
    assert only_step(plan_of(home)).recipe == "routing"


def test_a_file_that_leads_to_a_session_that_is_there_does_no_harm(build: Build) -> None:
    home = build("0.19.0")
    home.chat("here", 2)
    route(home, "gone")
    filed(home, "here")

    assert only_step(plan_of(home)).recipe == "routing"


def test_a_session_that_an_export_holds_is_a_choice(build: Build) -> None:
    home = build("0.19.0")
    route(home, "gone")
    message = {"role": "user", "content": "hello", "timestamp": START}
    home.file(
        "session-exports/gone.jsonl",
        json.dumps({"id": "gone", "source": "cli", "messages": [message]}) + "\n",
    )

    choice = only_choice(plan_of(home, rules=["ORP006"]))

    assert [option.id for option in choice.options] == ["drop", "leave"]
    assert option_steps(choice, "leave") == ()
    assert "gone.jsonl" in choice.options[1].evidence[0]
    assert [step.step_class for step in option_steps(choice, "drop")] == [StepClass.CHOICE]


def test_an_orphan_that_is_rebuilt_keeps_its_route(build: Build) -> None:
    home = build("0.19.0")
    home.chat("orphan", 2)
    home.sql("DELETE FROM sessions")
    route(home, "orphan")
    bind(home, "orphan")

    run = applied(home, plan_of(home))

    assert run.state is State.APPLIED
    assert home.sql("SELECT COUNT(*) FROM gateway_routing") == [(1,)]
    assert home.sql("SELECT COUNT(*) FROM telegram_dm_topic_bindings") == [(1,)]
    assert home.audit().findings == ()


def test_leftovers_and_lost_prompts_are_left_with_the_reason(build: Build) -> None:
    home = build("0.22.2")
    home.insert("session_model_usage", session_id="gone", model="m")
    home.chat("promptless", 2, system_prompt_hash="b" * 64)

    plan = plan_of(home)

    assert (plan.steps, plan.choices) == ((), ())
    assert [left.rule for left in plan.left] == ["ORP006", "ORP006"]


def test_a_key_that_is_no_valid_text_is_left_with_the_reason(build: Build) -> None:
    home = build("0.19.0")
    route(home, "gone")
    home.sql("UPDATE gateway_routing SET session_key = CAST(x'61ff' AS TEXT)")

    plan = plan_of(home)

    assert not plan.steps
    assert "not valid text" in plan.left[0].reason
