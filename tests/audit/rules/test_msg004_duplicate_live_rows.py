"""MSG004 duplicate-live-rows: one message stored twice, and both rows live."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
AT = START + 0.123456


def twice(home: HomeBuilder, session_id: str = "s", times: int = 2, **values: object) -> list[int]:
    return [home.message(session_id, **{"timestamp": AT, **values}) for _ in range(times)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_that_repeats_another_to_the_microsecond_is_a_fault(build: Build, version: str) -> None:
    home = build(version)
    home.chat("s")
    rows = twice(home, times=3)
    (finding,) = home.findings("MSG004")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.LOW)
    assert (finding.subject.session, finding.subject.message_ids) == ("s", (rows[0],))
    assert finding.summary.startswith("2 live rows repeat ")
    assert facts(finding)["rows that only repeat another"] == 2
    assert facts(finding)["first rows, how often, and when"] == [
        f"{rows[0]}: 3 times, at 2026-09-21T14:13:20Z"
    ]


def test_one_repetition_is_told_in_the_singular(build: Build) -> None:
    home = build()
    home.chat("s")
    twice(home, times=2)
    (finding,) = home.findings("MSG004")
    assert finding.summary.startswith("1 live row repeats ")


@pytest.mark.fires("MSG004")
def test_a_batch_that_was_stored_twice_is_one_finding(build: Build) -> None:
    home = build()
    home.session("s")
    batch = [
        {"role": "user", "content": "run it", "timestamp": AT},
        {"role": "assistant", "content": None, "tool_calls": '[{"id": "c1"}]', "timestamp": AT + 1.5},
        {
            "role": "tool",
            "content": "\0json:[1]",
            "tool_call_id": "c1",
            "tool_name": "t",
            "timestamp": AT + 2.25,
        },
    ]
    rows = [home.message("s", **message) for message in (*batch, *batch)]
    (finding,) = home.findings("MSG004")
    assert finding.subject.message_ids == tuple(rows[:3])


@pytest.mark.near_miss("MSG004")
@pytest.mark.parametrize(
    "change",
    [
        {"timestamp": AT + 1e-6},
        {"content": "other"},
        {"role": "assistant"},
        {"tool_calls": "[]"},
        {"tool_call_id": "c2"},
        {"platform_message_id": "7"},
        {"active": 0, "compacted": 1},
        {"active": 0},
    ],
    ids=str,
)
def test_rows_that_differ_in_anything_are_two_messages(build: Build, change: dict[str, object]) -> None:
    home = build()
    home.session("s")
    home.message("s", timestamp=AT)
    home.message("s", **{"timestamp": AT, **change})
    assert home.findings("MSG004") == []


def test_times_in_whole_seconds_tell_nothing(build: Build) -> None:
    home = build()
    home.session("s")
    twice(home, timestamp=START)
    twice(home, timestamp=int(START) + 5)
    twice(home, timestamp="later")
    assert home.findings("MSG004") == []


def test_a_batch_with_one_time_for_all_tells_nothing(build: Build) -> None:
    home = build()
    home.session("s")
    twice(home, content="ok")
    home.message("s", "assistant", "fine", timestamp=AT)
    assert home.findings("MSG004") == []


def test_one_message_in_two_sessions_is_none_of_it(build: Build) -> None:
    home = build()
    for session_id in ("a", "b"):
        home.session(session_id)
        home.message(session_id, timestamp=AT)
    assert home.findings("MSG004") == []
