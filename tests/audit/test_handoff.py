"""What is taken for a broken handoff, and what for one that is only hidden behind a marker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100
BRANCH, DELEGATE = {"_branched_from": "old"}, {"_delegate_from": "old"}


def ended(home: HomeBuilder, session_id: str = "old", at: float = END, **values: Any) -> None:
    home.chat(session_id, 4, **{"ended_at": at, "end_reason": "compression", **values})


def child(
    home: HomeBuilder, session_id: str = "new", after: float = 1.0, later: float = 0.0, **values: Any
) -> None:
    """A child of ``old`` that began so long after ``END``, with a summary so much ``later``."""
    at = END + after
    home.session(session_id, **{"parent_session_id": "old", "started_at": at, **values})
    home.message(session_id, "user", SUMMARY, timestamp=at + later)
    home.message(session_id, "assistant", "And so on.", timestamp=at + later + 1)


def dead(home: HomeBuilder) -> list[str | None]:
    return [finding.subject.session for finding in home.findings("LIN001")]


def test_each_end_is_looked_at_whatever_the_one_before_it_is(build: Build) -> None:
    home = build("0.22.2")
    ended(home, "continued", END - 90)
    child(home, "next", -89, parent_session_id="continued")
    ended(home, "hidden", END - 50)
    child(home, "marked", -49, parent_session_id="hidden", model_config={"_branched_from": "hidden"})
    ended(home, "held", END - 20)
    home.insert("compression_locks", session_id="held", holder="x", acquired_at=END, expires_at=2e9)
    ended(home, "dead")
    assert dead(home) == ["dead"]


@pytest.mark.parametrize(
    ("after", "later", "hidden"),
    [(300.0, 0.0, True), (301.0, 0.0, False), (-300.0, 0.0, True), (1.0, 59.0, True), (1.0, 60.0, False)],
)
def test_a_branch_that_begins_as_a_continuation_hides_one(
    build: Build, after: float, later: float, hidden: bool
) -> None:
    home = build()
    ended(home)
    child(home, after=after, later=later, model_config=BRANCH)
    assert dead(home) == ([] if hidden else ["old"])


@pytest.mark.parametrize("place", ["end", "beginning"])
def test_what_has_no_time_hides_none(build: Build, place: str) -> None:
    home = build()
    ended(home)
    child(home, model_config=BRANCH)
    column, session = {"end": ("ended_at", "old"), "beginning": ("started_at", "new")}[place]
    home.sql(f"UPDATE sessions SET {column} = 'soon' WHERE id = '{session}'")
    assert dead(home) == ["old"]


@pytest.mark.parametrize(
    ("old", "new", "hidden"),
    [("cli", "cli", True), ("cli", "subagent", False), ("subagent", "subagent", True)],
)
@pytest.mark.parametrize("mark", [BRANCH, DELEGATE], ids=["branch", "delegate"])
def test_a_run_for_a_chat_hides_none_and_a_run_that_goes_on_may(
    build: Build, mark: dict[str, str], old: str, new: str, hidden: bool
) -> None:
    home = build()
    ended(home, source=old)
    child(home, source=new, model_config=mark)
    assert dead(home) == ([] if hidden else ["old"])


@pytest.mark.parametrize(
    ("at", "hidden"), [(START, True), (END - 1, True), (END - 1.5, False), ("soon", False)]
)
def test_protected_messages_before_the_summary_are_carried_over_or_written_with_it(
    build: Build, at: object, hidden: bool
) -> None:
    """The session began at ``END`` - 10, its summary was written at ``END`` + 1: two seconds are together."""
    home = build()
    ended(home)
    home.session("new", parent_session_id="old", started_at=END - 10, model_config=DELEGATE)
    home.message("new", "user", "turn 0 of old", timestamp=at)
    home.message("new", "user", SUMMARY, timestamp=END + 1)
    assert dead(home) == ([] if hidden else ["old"])


def test_a_parent_that_no_compression_ended_hides_none(build: Build) -> None:
    home = build()
    ended(home, end_reason="cli_close")
    child(home, model_config=BRANCH)
    assert home.findings("LIN005") == []


def test_rows_without_a_time_begin_no_cut_off_session_and_hide_no_other(build: Build) -> None:
    home = build()
    for session_id, head, summary in (
        ("a", None, "soon"),
        ("b", "soon", END),
        ("c", END, "soon"),
        ("d", None, END),
    ):
        home.session(session_id, started_at=END, title=session_id.encode())
        if head is not None:
            home.message(session_id, "user", "before", timestamp=head)
        home.message(session_id, "user", SUMMARY, timestamp=summary)
        home.message(session_id, "assistant", "And so on.", timestamp=END + 1)
    assert [finding.subject.session for finding in home.findings("LIN009")] == ["d"]
