"""LIN002 fork: more than one continuation that holds rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100


def family(home: HomeBuilder) -> None:
    home.chat("old", 6, ended_at=END, end_reason="compression", title="Plan")


def child(home: HomeBuilder, session_id: str, after: float, first: str = SUMMARY, **values: object) -> None:
    home.session(session_id, parent_session_id="old", started_at=END + after, **values)
    home.message(session_id, "user", first, timestamp=END + after)
    home.message(session_id, "assistant", "And so on.", timestamp=END + after + 1)


@pytest.mark.fires("LIN002")
@pytest.mark.parametrize("version", VERSIONS)
def test_two_continuations_with_rows_are_a_fork(build: Build, version: str) -> None:
    home = build(version)
    family(home)
    child(home, "one", 1, ended_at=END + 50, end_reason="agent_close")
    child(home, "two", 2)
    (finding,) = home.findings("LIN002")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.MEDIUM)
    assert finding.subject.session == "old"
    evidence = facts(finding)
    assert evidence["candidates"] == 2
    assert [line.partition(":")[0] for line in evidence["candidate sessions"]] == ["one", "two"]
    assert "ended 2026-09-21T14:15:50Z (agent_close), 2 rows" in evidence["candidate sessions"][0]
    assert "open, 2 rows" in evidence["candidate sessions"][1]
    assert evidence["title"] == "Plan"


def test_the_evidence_says_which_one_export_and_resume_take(build: Build) -> None:
    home = build("0.22.2")
    family(home)
    child(home, "one", 1, ended_at=END + 50, end_reason="agent_close")
    child(home, "two", 2)
    (finding,) = home.findings("LIN002")
    assert facts(finding)["resume goes to"] == "two"
    assert facts(finding)["export goes through"] == "one"


@pytest.mark.parametrize(("early", "first", "told"), [(5, "hi", 1), (9, "hi", 0), (9, SUMMARY, 1)])
def test_one_that_began_well_before_the_end_needs_its_summary(
    build: Build, early: int, first: str, told: int
) -> None:
    home = build()
    family(home)
    child(home, "one", 1, ended_at=END + 50, end_reason="agent_close")
    child(home, "two", -early, first)
    assert len(home.findings("LIN002")) == told


@pytest.mark.parametrize("version", VERSIONS)
def test_one_continuation_is_silent(build: Build, version: str) -> None:
    home = build(version)
    family(home)
    child(home, "one", 1)
    assert home.findings("LIN002") == []


def test_an_empty_second_continuation_is_silent(build: Build) -> None:
    home = build()
    family(home)
    child(home, "one", 1)
    home.session("two", parent_session_id="old", started_at=END + 2)
    assert home.findings("LIN002") == []


@pytest.mark.near_miss("LIN002")
@pytest.mark.parametrize("marker", ["_branched_from", "_delegate_from", "_reset_from"])
def test_a_marked_sibling_is_silent(build: Build, marker: str) -> None:
    home = build("0.22.2")
    family(home)
    child(home, "one", 1)
    child(home, "two", 2, first="Summarize the folder.", model_config={marker: "old"})
    assert home.findings("LIN002") == []


def test_a_branch_without_its_marker_is_no_second_continuation(build: Build) -> None:
    home = build("0.15.2")
    family(home)
    child(home, "one", 1)
    home.session("branch", parent_session_id="old", started_at=END + 9)
    for number in range(6):
        role = ("user", "assistant")[number % 2]
        home.message("branch", role, f"turn {number} of old", timestamp=END + 9)
    assert [(one.rule, one.subject.session) for one in home.audit("LIN002", "LIN006").findings] == [
        ("LIN006", "branch")
    ]


def test_an_unmarked_subagent_of_an_old_release_is_silent(build: Build) -> None:
    home = build("0.16.0")
    family(home)
    child(home, "run", -60, first="Summarize the folder.")
    child(home, "one", 1)
    assert home.findings("LIN002") == []


def test_unmarked_subagents_without_a_continuation_are_silent(build: Build) -> None:
    home = build("0.19.0")
    family(home)
    child(home, "run", -60, first="Summarize the folder.")
    child(home, "other", -30, first="Count the files.")
    assert home.findings("LIN002") == []


def test_a_tool_run_is_silent(build: Build) -> None:
    home = build()
    family(home)
    child(home, "one", 1)
    child(home, "two", 2, source="tool")
    assert home.findings("LIN002") == []


def test_children_of_a_session_that_is_still_open_are_silent(build: Build) -> None:
    home = build()
    home.chat("old", 6)
    child(home, "one", 1)
    child(home, "two", 2)
    assert home.findings("LIN002") == []


def test_many_candidates_are_counted_and_the_list_is_cut(build: Build) -> None:
    home = build()
    family(home)
    for number in range(25):
        child(home, f"c{number:02}", number + 1)
    (finding,) = home.findings("LIN002")
    assert facts(finding)["candidates"] == 25
    assert len(facts(finding)["candidate sessions"]) == 20
