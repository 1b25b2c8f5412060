"""LIN006 branch-without-marker: a branch that only its parent's end tells from a subagent's run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
BEGAN = START + 100
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."


def copied(home: HomeBuilder, rows: int = 4, at: float = BEGAN, **values: Any) -> None:
    """A session of four rows, and another that begins with copies of them and then goes on."""
    home.chat("old", 4)
    told = {"parent_session_id": "old", "started_at": BEGAN, "title": "Another way"}
    home.session("new", **{**told, **values})
    for number in range(rows):
        role = ("user", "assistant")[number % 2]
        home.message("new", role, f"turn {number} of old", timestamp=at)
    home.message("new", "user", "another way", timestamp=BEGAN + 60)


@pytest.mark.fires("LIN006")
@pytest.mark.parametrize("version", VERSIONS)
def test_an_unmarked_copy_under_an_open_parent_is_a_fault(build: Build, version: str) -> None:
    home = build(version)
    home.chat("a root")
    home.chat("a run", source="subagent", parent_session_id="a root")
    copied(home)
    (finding,) = home.findings("LIN006")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.MEDIUM)
    assert finding.subject.session == "new"
    assert facts(finding)["parent"] == "old"
    assert facts(finding)["first rows copied from the parent"] == 4
    assert "turn 1" not in str(finding)


def test_two_rows_are_a_copy(build: Build) -> None:
    home = build()
    copied(home, rows=2)
    (finding,) = home.findings("LIN006")
    assert facts(finding)["first rows copied from the parent"] == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_under_a_parent_that_ended_as_branched_it_is_a_leftover(build: Build, version: str) -> None:
    home = build(version)
    copied(home)
    home.sql(f"UPDATE sessions SET ended_at = {BEGAN - 1}, end_reason = 'branched' WHERE id = 'old'")
    found = [finding.verdict for finding in home.findings("LIN006")]
    assert found == ([Verdict.LEFTOVER] if version >= "0.16" else [])


@pytest.mark.parametrize("marker", ["_branched_from", "_delegate_from", "_reset_from"])
def test_a_marked_session_is_silent(build: Build, marker: str) -> None:
    home = build("0.22.2")
    copied(home, model_config={marker: "old"})
    assert home.findings("LIN006") == []


@pytest.mark.near_miss("LIN006")
@pytest.mark.parametrize(
    "values",
    [
        {"rows": 0},
        {"rows": 1},
        {"at": BEGAN + 20},
        {"source": "subagent"},
        {"source": "tool"},
        {"parent_session_id": None},
        {"parent_session_id": "gone"},
        {"started_at": "then"},
    ],
    ids=["new talk", "one row", "talked", "subagent", "tool", "root", "parent gone", "no time"],
)
def test_near_misses_are_silent(build: Build, values: dict[str, Any]) -> None:
    home = build("0.22.2")
    copied(home, **values)
    assert home.findings("LIN006") == []


def test_a_continuation_that_carries_rows_over_is_silent(build: Build) -> None:
    home = build()
    home.chat("old", 4, ended_at=BEGAN - 1, end_reason="compression")
    home.session("new", parent_session_id="old", started_at=BEGAN)
    for number in range(2):
        home.message("new", ("user", "assistant")[number], f"turn {number} of old", timestamp=BEGAN)
    home.message("new", "user", SUMMARY, timestamp=BEGAN)
    assert home.findings("LIN006") == []


@pytest.mark.parametrize("head", [(1, 0), (0, 1)], ids=["live", "archived since"])
def test_a_continuation_of_which_the_summary_was_undone_is_silent(
    build: Build, head: tuple[int, int]
) -> None:
    home = build()
    home.chat("old", 4, ended_at=BEGAN - 1, end_reason="compression")
    home.session("new", parent_session_id="old", started_at=BEGAN)
    for number in range(2):
        role, (active, compacted) = ("user", "assistant")[number], head
        carried = {"active": active, "compacted": compacted, "timestamp": BEGAN}
        home.message("new", role, f"turn {number} of old", **carried)
    home.message("new", "user", SUMMARY, timestamp=BEGAN + 1, active=0, compacted=0)
    assert home.findings("LIN006") == []


def test_a_branch_that_was_compacted_and_undone_is_told(build: Build) -> None:
    home = build()
    copied(home)
    home.sql("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = 'new'")
    home.message("new", "user", SUMMARY, timestamp=BEGAN + 120, active=0, compacted=0)
    (finding,) = home.findings("LIN006")
    assert finding.subject.session == "new"


def test_rings_are_another_rules_business(build: Build) -> None:
    home = build()
    home.chat("own", 4, parent_session_id="own")
    copied(home)
    home.sql("UPDATE sessions SET parent_session_id = 'new' WHERE id = 'old'")
    assert {one.rule for one in home.audit("LIN").findings} == {"LIN004"}


def test_rows_that_the_parent_got_later_prove_nothing(build: Build) -> None:
    home = build()
    copied(home)
    home.sql("UPDATE messages SET timestamp = timestamp + 5000 WHERE session_id = 'old'")
    assert home.findings("LIN006") == []


def test_copies_that_do_not_begin_the_session_prove_nothing(build: Build) -> None:
    home = build()
    home.chat("old", 4)
    home.session("new", parent_session_id="old", started_at=BEGAN)
    for text in ("its own", "turn 0 of old", "turn 2 of old"):
        home.message("new", "user", text, timestamp=BEGAN)
    assert home.findings("LIN006") == []


def test_rows_of_the_parent_that_were_taken_back_count(build: Build) -> None:
    home = build("0.19.0")
    copied(home)
    home.sql("UPDATE messages SET active = 0 WHERE session_id = 'old' AND content LIKE 'turn 3%'")
    (finding,) = home.findings("LIN006")
    assert facts(finding)["first rows copied from the parent"] == 4
