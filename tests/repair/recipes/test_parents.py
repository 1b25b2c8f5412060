from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder
from tests.repair.planning import carry_out, only_choice, option_steps, plan_of, text_of

from statemend.repair.recipes.parents import FORMER

Build = Callable[..., HomeBuilder]


def state(home: HomeBuilder, session_id: str) -> tuple[Any, ...]:
    return home.sql(
        "SELECT parent_session_id, model_config FROM sessions WHERE id = ?", bindings=(session_id,)
    )[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_detaching_is_offered_and_keeps_the_id_of_the_parent(build: Build, version: str) -> None:
    home = build(version)
    home.chat("child", parent_session_id="nobody", model_config={"yolo_mode": True})

    choice = only_choice(plan_of(home))

    assert [option.id for option in choice.options] == ["detach", "leave"]
    assert option_steps(choice, "leave") == ()
    carry_out(home, option_steps(choice, "detach"))
    parent, config = state(home, "child")
    assert (parent, json.loads(config)) == (None, {"yolo_mode": True, FORMER: "nobody"})
    assert home.findings("ORP002") == []
    again = plan_of(home)
    assert (again.steps, again.choices) == ((), ())


def test_a_parent_that_is_there_is_left_alone(build: Build) -> None:
    home = build()
    home.chat("parent")
    home.chat("child", parent_session_id="parent")

    assert plan_of(home).choices == ()


def export(home: HomeBuilder, parent: str, name: str = "child.jsonl") -> None:
    message = {"role": "user", "content": "turn 0 of child", "timestamp": START}
    session = {"id": "child", "source": "cli", "parent_session_id": parent, "messages": [message]}
    home.file(f"session-exports/{name}", json.dumps(session) + "\n")


def test_another_parent_that_an_export_names_and_the_store_has_is_offered(build: Build) -> None:
    home = build()
    home.chat("other")
    home.chat("child", parent_session_id="nobody")
    export(home, "other")

    choice = only_choice(plan_of(home))

    assert [option.id for option in choice.options] == ["parent:other", "detach", "leave"]
    assert "child.jsonl names it" in choice.options[0].evidence[0]
    carry_out(home, option_steps(choice, "parent:other"))
    assert state(home, "child") == ("other", None)


@pytest.mark.parametrize("parent", ["nobody", "not-there-either", "child", "grandchild"])
def test_no_parent_is_offered_that_is_missing_or_would_close_a_circle(build: Build, parent: str) -> None:
    home = build()
    home.chat("child", parent_session_id="nobody")
    home.chat("grandchild", parent_session_id="child")
    export(home, parent)

    choice = only_choice(plan_of(home))

    assert [option.id for option in choice.options] == ["detach", "leave"]


def test_a_configuration_that_is_no_object_stays_as_it_is(build: Build) -> None:
    home = build()
    home.chat("child", parent_session_id="nobody", model_config="not json")

    choice = only_choice(plan_of(home))

    assert "cannot be added to" in choice.options[0].title
    carry_out(home, option_steps(choice, "detach"))
    assert state(home, "child") == (None, "not json")


def test_an_id_that_is_no_valid_text_is_left_with_the_reason(build: Build) -> None:
    home = build()
    home.chat("child", 0, parent_session_id="nobody")
    home.sql("UPDATE sessions SET id = CAST(x'61ff' AS TEXT)")

    plan = plan_of(home)

    assert not plan.choices
    assert any(left.rule == "ORP002" and "not valid text" in left.reason for left in plan.left)


def test_no_text_of_a_message_is_in_the_plan(build: Build) -> None:
    home = build()
    home.chat("child", parent_session_id="nobody")
    home.sql("UPDATE messages SET content = 'a secret of the user'")

    assert "a secret of the user" not in text_of(plan_of(home))
