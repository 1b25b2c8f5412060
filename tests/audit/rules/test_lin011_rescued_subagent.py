"""LIN011 rescued-subagent: a run whose row was made again without its parent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
GOAL = "Which birds sing at night?"


def call(arguments: Any, name: str = "delegate_task") -> list[dict[str, Any]]:
    return [{"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}]


def asked(home: HomeBuilder, arguments: Any = None, session_id: str = "talk", **values: Any) -> None:
    """A conversation whose agent asks a subagent for something, a minute after ``START``."""
    home.chat(session_id, 2)
    arguments = json.dumps({"goal": GOAL}) if arguments is None else arguments
    told = {"tool_calls": call(arguments), "timestamp": START + 60}
    home.message(session_id, "assistant", "", **{**told, **values})


def rescued(home: HomeBuilder, task: str = GOAL, **values: Any) -> int:
    """A bare row with a task and its answer, begun just after that."""
    home.session("run", **{"source": "unknown", "started_at": START + 61, **values})
    row = home.message("run", "user", task, timestamp=START + 61)
    home.message("run", "assistant", "Nightingales do.", timestamp=START + 90)
    return row


@pytest.mark.fires("LIN011")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_call_that_asked_for_it_makes_it_a_fault(build: Build, version: str) -> None:
    home = build(version)
    asked(home)
    row = rescued(home)
    (finding,) = home.findings("LIN011")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.MEDIUM)
    assert (finding.subject.session, finding.subject.message_ids) == ("run", (row,))
    told = facts(finding)
    assert told["sessions that asked for exactly this"] == 1
    assert told["asked by"] == ["talk, stored 2026-09-21T14:14:20Z"]
    assert "talk" in finding.remedy.text
    assert "birds" not in repr(finding)


@pytest.mark.parametrize("version", ["0.13.0", "0.22.2"])
def test_without_a_call_it_is_undecidable_and_says_what_would_tell(build: Build, version: str) -> None:
    home = build(version)
    rescued(home)
    (finding,) = home.findings("LIN011")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.LOW)
    assert "log of the time" in facts(finding)["what would decide"]


def test_one_task_of_several_counts(build: Build) -> None:
    home = build()
    asked(home, json.dumps({"tasks": [{"goal": "Which do not?"}, "odd", {"goal": f" {GOAL}\n"}]}))
    rescued(home)
    assert home.findings("LIN011")[0].verdict is Verdict.FAULT


def test_the_copy_of_a_call_in_a_continuation_is_a_second_candidate(build: Build) -> None:
    home = build()
    asked(home)
    asked(home, session_id="rest", timestamp=START + 120)
    rescued(home)
    (finding,) = home.findings("LIN011")
    assert [line.partition(",")[0] for line in facts(finding)["asked by"]] == ["talk", "rest"]
    assert "find the session" in finding.remedy.text


@pytest.mark.parametrize(
    "values",
    [
        {"timestamp": START - 4000},
        {"timestamp": START + 4000},
        {"timestamp": "then"},
        {"tool_calls": call(json.dumps({"goal": "Which birds sing by day?"}))},
        {"tool_calls": call(json.dumps({"goal": GOAL}), "terminal")},
        {"tool_calls": call("{")},
        {"tool_calls": '"delegate_task"'},
        {"role": "user"},
    ],
    ids=["long before", "long after", "no time", "other goal", "other tool", "broken", "no list", "user's"],
)
def test_a_call_that_does_not_fit_decides_nothing(build: Build, values: dict[str, Any]) -> None:
    home = build()
    home.chat("talk", 2)
    told = {"role": "assistant", "tool_calls": call(json.dumps({"goal": GOAL})), "timestamp": START + 60}
    told |= values
    home.message("talk", told.pop("role"), "", **told)
    rescued(home)
    assert [one.verdict for one in home.findings("LIN011")] == [Verdict.UNDECIDABLE]


@pytest.mark.near_miss("LIN011")
@pytest.mark.parametrize(
    "values",
    [
        {"source": "cli"},
        {"source": "subagent"},
        {"parent_session_id": "talk"},
        {"model_config": {"cwd": "/x"}},
    ],
    ids=["a person's", "a run's", "has a parent", "configured"],
)
def test_rows_that_are_not_bare_are_silent(build: Build, values: dict[str, Any]) -> None:
    home = build()
    asked(home)
    rescued(home, **values)
    assert home.findings("LIN011") == []


@pytest.mark.parametrize(
    "shape", ["two turns", "titled", "empty", "answer first", "summary first", "more in a file"]
)
def test_bare_rows_that_are_another_matter_are_silent(build: Build, shape: str) -> None:
    home = build()
    if shape == "empty":
        home.session("run", source="unknown")
    elif shape in ("answer first", "summary first"):
        home.session("run", source="unknown")
        first = ("assistant", "Go on.") if shape == "answer first" else ("user", SUMMARY)
        home.message("run", *first)
    else:
        rescued(home, title="Birds" if shape == "titled" else None)
        if shape == "two turns":
            home.message("run", "user", "And by day?", timestamp=START + 120)
    if shape == "more in a file":
        texts = ("Good evening", "Good evening.", GOAL)
        messages = [
            {"id": 7 + n, "role": ("user", "assistant")[n % 2], "content": text, "timestamp": START + n}
            for n, text in enumerate(texts)
        ]
        record = {"id": "run", "source": "cli", "started_at": START, "messages": messages}
        home.file("session-exports/run.jsonl", json.dumps(record) + "\n")
    assert home.findings("LIN011") == []


def test_a_caller_decides_even_where_a_later_turn_was_typed(build: Build) -> None:
    home = build()
    asked(home)
    rescued(home)
    home.message("run", "user", "[System: Continue exactly where you left off.]", timestamp=START + 120)
    assert home.findings("LIN011")[0].verdict is Verdict.FAULT
