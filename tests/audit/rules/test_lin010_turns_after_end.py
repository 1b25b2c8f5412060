"""LIN010 turns-after-end: messages that came into a session after its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
END = START + 100
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."


def compressed(home: HomeBuilder, reason: str = "compression") -> None:
    """A session that ended at ``END``, and the one that continues it."""
    home.chat("old", 4, ended_at=END, end_reason=reason)
    home.session("new", parent_session_id="old", started_at=END + 1)
    home.message("new", "user", SUMMARY, timestamp=END + 1)
    home.message("new", "assistant", "And so on.", timestamp=END + 2)


@pytest.mark.fires("LIN010")
@pytest.mark.parametrize("version", VERSIONS)
def test_turns_beside_the_line_are_a_fault(build: Build, version: str) -> None:
    home = build(version)
    compressed(home)
    row = home.message("old", "user", "and the fence?", timestamp=END + 500)
    (finding,) = home.findings("LIN010")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.MEDIUM)
    assert finding.subject.session == "old"
    assert finding.subject.message_ids == (row,)
    assert facts(finding)["texts that stand in no continuation"] == 1
    assert facts(finding)["releases that accept such a message"] == "0.13 to 0.19"
    assert "what would decide" not in facts(finding)
    assert facts(finding)["continued by"] == ["new"]
    assert "fence" not in str(finding)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_line_without_late_turns_is_silent(build: Build, version: str) -> None:
    home = build(version)
    compressed(home)
    home.message("old", "assistant", "the last words", timestamp=END + 30)
    assert home.findings("LIN010") == []


def test_turns_that_the_continuation_holds_too_are_silent(build: Build) -> None:
    home = build()
    compressed(home)
    home.message("old", "user", "and the fence?", timestamp=END + 500)
    home.session("third", parent_session_id="new", started_at=END + 600)
    home.sql("UPDATE sessions SET ended_at = 1790000650, end_reason = 'compression' WHERE id = 'new'")
    home.message("third", "user", SUMMARY, timestamp=END + 601)
    home.message("third", "user", "and the fence?", timestamp=END + 602)
    assert home.findings("LIN010") == []


@pytest.mark.parametrize("order", ["stored before", "stored after"])
def test_turns_from_before_the_clock_was_set_back_are_silent(build: Build, order: str) -> None:
    home = build()
    home.chat("old", 4, ended_at=END, end_reason="compression")
    if order == "stored before":
        home.message("old", "user", "and the fence?", timestamp=END + 500)
    home.session("new", parent_session_id="old", started_at=END + 1)
    home.message("new", "user", "turn 0 of old", timestamp=END - 50)
    home.message("new", "user", SUMMARY, timestamp=END + 1)
    if order == "stored after":
        home.message("old", "user", "and the fence?", timestamp=END + 500)
    home.message("new", "user", "the next day", timestamp=END + 90000)
    assert len(home.findings("LIN010")) == (order == "stored after")


def test_a_first_row_that_was_carried_over_bears_its_old_time(build: Build) -> None:
    home = build()
    home.chat("old", 4, ended_at=END, end_reason="compression")
    home.message("old", "user", "and the fence?", timestamp=END + 500)
    home.session("new", parent_session_id="old", started_at=END + 1)
    home.message("new", "user", "turn 3 of old", timestamp=END + 500)
    home.message("new", "user", SUMMARY, timestamp=END + 1)
    assert home.findings("LIN010") == []


def test_a_late_turn_that_was_stored_before_the_continuation_is_told(build: Build) -> None:
    """Up to 0.16 what a compression began was stored when the turn was over."""
    home = build("0.16.0")
    home.chat("old", 4, ended_at=END, end_reason="compression")
    home.message("old", "user", "and the fence?", timestamp=END + 500)
    home.session("new", parent_session_id="old", started_at=END + 1)
    home.message("new", "user", SUMMARY, timestamp=END + 900)
    (finding,) = home.findings("LIN010")
    assert finding.verdict is Verdict.FAULT


def test_where_nothing_continues_it_is_undecidable(build: Build) -> None:
    home = build()
    home.chat("old", 4, ended_at=END, end_reason="compression")
    home.message("old", timestamp=END + 500)
    (finding,) = home.findings("LIN010")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert "these turns themselves" in facts(finding)["what would decide"]


@pytest.mark.parametrize("reason", ["new_session", "session_reset", "branched"])
def test_turns_after_a_wanted_end_are_undecidable(build: Build, reason: str) -> None:
    home = build()
    compressed(home, reason)
    home.message("old", timestamp=END + 500)
    (finding,) = home.findings("LIN010")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert finding.severity is Severity.LOW
    assert facts(finding)["ended by"] == reason


@pytest.mark.parametrize("reason", ["agent_close", "cli_close", "ws_orphan_reap", "cron_complete", None])
def test_turns_after_an_end_that_came_by_itself_are_silent(build: Build, reason: str | None) -> None:
    home = build()
    compressed(home, reason)  # type: ignore[arg-type]
    home.message("old", timestamp=END + 500)
    assert home.findings("LIN010") == []


@pytest.mark.near_miss("LIN010")
@pytest.mark.parametrize(
    "values",
    [{"active": 0}, {"timestamp": "late"}, {"timestamp": END + 59}],
    ids=["rewound", "no time", "together with the end"],
)
def test_near_misses_are_silent(build: Build, values: dict[str, Any]) -> None:
    home = build()
    compressed(home)
    home.message("old", **{"timestamp": END + 500, **values})
    assert home.findings("LIN010") == []


def test_odd_ends_hide_none_behind_them(build: Build) -> None:
    home = build()
    home.chat("a", 2, ended_at="then", end_reason="compression")
    home.session("b", ended_at=END, end_reason="compression")
    home.chat("c", 0, ended_at=END, end_reason="compression")
    home.message("c", timestamp="late")
    compressed(home)
    home.message("old", timestamp=END + 500)
    assert [finding.subject.session for finding in home.findings("LIN010")] == ["old"]


def test_a_thousand_late_turns_and_a_ring_take_no_time(build: Build) -> None:
    home = build()
    compressed(home)
    home.sql(
        "UPDATE sessions SET parent_session_id = 'new' WHERE id = 'old'",
        "UPDATE sessions SET ended_at = 1790000200, end_reason = 'compression' WHERE id = 'new'",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "SELECT 'old', 'user', 'late ' || i, 1790000500.0 + i FROM n",
    )
    late = {each.subject.session: each for each in home.findings("LIN010")}
    assert len(late["old"].subject.message_ids) == 20
    assert facts(late["old"])["live rows after the end"] == 1000


def test_the_id_does_not_depend_on_what_grows(build: Build) -> None:
    home = build()
    compressed(home)
    home.message("old", timestamp=END + 500)
    (before,) = home.findings("LIN010")
    home.message("old", content="more", timestamp=END + 600)
    (after,) = home.findings("LIN010")
    assert before.id == after.id
