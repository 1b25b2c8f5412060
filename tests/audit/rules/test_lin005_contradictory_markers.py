"""LIN005 contradictory-markers: two things are said of one parent link, and a release goes wrong by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder, facts

from statemend.audit.finding import Finding, Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100
MARKED = ("0.16.0", "0.17.0", "0.18.2", "0.19.0", "0.20.1", "0.22.2")
BRANCH, DELEGATE, RESET = "_branched_from", "_delegate_from", "_reset_from"


def ended(home: HomeBuilder, session_id: str = "old", **values: Any) -> None:
    """A chat of six rows that ended at ``END``, by compression unless told otherwise."""
    home.chat(session_id, 6, **{"ended_at": END, "end_reason": "compression", **values})


def child(
    home: HomeBuilder,
    *marks: str,
    rows: tuple[str, ...] = ("hello", "yes"),
    after: float = 1.0,
    **values: Any,
) -> None:
    """A session that began so long after ``END``, with markers that name its parent ``old``."""
    named = {"parent_session_id": "old", "model_config": dict.fromkeys(marks, "old")}
    home.session("new", **{**named, "started_at": END + after, **values})
    for place, text in enumerate(rows):
        home.message("new", ("user", "assistant")[place % 2], text, timestamp=END + after + place)


def copied(home: HomeBuilder) -> tuple[str, ...]:
    """The first rows of the parent, as a branch begins."""
    return tuple(
        text
        for (text,) in home.sql("SELECT content FROM messages WHERE session_id = 'old' ORDER BY id LIMIT 4")
    )


def only(home: HomeBuilder) -> Finding:
    (finding,) = home.findings("LIN005")
    assert finding.subject.session == "new"
    return finding


def test_sessions_of_which_one_thing_is_said_hide_none_behind_them(build: Build) -> None:
    home = build("0.19.0")
    ended(home)
    home.chat("a branch", parent_session_id="old", model_config={BRANCH: "old"})
    home.chat("a root", model_config={BRANCH: "old"})
    home.chat("a child", parent_session_id="a root")
    child(home, BRANCH, DELEGATE, rows=copied(home), title="Another way")
    assert facts(only(home))["title"] == "Another way"


@pytest.mark.fires("LIN005")
@pytest.mark.parametrize("version", MARKED)
@pytest.mark.parametrize("reason", ["compression", "cli_close", None])
def test_a_branch_that_a_deletion_would_take_is_a_fault(
    build: Build, version: str, reason: str | None
) -> None:
    home = build(version)
    ended(home, end_reason=reason, ended_at=END if reason else None)
    child(home, BRANCH, DELEGATE, rows=copied(home))
    finding = only(home)
    assert finding.verdict is Verdict.FAULT
    assert finding.summary == (
        "Said to be a branch of it and a subagent's run; the evidence says a branch of it."
    )
    told = facts(finding)
    assert told["says a branch of it"] == "_branched_from names the parent"
    assert told["for a branch of it"] == ["4 of its first rows stand in the parent"]
    assert told["0.21.3 to 0.22 now"] == (
        "resume leaves it out, export leaves it out, deleting the parent takes it along"
    )
    assert finding.remedy.command is not None
    assert finding.remedy.command.startswith("statemend plan")


def test_before_any_release_heeded_markers_it_is_a_risk(build: Build) -> None:
    home = build("0.15.2")
    ended(home, end_reason=None, ended_at=None)
    child(home, BRANCH, DELEGATE, rows=copied(home))
    assert only(home).verdict is Verdict.RISK


def test_a_routing_key_tells_a_conversation_from_a_run(build: Build) -> None:
    home = build()
    ended(home, end_reason=None, ended_at=None)
    child(home, RESET, DELEGATE, session_key="agent:main:telegram:dm:7", source="telegram")
    finding = only(home)
    assert finding.verdict is Verdict.FAULT
    assert facts(finding)["against a subagent's run"] == ["it has a routing key and is no subagent's row"]


def test_the_end_of_the_parent_tells_a_reset(build: Build) -> None:
    home = build("0.22.2")
    ended(home, end_reason="session_reset", session_key="k")
    child(home, RESET, DELEGATE, session_key="k")
    assert facts(only(home))["for a new conversation after a reset"] == [
        "the parent ended by session_reset before it began in the same place"
    ]


@pytest.mark.parametrize("mark", [BRANCH, RESET])
def test_a_continuation_that_is_marked_as_something_else_is_a_fault(build: Build, mark: str) -> None:
    home = build("0.22.2")
    ended(home)
    child(home, mark, rows=(SUMMARY, "yes"))
    finding = only(home)
    assert finding.verdict is Verdict.FAULT
    assert facts(finding)["0.21.3 to 0.22 now"].startswith("resume leaves it out, export leaves it out")
    assert home.findings("LIN001") == []


def test_a_marked_continuation_after_a_deletion_is_undecidable(build: Build) -> None:
    """It may have been made a branch on purpose, beside a continuation that was deleted since."""
    home = build()
    ended(home)
    home.message("old", "user", "gone")
    child(home, BRANCH, rows=(SUMMARY, "yes"))
    home.sql("DELETE FROM messages WHERE content = 'gone'")
    assert only(home).verdict is Verdict.UNDECIDABLE


def test_a_marker_of_a_stranger_on_a_continuation_is_a_fault(build: Build) -> None:
    home = build()
    ended(home)
    home.chat("stranger", 2)
    child(home, rows=(SUMMARY, "yes"), model_config={RESET: "stranger"})
    assert facts(only(home))["says a new conversation after a reset"] == (
        "_reset_from names a session that it does not come from"
    )


def test_where_nothing_tells_it_is_undecidable(build: Build) -> None:
    home = build()
    ended(home, end_reason=None, ended_at=None)
    child(home, BRANCH, DELEGATE)
    finding = only(home)
    assert finding.verdict is Verdict.UNDECIDABLE
    assert "how the session begins" in facts(finding)["what would decide"]
    assert "does not tell which" in finding.summary


def test_where_the_evidence_is_at_odds_it_is_undecidable(build: Build) -> None:
    home = build()
    ended(home, end_reason=None, ended_at=None)
    child(home, BRANCH, DELEGATE, rows=copied(home), source="subagent")
    assert only(home).verdict is Verdict.UNDECIDABLE


@pytest.mark.parametrize("version", MARKED)
@pytest.mark.parametrize(
    ("marks", "source"), [((BRANCH, RESET), "cli"), ((DELEGATE, RESET), "subagent")], ids=["branch", "run"]
)
def test_what_no_release_goes_wrong_by_is_silent(
    build: Build, version: str, marks: tuple[str, ...], source: str
) -> None:
    """What 0.20 makes of a branch or a run when it reopens a session that a reset ended."""
    home = build(version)
    ended(home)
    child(home, *marks, rows=copied(home) if BRANCH in marks else ("do it",), source=source)
    assert home.findings("LIN005") == []


@pytest.mark.near_miss("LIN005")
@pytest.mark.parametrize("mark", [BRANCH, RESET, DELEGATE])
def test_a_copied_marker_is_lawful(build: Build, mark: str) -> None:
    home = build("0.22.2")
    home.chat("origin", 4)
    ended(home, parent_session_id="origin", model_config={mark: "origin"})
    child(home, rows=(SUMMARY, "yes"), model_config={mark: "origin"})
    assert home.findings("LIN005") == []


def test_a_marker_that_names_a_session_further_up_is_lawful(build: Build) -> None:
    """The parent lost its own; what continues it still bears the copy."""
    home = build()
    home.chat("origin", 4)
    ended(home, parent_session_id="origin")
    child(home, rows=(SUMMARY, "yes"), model_config={BRANCH: "origin"})
    assert home.findings("LIN005") == []


@pytest.mark.parametrize("named", ["gone", "__orphaned__", "new"])
def test_a_marker_that_names_no_other_session_is_silent(build: Build, named: str) -> None:
    home = build()
    ended(home)
    child(home, rows=(SUMMARY, "yes"), model_config={BRANCH: named})
    assert home.findings("LIN005") == []


def test_a_branch_of_a_continuation_begins_with_the_summary_of_its_parent(build: Build) -> None:
    home = build()
    ended(home)
    home.message("old", "user", SUMMARY)
    child(home, BRANCH, rows=(SUMMARY, "yes"))
    assert home.findings("LIN005") == []


def test_a_rival_that_was_made_a_branch_is_silent(build: Build) -> None:
    home = build()
    ended(home)
    child(home, BRANCH, rows=(SUMMARY, "yes"))
    home.session("chosen", parent_session_id="old", started_at=END + 2)
    home.message("chosen", "user", SUMMARY + " Other.", timestamp=END + 2)
    assert home.findings("LIN005") == []


def test_a_session_that_was_rewritten_later_is_silent(build: Build) -> None:
    home = build()
    ended(home)
    child(home, BRANCH, rows=())
    home.message("new", "user", SUMMARY, timestamp=END + 500)
    assert home.findings("LIN005") == []


def test_a_false_subagent_mark_alone_is_the_matter_of_another_rule(build: Build) -> None:
    home = build()
    ended(home)
    child(home, DELEGATE, rows=(SUMMARY, "yes"))
    assert home.findings("LIN005") == []
    assert [one.subject.session for one in home.findings("LIN008")] == ["new"]


@pytest.mark.parametrize("config", ['{"_branched_from": ["old"], "_delegate_from": 7}', "{broken", "[]"])
def test_markers_that_name_nothing_are_silent(build: Build, config: str) -> None:
    home = build()
    ended(home)
    child(home, rows=(SUMMARY, "yes"), model_config=config)
    assert home.findings("LIN005") == []


def test_a_parent_without_a_row_is_silent(build: Build) -> None:
    home = build()
    child(home, BRANCH, DELEGATE)
    assert home.findings("LIN005") == []
