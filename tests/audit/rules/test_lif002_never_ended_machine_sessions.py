"""LIF002 never-ended-machine-sessions: runs that nobody ended, in numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import NOW, START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Verdict

Build = Callable[..., HomeBuilder]
WEEK = 7 * 86400


def runs(home: HomeBuilder, number: int, source: str = "cron", **values: Any) -> None:
    for each in range(number):
        home.session(f"{source}_{each}", source=source, **values)


@pytest.mark.fires("LIF002")
@pytest.mark.parametrize("version", VERSIONS)
def test_ten_open_runs_are_a_leftover(build: Build, version: str) -> None:
    home = build(version)
    runs(home, 9)
    home.chat("last", 2, source="cron")
    (finding,) = home.findings("LIF002")
    assert finding.verdict is Verdict.LEFTOVER
    assert finding.subject.session is None
    assert facts(finding)["sessions"] == 10
    assert facts(finding)["of them without messages"] == 9
    assert facts(finding)["first to rest"] == "2026-09-21T14:13:20Z"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("source", ["cli", "telegram", "tui", "recovered"])
def test_sessions_of_people_are_silent(build: Build, version: str, source: str) -> None:
    home = build(version)
    runs(home, 12, source)
    assert home.findings("LIF002") == []


@pytest.mark.near_miss("LIF002")
@pytest.mark.parametrize(
    "values",
    [
        {"ended_at": START + 9, "end_reason": "cron_complete"},
        {"end_reason": "cron_complete"},
        {"pinned": 1},
        {"started_at": NOW - WEEK + 60},
        {"last_activity_at": NOW - WEEK + 60},
        {"started_at": "never"},
    ],
    ids=["ended", "half ended", "pinned", "new", "active", "no time"],
)
def test_near_misses_are_silent(build: Build, values: dict[str, Any]) -> None:
    home = build("0.22.2")
    runs(home, 12, **values)
    assert home.findings("LIF002") == []


def test_nine_of_a_source_are_left_to_chance(build: Build) -> None:
    home = build()
    runs(home, 9)
    runs(home, 9, "subagent")
    assert home.findings("LIF002") == []


def test_a_late_message_counts_as_activity(build: Build) -> None:
    home = build()
    runs(home, 10)
    home.message("cron_3", timestamp=NOW - 60)
    assert home.findings("LIF002") == []


def test_a_run_that_is_held_is_left_out(build: Build) -> None:
    home = build()
    runs(home, 10)
    lock = {"holder": "elsewhere", "acquired_at": NOW - 60, "expires_at": NOW + 60}
    home.insert("compression_locks", session_id="cron_3", **lock)
    assert home.findings("LIF002") == []
    home.sql(f"UPDATE compression_locks SET expires_at = {NOW - 60}")
    assert len(home.findings("LIF002")) == 1


def test_each_source_has_its_own_finding(build: Build) -> None:
    home = build()
    runs(home, 10)
    (cron,) = home.findings("LIF002")
    runs(home, 11, "api_server")
    more = {str(facts(each)["source"]): each for each in home.findings("LIF002")}
    assert more.keys() == {"api_server", "cron"}
    assert more["cron"].id == cron.id
