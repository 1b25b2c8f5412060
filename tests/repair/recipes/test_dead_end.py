"""dead-end: a closed session that nothing continues may be reopened."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import NOW, VERSIONS, HomeBuilder
from tests.repair.lineage import END, child, choices, ended, export, left, mend
from tests.repair.planning import only_choice, option_steps, plan_of, values

from statemend.repair.cells import decode
from statemend.repair.plan import StepClass

Build = Callable[..., HomeBuilder]


@pytest.mark.parametrize("version", VERSIONS)
def test_reopening_is_offered_and_never_done_unasked(build: Build, version: str) -> None:
    home = build(version)
    ended(home)

    choice = only_choice(plan_of(home))

    assert [option.id for option in choice.options] == ["reopen", "leave"]
    (step,) = option_steps(choice, "reopen")
    assert step.step_class is StepClass.CHOICE
    (operation,) = step.operations
    assert values(operation) == {"ended_at": None, "end_reason": None}
    before = {name: decode(cell) for name, cell in operation.before.items()}
    assert before == {"ended_at": END, "end_reason": "compression"}
    assert option_steps(choice, "leave") == ()
    mend(home, (step,))
    assert home.sql("SELECT ended_at, end_reason FROM sessions") == [(None, None)]
    again = plan_of(home)
    assert (again.steps, again.choices, again.left) == ((), (), ())


def test_vanished_rows_are_told_in_the_evidence(build: Build) -> None:
    home = build()
    ended(home)
    child(home, "new")
    home.sql("DELETE FROM messages WHERE session_id = 'new'", "DELETE FROM sessions WHERE id = 'new'")

    choice = only_choice(plan_of(home))

    assert "it was never stored, or it was deleted" in choice.options[0].evidence[0]


def test_a_fitting_session_leaves_it_to_the_relink(build: Build) -> None:
    home = build()
    ended(home)
    child(home, "new", parent_session_id=None)

    plan = plan_of(home)

    assert choices(plan, "dead-end") == []
    (one,) = left(plan, "LIN001")
    (cut,) = home.findings("LIN009")
    assert one.reason == f"served by the relink of new ({cut.id})"


def test_a_continuation_known_to_be_deleted_is_lawful(build: Build) -> None:
    home = build()
    ended(home)
    export(home, "new", "old")

    plan = plan_of(home)

    assert (plan.steps, plan.choices) == ((), ())
    assert left(plan, "LIN001")[0].reason.startswith("lawful as it is")


def test_a_continued_session_is_not_touched(build: Build) -> None:
    home = build()
    ended(home)
    child(home, "new")

    plan = plan_of(home)

    assert (plan.steps, plan.choices, plan.left) == ((), (), ())


def test_children_and_an_expired_lock_are_told_and_kept(build: Build) -> None:
    home = build("0.22.2")
    ended(home)
    child(home, "side", first="Once more.", model_config={"_branched_from": "old"})
    home.insert(
        "compression_locks", session_id="old", holder="elsewhere", acquired_at=END, expires_at=NOW - 60
    )

    choice = only_choice(plan_of(home))

    told = choice.options[0].evidence
    assert any("1 other session(s) name it as parent" in line for line in told)
    assert any("a compression lock of elsewhere ran out" in line for line in told)
    mend(home, option_steps(choice, "reopen"))
    assert home.sql("SELECT COUNT(*) FROM compression_locks") == [(1,)]
    assert home.sql("SELECT parent_session_id FROM sessions WHERE id = 'side'") == [("old",)]
