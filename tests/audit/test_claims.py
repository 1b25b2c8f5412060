"""What speaks for and against each of several things that are said of one parent link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder, facts

from statemend.audit.finding import Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100
BRANCH, DELEGATE, RESET = "_branched_from", "_delegate_from", "_reset_from"
A_RESET, A_BRANCH, A_RUN = "a new conversation after a reset", "a branch of it", "a subagent's run"


def link(
    home: HomeBuilder,
    marks: dict[str, str],
    *,
    rows: tuple[str, ...] = ("hello", "yes"),
    old: dict[str, Any] | None = None,
    **new: Any,
) -> None:
    """A session of four rows that ended at ``END``, and another that names it as its parent."""
    home.chat("old", 4, **{"ended_at": END, "end_reason": "session_reset", **(old or {})})
    home.session(
        "new", **{"parent_session_id": "old", "started_at": END + 1, "model_config": dict(marks), **new}
    )
    for place, text in enumerate(rows):
        home.message("new", ("user", "assistant")[place % 2], text, timestamp=END + 1 + place)


def weights(home: HomeBuilder) -> dict[str, Any]:
    """What the one finding tells for and against each claim."""
    (finding,) = home.findings("LIN005")
    return {label: value for label, value in facts(finding).items() if label.split()[0] in ("for", "against")}


BOTH = {RESET: "old", DELEGATE: "old"}
NO_RUN = {f"against {A_RUN}": ["it has a routing key and is no subagent's row"]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"session_key": "other"}, {}),
        ({"session_key": "k", "end_reason": "cli_close"}, {}),
        ({"session_key": "k", "ended_at": None}, {}),
        ({"session_key": "k"}, {"started_at": END - 1}),
        ({"session_key": "k"}, {"started_at": "soon"}),
    ],
    ids=["other place", "other reason", "no end", "begun before", "no beginning"],
)
def test_a_reset_is_told_by_place_reason_and_time_together(
    build: Build, old: dict[str, Any], new: dict[str, Any]
) -> None:
    home = build("0.22.2")
    link(home, BOTH, old=old, session_key="k", **new)
    assert weights(home) == NO_RUN


def test_a_reset_may_begin_at_the_very_end(build: Build) -> None:
    home = build("0.22.2")
    link(home, BOTH, old={"session_key": "k"}, session_key="k", started_at=END)
    assert weights(home) == {
        f"for {A_RESET}": ["the parent ended by session_reset before it began in the same place"],
        **NO_RUN,
    }


def test_two_rows_of_the_parent_are_a_copy_and_no_reset_begins_so(build: Build) -> None:
    home = build("0.22.2")
    link(home, {**BOTH, BRANCH: "old"}, rows=("turn 0 of old", "turn 1 of old", "more"))
    assert weights(home) == {
        f"for {A_BRANCH}": ["2 of its first rows stand in the parent"],
        f"against {A_RESET}": ["a reset begins without rows of the session before"],
    }


def test_one_row_of_the_parent_is_no_copy(build: Build) -> None:
    home = build("0.22.2")
    link(home, {BRANCH: "old", DELEGATE: "old"}, rows=("turn 0 of old", "other"))
    assert weights(home) == {}


@pytest.mark.parametrize(("after", "told"), [(1.0, True), (-1.0, False)])
def test_a_parent_that_ended_as_branched_speaks_for_a_branch_of_it(
    build: Build, after: float, told: bool
) -> None:
    home = build("0.22.2")
    old = {"end_reason": "branched"}
    link(home, {BRANCH: "old", DELEGATE: "old"}, old=old, started_at=END + after)
    words = {f"for {A_BRANCH}": ["the parent ended as branched before it began"]}
    assert weights(home) == (words if told else {})


@pytest.mark.parametrize(("source", "told"), [("cli", True), ("subagent", False)])
def test_a_subagents_row_speaks_for_a_run_unless_the_parent_is_one(
    build: Build, source: str, told: bool
) -> None:
    home = build("0.22.2")
    rows = ("turn 0 of old", "turn 1 of old")
    link(home, {BRANCH: "old", DELEGATE: "old"}, old={"source": source}, source="subagent", rows=rows)
    found = weights(home)
    assert found.pop(f"for {A_BRANCH}") == ["2 of its first rows stand in the parent"]
    assert found == ({f"for {A_RUN}": ["its source is subagent, the parent's is not"]} if told else {})


def test_what_a_continuation_carries_over_is_no_copy_of_a_branch(build: Build) -> None:
    home = build("0.22.2")
    rows = (SUMMARY, "x", "turn 2 of old", "turn 3 of old")
    link(home, {BRANCH: "old"}, old={"end_reason": "compression"}, rows=rows)
    (finding,) = home.findings("LIN005")
    assert finding.verdict is Verdict.FAULT
    assert "for its continuation" in facts(finding)
    assert f"for {A_BRANCH}" not in facts(finding)


def test_a_marker_of_the_parents_own_is_copied_even_where_the_session_it_names_is_not_above(
    build: Build,
) -> None:
    home = build("0.22.2")
    home.chat("origin", 4)
    marks = {BRANCH: "origin"}
    link(home, marks, old={"end_reason": "compression", "model_config": marks}, rows=(SUMMARY, "yes"))
    assert home.findings("LIN005") == []


def test_a_stranger_beside_a_true_reset_is_silent(build: Build) -> None:
    home = build("0.22.2")
    home.chat("stranger", 4)
    link(home, {RESET: "old", BRANCH: "stranger"}, old={"session_key": "k"}, session_key="k")
    assert home.findings("LIN005") == []
