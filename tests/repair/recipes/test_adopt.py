"""adopt: a subagent's run gets the parent that asked for it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder
from tests.repair.lineage import choices, config, left, mend
from tests.repair.planning import option_steps, plan_of, text_of

Build = Callable[..., HomeBuilder]
GOAL = "Which birds sing at night?"


def asked(home: HomeBuilder, session_id: str = "talk") -> None:
    home.chat(session_id, 2)
    function = {"name": "delegate_task", "arguments": json.dumps({"goal": GOAL})}
    home.message(session_id, "assistant", "", tool_calls=[{"id": "c", "function": function}])
    home.message(session_id, "tool", "Nightingales do.", tool_call_id="c")
    home.sql(
        "UPDATE sessions SET message_count = 4, tool_call_count = 1 WHERE id = ?", bindings=(session_id,)
    )


def rescued(home: HomeBuilder, task: str = GOAL) -> None:
    home.session("run", source="unknown", started_at=START + 5, message_count=2)
    home.message("run", "user", task, timestamp=START + 5)
    home.message("run", "assistant", "Nightingales do.", timestamp=START + 6, finish_reason="stop")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_session_that_asked_becomes_the_parent(build: Build, version: str) -> None:
    home = build(version)
    asked(home)
    rescued(home)
    plan = plan_of(home)
    (choice,) = choices(plan, "adopt")
    assert [option.id for option in choice.options] == ["run-of:talk", "leave"]
    assert "birds" not in text_of(plan)
    mend(home, option_steps(choice, "run-of:talk"))
    assert home.sql("SELECT parent_session_id, source FROM sessions WHERE id = 'run'") == [
        ("talk", "unknown")
    ]
    assert json.loads(config(home, "run")) == {"_delegate_from": "talk"}


def test_each_session_that_asked_is_an_option(build: Build) -> None:
    home = build("0.22.2")
    asked(home)
    asked(home, "rest")
    rescued(home)
    (choice,) = choices(plan_of(home), "adopt")
    assert [option.id for option in choice.options] == ["run-of:talk", "run-of:rest", "leave"]
    mend(home, option_steps(choice, "run-of:rest"))


def test_where_nobody_is_known_to_have_asked_it_is_left(build: Build) -> None:
    home = build()
    rescued(home)
    plan = plan_of(home)
    assert choices(plan, "adopt") == []
    assert "nothing here says who asked" in left(plan, "LIN011")[0].reason


def test_a_session_that_comes_from_the_run_is_no_parent_of_it(build: Build) -> None:
    home = build()
    asked(home)
    rescued(home)
    home.sql("UPDATE sessions SET parent_session_id = 'run' WHERE id = 'talk'")
    plan = plan_of(home)
    assert choices(plan, "adopt") == []
    assert "come from it" in left(plan, "LIN011")[0].reason
