from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.audit.builder import NOW, HomeBuilder
from tests.audit.unset import WITH_ARCHIVE, WITH_STATE, loosen
from tests.repair.planning import carry_out, only_choice, only_step, option_steps, plan_of, text_of

from statemend.repair.apply import apply
from statemend.repair.plan import Plan, StepClass, dump
from statemend.repair.run import State
from statemend.repair.undo import undo
from statemend.store.connection import open_for_audit
from statemend.store.identity import store_digest

Build = Callable[..., HomeBuilder]


def states(home: HomeBuilder, session_id: str) -> list[tuple[int | None, int | None]]:
    compacted = "compacted" if "compacted" in home.columns("messages") else "0"
    return home.sql(
        f"SELECT active, {compacted} FROM messages WHERE session_id = ? ORDER BY id", bindings=(session_id,)
    )


def hidden(home: HomeBuilder) -> None:
    """A session of which one message lost its state, counted as Hermes counts."""
    loosen(home).chat("a", 2)
    home.turns("a", 1, active=None)


def passed_over(home: HomeBuilder) -> None:
    """A row from before a compaction, one that says that it was archived, and one behind an undone turn."""
    loosen(home).session("a", message_count=2)
    home.message("a", active=None)
    home.message("a", active=0, compacted=1)
    home.message("a", active=None, compacted=1)
    home.message("a")
    home.message("a", active=0)
    home.message("a", active=None)
    home.message("a")


@pytest.mark.parametrize("version", WITH_STATE)
def test_a_row_that_nothing_speaks_against_becomes_live(build: Build, version: str) -> None:
    home = build(version)
    hidden(home)

    step = only_step(plan_of(home))

    assert (step.recipe, step.step_class, step.sessions) == ("heal-active", StepClass.SAFE, ("a",))
    assert [operation.table for operation in step.operations] == ["messages"]
    carry_out(home, (step,))
    assert states(home, "a") == [(1, 0)] * 3
    again = plan_of(home)
    assert (again.findings, again.steps, again.choices, again.left) == ((), (), (), ())


def test_a_row_that_says_it_was_archived_is_archived_again(build: Build) -> None:
    home = loosen(build("0.19.0"))
    home.chat("a", 2)
    home.message("a", active=None, compacted=1)

    carry_out(home, (only_step(plan_of(home)),))

    assert states(home, "a") == [(1, 0), (1, 0), (0, 1)]


@pytest.mark.parametrize("version", WITH_ARCHIVE)
@pytest.mark.parametrize(
    ("option", "expected", "count"),
    [
        ("aside", [(0, 1), (0, 1), (0, 1), (1, 0), (0, 0), (0, 0), (1, 0)], 2),
        ("live", [(1, 0), (0, 1), (0, 1), (1, 0), (0, 0), (1, 0), (1, 0)], 4),
    ],
)
def test_rows_that_were_passed_over_are_a_choice(
    build: Build, version: str, option: str, expected: list[tuple[int, int]], count: int
) -> None:
    home = build(version)
    passed_over(home)

    choice = only_choice(plan_of(home))

    assert [each.id for each in choice.options] == ["aside", "live", "leave"]
    assert option_steps(choice, "leave") == ()
    carry_out(home, option_steps(choice, option))
    assert states(home, "a") == expected
    assert home.sql("SELECT message_count FROM sessions") == [(count,)]
    assert plan_of(home).findings == ()


def test_a_counter_that_no_longer_fits_is_set_with_the_rows(build: Build) -> None:
    home = build("0.19.0")
    hidden(home)
    home.sql("UPDATE sessions SET message_count = 2")

    carry_out(home, (only_step(plan_of(home)),))

    assert home.sql("SELECT message_count FROM sessions") == [(3,)]
    assert home.audit().findings == ()


@pytest.mark.parametrize("version", ["0.16.0", "0.19.0"])
def test_where_the_counter_was_wrong_before_the_rows_settle_it(build: Build, version: str) -> None:
    home = build(version)
    hidden(home)
    home.sql("UPDATE sessions SET message_count = 77")

    plan = plan_of(home)

    assert [step.recipe for step in plan.steps] == ["heal-active"]
    carry_out(home, plan.steps)
    assert home.audit().findings == ()


def test_an_orphan_waits_until_its_session_is_rebuilt(build: Build) -> None:
    home = build("0.16.0")
    hidden(home)
    home.sql("DELETE FROM sessions")

    plan = plan_of(home)

    assert [step.recipe for step in plan.steps] == ["rebuild-session"]
    (left,) = plan.left
    assert (left.rule, "ORP001-" in left.reason) == ("MSG001", True)
    carry_out(home, plan.steps)
    carry_out(home, (only_step(plan_of(home)),))
    assert home.audit().findings == ()


def test_an_id_that_is_no_valid_text_is_left_with_the_reason(build: Build) -> None:
    home = build("0.16.0")
    hidden(home)
    home.sql("UPDATE messages SET session_id = CAST(x'61ff' AS TEXT)")
    home.sql("UPDATE sessions SET id = CAST(x'61ff' AS TEXT)")

    plan = plan_of(home)

    assert not plan.steps
    assert any(left.rule == "MSG001" and "not valid text" in left.reason for left in plan.left)


def test_no_text_of_a_message_is_in_the_plan(build: Build) -> None:
    home = build("0.19.0")
    hidden(home)
    home.sql("UPDATE messages SET content = 'a secret of the user'")

    assert "a secret of the user" not in text_of(plan_of(home))


def digest(home: HomeBuilder) -> str:
    with open_for_audit(home.store) as store:
        return store_digest(store)


def chosen(plan: Plan) -> Plan:
    choices = tuple(msgspec.structs.replace(choice, chosen=choice.options[0].id) for choice in plan.choices)
    return msgspec.structs.replace(plan, choices=choices)


@pytest.mark.parametrize("version", WITH_STATE)
def test_the_engine_carries_it_out_and_takes_it_back(build: Build, tmp_path: Path, version: str) -> None:
    home = build(version)
    (passed_over if version in WITH_ARCHIVE else hidden)(home)
    home.sql("UPDATE messages SET content = char(0) || 'json:[]' WHERE id = (SELECT MAX(id) FROM messages)")
    before = digest(home)
    file = tmp_path / "plan.json"
    file.write_bytes(dump(chosen(plan_of(home))))

    run = apply(file, run_dir=tmp_path / "run", now=NOW)

    assert (run.state, run.remaining, run.new, run.troubles) == (State.APPLIED, (), (), ())
    assert home.audit().findings == ()
    assert undo(tmp_path / "run", now=NOW).state is State.UNDONE
    assert digest(home) == before
