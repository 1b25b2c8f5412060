"""Which session asked for a subagent's run, by calls of every shape and at the edges of time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder, facts

from statemend.audit.finding import Verdict

Build = Callable[..., HomeBuilder]
GOAL = "Which birds sing at night?"


def called(home: HomeBuilder, calls: Any, at: float = 60.0) -> None:
    """A conversation whose agent made these calls, so many seconds after ``START``."""
    home.chat("talk", 2)
    home.message("talk", "assistant", "", tool_calls=calls, timestamp=START + at)


def run(home: HomeBuilder, session_id: str = "run", role: str = "user") -> None:
    """A bare row, begun 61 seconds after ``START`` and answered 90 seconds after it."""
    home.session(session_id, source="unknown", started_at=START + 61)
    home.message(session_id, role, GOAL, timestamp=START + 61)
    home.message(session_id, "assistant", "Nightingales do.", timestamp=START + 90)


def verdicts(home: HomeBuilder) -> dict[str | None, Verdict]:
    return {finding.subject.session: finding.verdict for finding in home.findings("LIN011")}


def test_the_one_that_asks_is_found_behind_calls_of_other_shapes(build: Build) -> None:
    home = build()
    other = {"function": {"name": "terminal", "arguments": json.dumps({"goal": GOAL})}}
    asks = {"function": {"name": "delegate_task", "arguments": {"goal": GOAL}}}
    called(home, ["odd", {"function": "delegate_task"}, {"function": {}}, other, asks])
    run(home)
    assert verdicts(home) == {"run": Verdict.FAULT}


@pytest.mark.parametrize("calls", ["7", '{"function": 7}', "null"])
def test_calls_that_are_no_list_ask_for_nothing(build: Build, calls: str) -> None:
    home = build()
    called(home, calls)
    run(home)
    assert verdicts(home) == {"run": Verdict.UNDECIDABLE}


@pytest.mark.parametrize(
    ("at", "verdict"),
    [
        (61 - 3600.5, Verdict.UNDECIDABLE),
        (61 - 3600.0, Verdict.FAULT),
        (90 + 3600.0, Verdict.FAULT),
        (90 + 3600.5, Verdict.UNDECIDABLE),
    ],
)
def test_a_call_counts_within_an_hour_of_the_run(build: Build, at: float, verdict: Verdict) -> None:
    home = build()
    called(home, [{"function": {"name": "delegate_task", "arguments": json.dumps({"goal": GOAL})}}], at)
    run(home)
    assert verdicts(home) == {"run": verdict}


def test_each_bare_row_is_looked_at_and_none_asks_for_itself(build: Build) -> None:
    home = build()
    run(home, "answer-first", "assistant")
    home.session("empty", source="unknown")
    calls = [{"function": {"name": "delegate_task", "arguments": json.dumps({"goal": GOAL})}}]
    run(home)
    home.sql(
        "UPDATE messages SET tool_calls = ? WHERE session_id = 'run' AND role = 'assistant'",
        bindings=(json.dumps(calls),),
    )
    run(home, "second")
    (first, second) = home.findings("LIN011")
    assert (first.subject.session, first.verdict) == ("second", Verdict.FAULT)
    assert facts(first)["sessions that asked for exactly this"] == 1
    assert (second.subject.session, second.verdict) == ("run", Verdict.UNDECIDABLE)
