"""LIN014 continuation-not-followed: a continuation under a parent that compression did not end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
BEGAN = START + 200
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."


def continued(home: HomeBuilder, parent: dict[str, Any] | None = None, **values: Any) -> int:
    """A session that ended otherwise, and one that begins with a summary of it; the row of the summary."""
    home.chat("old", 6, **{"ended_at": BEGAN - 5, "end_reason": "tui_close", **(parent or {})})
    home.session("new", **{"parent_session_id": "old", "started_at": BEGAN, **values})
    home.message("new", "user", "turn 0 of old", timestamp=BEGAN)
    row = home.message("new", "user", SUMMARY, timestamp=BEGAN)
    home.message("new", "assistant", "And so on.", timestamp=BEGAN + 1)
    return row


@pytest.mark.fires("LIN014")
@pytest.mark.parametrize("version", VERSIONS)
def test_under_a_parent_that_ended_otherwise_it_is_a_fault(build: Build, version: str) -> None:
    home = build(version)
    row = continued(home)
    (finding,) = home.audit("LIN").findings
    assert (finding.rule, finding.verdict, finding.severity) == ("LIN014", Verdict.FAULT, Severity.HIGH)
    assert (finding.subject.session, finding.subject.message_ids) == ("new", (row,))
    assert facts(finding)["parent ended by"] == "tui_close"
    assert facts(finding)["live rows of the parent from after this began"] == 0
    ways = {label.removeprefix("from the parent, "): lines for label, lines in facts(finding).items()}
    assert ways["resume goes to, by release"] == ["0.13 to 0.22: old"]
    assert ways["resume by its id goes to, by release"] == ["0.13 to 0.17: old", "0.18 to 0.22: new"]
    assert ways["export goes on with, by release"][1:] == ["0.18 to 0.22: nothing"]
    assert "chosen by resume by id of 0.18 to 0.22" in ways["about candidate new"]
    assert "turn 0" not in str(finding)


def test_a_parent_that_was_opened_again_and_went_on_is_told_so(build: Build) -> None:
    home = build()
    continued(home, {"ended_at": None, "end_reason": None})
    home.message("old", "user", "once more", timestamp=BEGAN + 600)
    (finding,) = home.findings("LIN014")
    assert facts(finding)["live rows of the parent from after this began"] == 1
    assert "went on without it and has not ended" in finding.summary
    assert finding.remedy.text.startswith("Read what was said in old since")


@pytest.mark.parametrize(
    ("statement", "is_told"),
    [
        ("DELETE FROM messages WHERE session_id = 'another'", True),
        ("DELETE FROM messages WHERE id = (SELECT MIN(id) FROM messages WHERE session_id = 'new')", False),
        ("UPDATE messages SET timestamp = timestamp + 500 WHERE session_id = 'old'", False),
        ("UPDATE messages SET timestamp = 'then' WHERE session_id = 'old'", False),
        ("DELETE FROM messages WHERE session_id = 'old'", False),
    ],
    ids=["all there", "a row is gone", "the parent went on meanwhile", "no time", "an empty parent"],
)
def test_a_summary_stored_late_counts_where_nothing_is_gone_before_it(
    build: Build, statement: str, is_told: bool
) -> None:
    home = build()
    continued(home, started_at=BEGAN - 60)
    home.sql(statement)
    assert bool(home.findings("LIN014")) is is_told


@pytest.mark.near_miss("LIN014")
@pytest.mark.parametrize(
    "values",
    [
        {"parent": {"end_reason": "compression"}},
        {"parent": {"model_config": {"_delegate_from": "above"}}},
        {"parent_session_id": None},
        {"model_config": {"_branched_from": "old"}},
        {"model_config": {"_delegate_from": "old"}},
        {"model_config": {"_reset_from": "old"}},
        {"model_config": {"_branched_from": "above"}},
        {"source": "subagent"},
        {"source": "tool"},
        {"started_at": BEGAN - 600},
        {"started_at": "then"},
    ],
    ids=[
        "compression",
        "of a subagent",
        "root",
        "branch",
        "run",
        "reset",
        "inherited mark",
        "subagent",
        "tool",
        "rewritten in place",
        "no time",
    ],
)
def test_near_misses_are_silent(build: Build, values: dict[str, Any]) -> None:
    home = build()
    continued(home, **values)
    assert home.findings("LIN014") == []


def test_a_branch_that_copied_the_summary_of_its_parent_is_silent(build: Build) -> None:
    home = build()
    continued(home)
    home.message("old", "user", SUMMARY, timestamp=BEGAN - 50)
    assert home.findings("LIN014") == []


def test_a_ring_is_another_rules_business(build: Build) -> None:
    home = build()
    continued(home, {"parent_session_id": "new"})
    assert {one.rule for one in home.audit("LIN").findings} == {"LIN004"}
