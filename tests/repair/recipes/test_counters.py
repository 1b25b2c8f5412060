from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.audit.builder import VERSIONS, HomeBuilder
from tests.repair.planning import carry_out, only_step, plan_of, sources, text_of, values

from statemend.repair.cells import decode
from statemend.repair.plan import StepClass

Build = Callable[..., HomeBuilder]
CALLS = [{"id": "c1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}]


def miscounted(home: HomeBuilder, session_id: str, messages: int, calls: int = 0) -> None:
    home.sql(
        "UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?",
        bindings=(messages, calls, session_id),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_counter_becomes_what_the_release_would_hold(build: Build, version: str) -> None:
    home = build(version)
    home.chat("a", 4)
    miscounted(home, "a", 99)

    step = only_step(plan_of(home))

    assert (step.recipe, step.step_class, step.sessions) == ("counters", StepClass.SAFE, ("a",))
    (operation,) = step.operations
    assert values(operation) == {"message_count": 4}
    assert {name: decode(cell) for name, cell in operation.before.items()} == {"message_count": 99}
    assert "rows of the session" in sources(step)["message_count"]
    carry_out(home, (step,))
    again = plan_of(home)
    assert (again.steps, again.choices, again.left) == ((), (), ())


def test_archived_and_rewound_rows_are_not_counted(build: Build) -> None:
    home = build("0.19.0")
    home.chat("a", 4)
    home.message("a", active=0, compacted=1)
    home.message("a", active=0, compacted=0)
    miscounted(home, "a", 0)

    (operation,) = only_step(plan_of(home)).operations

    assert values(operation)["message_count"] == 4


@pytest.mark.parametrize(("version", "expected"), [("0.17.0", 4), ("0.19.0", 5)])
def test_a_row_whose_state_is_unset_counts_where_hermes_heals_it(
    build: Build, version: str, expected: int
) -> None:
    home = build(version)
    home.chat("a", 4)
    definition = home.sql("SELECT sql FROM sqlite_schema WHERE name = 'messages'")[0][0]
    loose = definition.replace("active INTEGER NOT NULL DEFAULT 1", "active INTEGER")
    assert loose != definition
    home.sql(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = ? WHERE name = 'messages'",
        "PRAGMA writable_schema = OFF",
        bindings=(loose,),
    )
    home.message("a", active=None)
    miscounted(home, "a", 99)

    (operation,) = only_step(plan_of(home, recipes=["counters"])).operations

    assert values(operation)["message_count"] == expected


def test_tool_calls_are_counted_by_entry_and_set_when_no_release_would_hold_the_number(build: Build) -> None:
    home = build("0.19.0")
    home.chat("a", 2)
    home.message("a", "assistant", tool_calls=json.dumps(CALLS * 2))
    home.message("a", "assistant", tool_calls=json.dumps(CALLS))
    miscounted(home, "a", 0, 17)

    (operation,) = only_step(plan_of(home)).operations

    assert values(operation) == {"message_count": 4, "tool_call_count": 3}


def test_calls_of_turns_taken_back_may_stay_counted(build: Build) -> None:
    home = build("0.19.0")
    home.chat("a", 2)
    home.message("a", "assistant", tool_calls=json.dumps(CALLS), active=0, compacted=0)
    miscounted(home, "a", 99, 1)

    (operation,) = only_step(plan_of(home)).operations

    assert values(operation) == {"message_count": 2}


def test_a_right_counter_is_left_alone(build: Build) -> None:
    home = build("0.19.0")
    home.chat("a", 4)

    plan = plan_of(home)

    assert (plan.findings, plan.steps, plan.choices, plan.left) == ((), (), (), ())


def test_a_session_whose_id_is_no_valid_text_is_left_with_the_reason(build: Build) -> None:
    home = build("0.19.0")
    home.chat("a", 2)
    home.sql("UPDATE messages SET session_id = CAST(x'61ff' AS TEXT)")
    home.sql("UPDATE sessions SET id = CAST(x'61ff' AS TEXT), message_count = 50")

    plan = plan_of(home)

    assert not plan.steps
    assert any(left.rule == "CNT001" and "not valid text" in left.reason for left in plan.left)


def test_no_text_of_a_message_is_in_the_plan(build: Build) -> None:
    home = build("0.19.0")
    home.chat("a", 2)
    home.message("a", content="a secret of the user")
    miscounted(home, "a", 99)

    assert "a secret of the user" not in text_of(plan_of(home))
