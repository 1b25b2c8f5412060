"""LIF003 empty-ghosts: rows without a message that no healthy day leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import NOW, START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Verdict

Build = Callable[..., HomeBuilder]


def empty(home: HomeBuilder, number: int, gap: float = 1.0, source: str = "telegram", **values: Any) -> None:
    for each in range(number):
        at = {"started_at": START + gap * each, **values}
        home.session(f"{source}_{each}", source=source, **at)


@pytest.mark.fires("LIF003")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_of_unknown_source_is_a_leftover(build: Build, version: str) -> None:
    home = build(version)
    home.session("gone", source="unknown", input_tokens=7, output_tokens=5)
    (finding,) = home.findings("LIF003")
    assert finding.verdict is Verdict.LEFTOVER
    assert facts(finding)["tokens counted"] == 12
    assert finding.summary == "1 session was made again by an account of tokens, without a message."


def test_several_rows_of_unknown_source_are_one_finding(build: Build) -> None:
    home = build()
    empty(home, 2, gap=90_000.0, source="unknown")
    (finding,) = home.findings("LIF003")
    assert finding.summary.startswith("2 sessions were made again")


def test_each_hour_that_any_session_ends_is_looked_at(build: Build) -> None:
    home = build()
    first, second = (range(0, 4000, 400), range(40_000, 44_400, 400))
    for at in (*first, 20_000, *second):
        home.session(f"at {at:06}", source="telegram", started_at=START + at)
    (finding,) = home.findings("LIF003")
    assert facts(finding)["sessions"] == len(first) + len(second)
    assert "at 020000" not in facts(finding)["ids"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_flood_is_a_leftover(build: Build, version: str) -> None:
    home = build(version)
    empty(home, 12, gap=2.0)
    home.session("much later", source="telegram", started_at=START + 90_000)
    (finding,) = home.findings("LIF003")
    assert facts(finding)["sessions"] == 12
    assert facts(finding)["last begun"] == "2026-09-21T14:13:42Z"
    assert "much later" not in facts(finding)["ids"]


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_that_were_opened_and_left_are_silent(build: Build, version: str) -> None:
    home = build(version)
    empty(home, 30, gap=500.0)
    home.session("one", source="tui")
    assert home.findings("LIF003") == []


@pytest.mark.near_miss("LIF003")
@pytest.mark.parametrize(
    "values",
    [{"message_count": 3}, {"pinned": 1}, {"parent_session_id": "cli"}, {"started_at": NOW - 3600}],
    ids=["counted", "pinned", "child", "new"],
)
@pytest.mark.parametrize("source", ["unknown", "telegram"])
def test_near_misses_are_silent(build: Build, source: str, values: dict[str, Any]) -> None:
    home = build("0.22.2")
    home.chat("cli", 2)
    empty(home, 12, source=source, **values)
    assert home.findings("LIF003") == []


def test_a_title_a_child_and_a_message_excuse_a_row(build: Build) -> None:
    home = build()
    empty(home, 10)
    home.message("telegram_3")
    assert home.findings("LIF003") == []
    home.session("named", source="unknown", title="Mine")
    home.session("parent", source="unknown")
    home.chat("child", 2, parent_session_id="parent")
    home.chat("written", 2, source="unknown")
    assert home.findings("LIF003") == []


def test_the_ids_do_not_depend_on_what_grows(build: Build) -> None:
    home = build()
    empty(home, 10)
    (before,) = home.findings("LIF003")
    home.session("more", source="telegram", started_at=START + 20)
    (after,) = home.findings("LIF003")
    assert before.id == after.id
    assert facts(after)["sessions"] == 11
