"""branch-mark: a branch gets the mark that it lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import VERSIONS, HomeBuilder
from tests.repair.lineage import END, SUMMARY, choices, config, left, mend, tips
from tests.repair.planning import only_choice, only_step, option_steps, plan_of, text_of

from statemend.repair.plan import StepClass

Build = Callable[..., HomeBuilder]


def branch(home: HomeBuilder, **values: Any) -> None:
    """A session that begins with copies of another's rows and then goes on by itself."""
    home.chat("old", 4)
    home.session("new", **{"parent_session_id": "old", "started_at": END, "message_count": 5, **values})
    for number in range(4):
        role = ("user", "assistant")[number % 2]
        home.message("new", role, f"turn {number} of old", timestamp=END, finish_reason="stop")
    home.message("new", "user", "another way", timestamp=END + 60)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_branch_under_an_open_parent_is_marked_unasked(build: Build, version: str) -> None:
    home = build(version)
    branch(home, model_config='{"cwd": "/srv"}')
    step = only_step(plan_of(home))
    assert (step.recipe, step.step_class, step.sessions) == ("branch-mark", StepClass.SAFE, ("new",))
    mend(home, (step,))
    assert config(home, "new") == '{"cwd": "/srv", "_branched_from": "old"}'
    assert tips(home, "old") == {"old"}
    again = plan_of(home)
    assert (again.steps, again.choices) == ((), ())


def test_a_branch_that_its_parents_end_still_tells_is_a_choice(build: Build) -> None:
    home = build("0.19.0")
    branch(home)
    home.sql(f"UPDATE sessions SET ended_at = {END - 1}, end_reason = 'branched' WHERE id = 'old'")
    plan = plan_of(home)
    choice = only_choice(plan)
    assert [option.id for option in choice.options] == ["mark", "leave"]
    assert any(
        "4 of its first 5 rows stand among the last of old" in line for line in choice.options[0].evidence
    )
    assert "turn 1" not in text_of(plan)
    mend(home, option_steps(choice, "mark"))
    assert json.loads(config(home, "new")) == {"_branched_from": "old"}


def test_what_continues_a_branch_is_marked_with_it_when_it_must(build: Build) -> None:
    home = build("0.22.2")
    branch(home, ended_at=END + 90, end_reason="compression")
    home.session("rest", parent_session_id="new", started_at=END + 91, message_count=1)
    home.message("rest", "user", SUMMARY, timestamp=END + 91)
    plan = plan_of(home)
    steps = plan.steps or option_steps(choices(plan, "branch-mark")[0], "mark")
    mend(home, steps)
    assert tips(home, "new") <= {"new", "rest"}


def test_the_only_continuation_is_not_made_a_branch(build: Build) -> None:
    home = build("0.22.2")
    branch(home)
    home.sql(f"UPDATE sessions SET ended_at = {END - 1}, end_reason = 'compression' WHERE id = 'old'")
    plan = plan_of(home)
    assert plan.steps == ()
    assert "another fault" in left(plan, "LIN006")[0].reason


def test_a_configuration_that_cannot_be_edited_is_left(build: Build) -> None:
    home = build("0.22.2")
    branch(home, model_config="[1]")
    plan = plan_of(home)
    assert plan.steps == ()
    assert "no JSON object" in left(plan, "LIN006")[0].reason
