"""half-end: half an end is completed or cleared, as the operator says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder
from tests.repair.lineage import left
from tests.repair.planning import carry_out, only_choice, option_steps, plan_of, sources

from statemend.repair.plan import StepClass

Build = Callable[..., HomeBuilder]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("half", "option", "row"),
    [
        ({"ended_at": START + 9}, "complete", (START + 9, "ended_by_repair")),
        ({"end_reason": "cli_close"}, "complete", (START + 3, "cli_close")),
        ({"ended_at": START + 9}, "clear", (None, None)),
        ({"end_reason": "cli_close"}, "clear", (None, None)),
    ],
    ids=["no reason", "no end", "clear an end", "clear a reason"],
)
def test_both_ways_are_offered_and_each_settles_it(
    build: Build, version: str, half: dict[str, object], option: str, row: tuple[object, object]
) -> None:
    home = build(version)
    home.chat("s", 4, **half)
    choice = only_choice(plan_of(home))
    assert [each.id for each in choice.options] == ["complete", "clear", "leave"]
    assert option_steps(choice, "leave") == ()
    steps = option_steps(choice, option)
    assert [step.step_class for step in steps] == [StepClass.CHOICE]

    carry_out(home, steps)

    assert home.sql("SELECT ended_at, end_reason FROM sessions") == [row]
    assert home.findings("LIF001") == []
    assert plan_of(home, rules=["LIF"]).choices == ()


def test_where_a_value_comes_from_is_said(build: Build) -> None:
    home = build()
    home.session("empty", end_reason="cli_close")
    (step,) = option_steps(only_choice(plan_of(home, rules=["LIF001"])), "complete")
    assert sources(step) == {"ended_at": "the time of its start: it has no message"}

    home = build(name="other")
    home.chat("s", 2, ended_at=START)
    (step,) = option_steps(only_choice(plan_of(home, rules=["LIF001"])), "complete")
    assert sources(step) == {"end_reason": "made up: no reason is known"}


def test_without_any_time_it_can_only_be_cleared(build: Build) -> None:
    home = build()
    home.session("s", end_reason="cli_close", started_at="never")
    choice = only_choice(plan_of(home, rules=["LIF001"]))
    assert [option.id for option in choice.options] == ["clear", "leave"]


@pytest.mark.parametrize("reason", ["compression", "branched"])
def test_a_reason_that_leads_on_is_left_to_whoever_knows(build: Build, reason: str) -> None:
    home = build()
    home.chat("s", 2, end_reason=reason)
    (one,) = left(plan_of(home, rules=["LIF001"]), "LIF001")
    assert one.reason.endswith("settle it by hand")
