"""relink: a cut continuation gets its parent back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import VERSIONS, HomeBuilder
from tests.repair.lineage import END, MARKING, carry, chains, child, choices, ended, export, left, mend, tips
from tests.repair.planning import only_step, option_steps, plan_of, text_of, values

from statemend.repair.cells import decode
from statemend.repair.plan import Kind, StepClass
from statemend.store.schema import Era

Build = Callable[..., HomeBuilder]


def cut(home: HomeBuilder, session_id: str = "new", after: float = 1.0, **values: object) -> None:
    child(home, session_id, after, **{"parent_session_id": None, **values})


@pytest.mark.parametrize("version", VERSIONS)
def test_carried_rows_at_the_right_time_link_it_unasked(build: Build, version: str) -> None:
    home = build(version)
    ended(home)
    cut(home)
    carry(home, "old", "new")

    plan = plan_of(home)
    step = only_step(plan)

    assert (step.recipe, step.step_class, step.sessions) == ("relink", StepClass.SAFE, ("new",))
    (operation,) = step.operations
    assert (operation.kind, operation.table, operation.key) == (Kind.UPDATE, "sessions", {"id": "new"})
    assert values(operation) == {"parent_session_id": "old"}
    assert decode(operation.before["parent_session_id"]) is None
    assert operation.before_digest
    assert "carries rows of the other" in step.sources[0].origin
    assert "served by the relink of new" in left(plan, "LIN001")[0].reason
    mend(home, (step,))
    assert home.audit("LIN").findings == ()
    assert tips(home, "old", (*MARKING, Era.V13, Era.V16)) == {"new"}
    assert chains(home, "old") == {("old", "new")}


def test_an_export_that_names_the_link_decides(build: Build) -> None:
    home = build()
    ended(home)
    cut(home)
    export(home, "new", "old")

    step = only_step(plan_of(home))

    assert step.step_class is StepClass.SAFE
    (source,) = step.sources
    assert source.artifact is not None
    assert source.artifact.endswith("kept.jsonl")
    assert source.digest is not None
    assert source.locator == "session new"
    mend(home, (step,))


@pytest.mark.parametrize("values", [{}, {"after": 90_000.0, "title": "Plan #2"}])
def test_time_or_title_alone_is_a_choice(build: Build, values: dict[str, object]) -> None:
    home = build()
    ended(home, title="Plan")
    cut(home, **values)

    plan = plan_of(home)
    (choice,) = choices(plan, "relink")

    assert plan.steps == ()
    assert [option.id for option in choice.options] == ["old > new", "leave"]
    assert choice.options[1].steps == ()
    told = " ".join(choice.options[0].evidence)
    assert "0 of the first rows behind the summary" in told
    assert "0 other parents fit new" in told
    mend(home, option_steps(choice, "old > new"))
    assert tips(home, "old") == {"new"}


def test_carried_rows_alone_at_a_far_time_are_a_choice(build: Build) -> None:
    home = build()
    ended(home)
    cut(home, after=90_000.0)
    carry(home, "old", "new")

    plan = plan_of(home)

    assert plan.steps == ()
    (choice,) = choices(plan, "relink")
    assert "2 of the first rows" in " ".join(choice.options[0].evidence)


def test_two_sessions_that_fit_one_dead_end_are_one_choice(build: Build) -> None:
    home = build()
    ended(home)
    cut(home, "a", 1)
    cut(home, "b", 2)
    carry(home, "old", "a")

    plan = plan_of(home)
    (choice,) = choices(plan, "relink")

    assert plan.steps == ()
    assert [option.id for option in choice.options] == ["old > a", "old > b", "leave"]
    assert "carries rows of the other" in choice.options[0].evidence
    assert "carries rows of the other" not in choice.options[1].evidence
    (other,) = left(plan, "LIN009")
    assert other.reason.startswith(f"decided together with {choice.finding}")
    mend(home, option_steps(choice, "old > a"))
    assert tips(home, "old") == {"a"}


def test_two_dead_ends_and_two_roots_list_every_way(build: Build) -> None:
    home = build()
    for number, name in enumerate(("one", "two")):
        ended(home, name, ended_at=END + number)
    cut(home, "a", 2)
    cut(home, "b", 3)

    plan = plan_of(home)
    (choice,) = choices(plan, "relink")

    assert {option.id for option in choice.options} == {
        "one > a; two > b",
        "one > b; two > a",
        "one > a",
        "one > b",
        "two > a",
        "two > b",
        "leave",
    }
    steps = option_steps(choice, "one > b; two > a")
    assert len({step.finding for step in steps}) == 2
    mend(home, steps)
    assert tips(home, "one") == {"b"}
    assert tips(home, "two") == {"a"}
    assert home.audit("LIN").findings == ()


def test_too_many_ways_leave_one_link_at_a_time(build: Build) -> None:
    home = build()
    for number in range(4):
        ended(home, f"old{number}", ended_at=END + number)
        cut(home, f"new{number}", 10.0 + number)

    (choice,) = choices(plan_of(home), "relink")

    assert len(choice.options) == 16 + 1
    assert all(len(option.steps) == 1 for option in choice.options[:-1])
    assert len({step.id for option in choice.options for step in option.steps}) == 16


def test_a_root_older_than_the_dead_end_is_never_linked_to_it(build: Build) -> None:
    home = build()
    ended(home, started_at=END + 50, ended_at=END + 60)
    cut(home, after=1.0)

    plan = plan_of(home)

    assert plan.steps == ()
    assert choices(plan, "relink") == []
    assert left(plan, "LIN009")[0].reason == "no session of this store fits as its parent"


def test_a_root_is_never_linked_below_itself(build: Build) -> None:
    home = build()
    cut(home, "root", 1, ended_at=END + 1, end_reason="compression")
    child(home, "tip", 1, parent_session_id="root", ended_at=END + 2, end_reason="compression")

    plan = plan_of(home)

    assert plan.steps == ()
    assert choices(plan, "relink") == []


@pytest.mark.parametrize(("version", "safe"), [("0.16.0", False), ("0.17.0", False), ("0.18.2", True)])
def test_a_start_before_the_parents_end_asks_where_the_release_would_misread_it(
    build: Build, version: str, safe: bool
) -> None:
    home = build(version)
    ended(home)
    cut(home, after=-1.0)
    carry(home, "old", "new")

    plan = plan_of(home)

    assert bool(plan.steps) is safe
    if not safe:
        (choice,) = choices(plan, "relink")
        assert "would mark it as a subagent run" in choice.options[0].evidence[-1]


def test_without_a_dead_end_it_is_left(build: Build) -> None:
    home = build()
    cut(home)

    plan = plan_of(home)

    assert (plan.steps, plan.choices) == ((), ())
    assert left(plan, "LIN009")[0].reason == "no session of this store fits as its parent"


def test_a_deleted_parent_that_an_export_names_is_lawful(build: Build) -> None:
    home = build()
    cut(home)
    export(home, "new", "gone")

    (one,) = left(plan_of(home), "LIN009")

    assert one.reason.startswith("lawful as it is")


def test_no_text_of_a_message_is_in_the_plan(build: Build) -> None:
    home = build()
    ended(home)
    cut(home)
    carry(home, "old", "new")

    assert "last question" not in text_of(plan_of(home))
