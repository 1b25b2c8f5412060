"""What the tests of single rules pass over: very long words, bounds that are met exactly, odd company."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder, facts
from tests.audit.damaged import damage

from statemend.audit.finding import Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100
KEY = "agent:main:telegram:dm:42"
LONG = "x" * 5000


@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
def test_what_a_store_calls_things_is_cut_to_the_length_that_fits_its_place(
    build: Build, version: str
) -> None:
    home = damage(build(version, rich=True))
    home.sql(
        "DROP INDEX IF EXISTS idx_sessions_title_unique",
        f"UPDATE sessions SET title = '{LONG}'",
        f"UPDATE sessions SET source = '{LONG}' WHERE source NOT IN ('cron', 'subagent', 'tool')",
        f"UPDATE sessions SET end_reason = '{LONG}' WHERE end_reason NOT IN ('compression', 'branched')",
    )
    told = home.audit(deep=True).findings
    shown = [(fact.label, fact.value) for one in told for fact in one.evidence if isinstance(fact.value, str)]
    assert {len(value) for label, value in shown if label == "title"} == {200}
    assert {len(value) for label, value in shown if label == "source" and "x" in value} == {40}
    assert max(len(one.summary) for one in told) < 300
    assert max(len(value) for _, value in shown) <= 200


def test_a_reason_is_cut_in_a_sentence(build: Build) -> None:
    home = build()
    home.session("odd", end_reason=LONG)
    (finding,) = home.findings("LIF001")
    assert finding.summary == f"It has a reason for its end ({'x' * 40}), and no end."
    assert facts(finding)["ended by"] == "x" * 40


def test_dead_ends_are_told_though_one_ended_at_no_time(build: Build) -> None:
    home = build()
    for name, at in (("one", END), ("two", "then"), ("three", END - 50)):
        home.chat(name, 4, ended_at=at, end_reason="compression")
    assert {finding.subject.session for finding in home.findings("LIN001")} == {"one", "two", "three"}


@pytest.mark.parametrize(
    ("parent", "child", "hidden"),
    [
        ("cli", "cli", True),
        ("cli", "subagent", False),
        ("subagent", "subagent", True),
        ("cli", "tool", False),
    ],
)
def test_a_run_of_a_subagent_hides_no_continuation_of_a_chat(
    build: Build, parent: str, child: str, hidden: bool
) -> None:
    """Where the marked child is what goes on, its parent is no dead end."""
    home = build("0.22.2")
    home.chat("old", 4, source=parent, ended_at=END, end_reason="compression")
    home.session(
        "new",
        source=child,
        parent_session_id="old",
        started_at=END + 1,
        model_config={"_branched_from": "old"},
    )
    home.message("new", "user", SUMMARY, timestamp=END + 2)
    assert (home.findings("LIN001") == []) is hidden


@pytest.mark.parametrize(
    ("began", "ended", "verdict"),
    [(END, END, Verdict.LEFTOVER), (END - 0.5, END, Verdict.FAULT), (END, "then", Verdict.FAULT)],
    ids=["at the end", "before the end", "no time"],
)
def test_a_branch_is_known_by_its_parent_from_the_end_of_that_on(
    build: Build, began: float, ended: Any, verdict: Verdict
) -> None:
    home = build("0.19.0")
    home.chat("old", 4, ended_at=ended, end_reason="branched")
    home.session("new", parent_session_id="old", started_at=began)
    for number in range(4):
        home.message("new", ("user", "assistant")[number % 2], f"turn {number} of old", timestamp=began)
    home.message("new", "user", "another way", timestamp=began + 60)
    assert [finding.verdict for finding in home.findings("LIN006")] == [verdict]


def test_each_of_three_sessions_that_follow_in_one_chat_is_told(build: Build) -> None:
    home = build()
    for name, begin, end in (("a", 0, 2000), ("b", 1000, 5000), ("c", 4000, 6000), ("later", 5950, 7000)):
        home.session(
            name, source="telegram", session_key="agent:main:telegram:dm:42", started_at=START + begin
        )
        for at in (begin, end):
            home.message(name, timestamp=START + at)
    (finding,) = home.findings("LIN012")
    assert [line[0] for line in facts(finding)["from first to last message"]] == ["a", "b", "c"]


def test_rows_of_every_state_make_a_candidate(build: Build) -> None:
    home = build("0.22.2")
    home.chat("old", 6, ended_at=END, end_reason="compression")
    for name, states in (("one", [(1, 0)]), ("two", [(0, 1), (0, 1), (0, 1), (0, 0), (0, 0), (1, 0)])):
        home.session(name, parent_session_id="old", started_at=END + 1)
        for active, compacted in states:
            home.message(name, "user", SUMMARY, timestamp=END + 2, active=active, compacted=compacted)
    (finding,) = home.findings("LIN002")
    assert [line.partition(" row")[0][-1] for line in facts(finding)["candidate sessions"]] == ["1", "6"]


@pytest.mark.parametrize("name", ["id", "call_id", "tool_call_id"])
def test_a_call_is_known_by_each_of_its_names(build: Build, name: str) -> None:
    home = build()
    home.session("odd")
    home.message("odd", "assistant", "Running.", tool_calls=json.dumps([{name: "call_1"}]))
    home.message("odd", "tool", "ok", tool_call_id="call_1")
    home.message("odd", "assistant", "Done.")
    assert home.findings("MSG007") == []


def test_a_lawful_mark_before_it_hides_no_contradiction(build: Build) -> None:
    home = build("0.22.2")
    home.chat("old", 4)
    for name, marks in (("a", ["_branched_from"]), ("b", ["_branched_from", "_delegate_from"])):
        home.session(name, parent_session_id="old", started_at=END, model_config=dict.fromkeys(marks, "old"))
        home.message(name, "user", "another way", timestamp=END + 1)
    assert [finding.subject.session for finding in home.findings("LIN005")] == ["b"]


def test_cells_are_told_of_in_sessions_whose_ids_are_of_several_types(build: Build) -> None:
    home = build()
    rows = [home.message(session_id, content=b"bytes") for session_id in ("text", b"blob")]
    found = home.findings("MSG006")
    assert sorted(row for finding in found for row in finding.subject.message_ids) == rows


def test_a_continuation_whose_title_is_no_text_is_told(build: Build) -> None:
    home = build()
    home.chat("old", 4, ended_at=END, end_reason="compression", title="Plan")
    home.session("new", started_at=END + 1, title=b"Plan #2")
    home.message("new", "user", SUMMARY, timestamp=END + 2)
    (finding,) = home.findings("LIN009")
    assert (finding.subject.session, finding.verdict) == ("new", Verdict.FAULT)
