"""LIN013 unlinked-chain: segments of one conversation that no link ever held together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
PACE = 1000.0


def segment(home: HomeBuilder, number: int, **values: Any) -> None:
    """One segment of a conversation: it ends a second before the next begins. The upgrade to 0.19 has carried
    its account of tokens over."""
    began = START + number * PACE
    title = "Taxes" if number == 1 else f"Taxes #{number}"
    told = {"title": title, "started_at": began, "ended_at": began + PACE - 1, "end_reason": "cli_close"}
    told |= values
    home.session(f"s{number}", **told)
    if home.columns("session_model_usage"):
        used = {"first_seen": told["started_at"], "last_seen": told["ended_at"] or told["started_at"]}
        home.insert("session_model_usage", session_id=f"s{number}", model="gpt-4o", **used)
    first = "What of my taxes?" if number == 1 else SUMMARY
    home.message(f"s{number}", "user", first, timestamp=began)
    home.message(f"s{number}", "assistant", f"Answer {number}.", timestamp=began + PACE - 2)


def told(home: HomeBuilder) -> list[tuple[str, str, str | None]]:
    outcome = home.audit("LIN")
    return [(one.rule, one.verdict.value, one.subject.session) for one in outcome.findings]


@pytest.mark.fires("LIN013")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_chain_of_three_is_one_fault(build: Build, version: str) -> None:
    home = build(version)
    for number in (3, 1, 2):
        segment(home, number)
    assert told(home) == [("LIN013", "fault", "s1")]
    (finding,) = home.findings("LIN013")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    evidence = facts(finding)
    assert (evidence["sessions"], evidence["first session"], evidence["last session"]) == (3, "s1", "s3")
    assert evidence["missing links"] == [
        "s1 > s2: the next number of its title, begins where the other stops; the first ended by cli_close",
        "s2 > s3: the next number of its title, begins where the other stops; the first ended by cli_close",
    ]
    assert "What of my" not in repr(finding)


def test_an_open_segment_is_told_by_its_last_message(build: Build) -> None:
    home = build()
    segment(home, 1, ended_at=None, end_reason=None)
    segment(home, 2)
    assert told(home) == [("LIN013", "fault", "s1")]


def test_carried_rows_tell_at_any_distance(build: Build) -> None:
    home = build()
    segment(home, 1)
    segment(home, 2, started_at=START + 90_000)
    home.sql("UPDATE messages SET timestamp = timestamp + 90000 WHERE session_id = 's2'")
    assert told(home) == [("LIN013", "undecidable", "s1")]
    for text in ("The last question.", "The last answer."):
        home.message("s1", "user", text, timestamp=START + PACE + 500)
        home.message("s2", "user", text, timestamp=START + 92_000)
    assert told(home) == [("LIN013", "fault", "s1")]
    assert facts(home.findings("LIN013")[0])["rows that stand on both sides of a link"] == 2


def test_titles_alone_are_undecidable_and_say_what_would_tell(build: Build) -> None:
    home = build()
    segment(home, 1)
    segment(home, 2, started_at=START + 90_000)
    home.sql("UPDATE messages SET timestamp = timestamp + 90000 WHERE session_id = 's2'")
    (finding,) = home.findings("LIN013")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.LOW)
    assert "an export or a log" in facts(finding)["what would decide"]


def test_where_rows_are_missing_a_session_may_have_stood_between(build: Build) -> None:
    """From 0.20 on the continuation of a branch takes over the number of its title."""
    home = build("0.22.2")
    segment(home, 1)
    gone = home.message("s1", timestamp=START + PACE + 1)
    segment(home, 2)
    home.sql("DELETE FROM messages WHERE id = ?", bindings=(gone,))
    assert told(home) == [("LIN013", "undecidable", "s1")]
    assert "rows are missing between them" in facts(home.findings("LIN013")[0])["missing links"][0]


def test_a_segment_that_may_have_been_imported_is_undecidable(build: Build) -> None:
    home = build("0.22.2")
    segment(home, 1)
    segment(home, 2)
    home.sql("DELETE FROM session_model_usage")
    assert told(home) == [("LIN013", "undecidable", "s1")]
    assert "may have been brought in" in facts(home.findings("LIN013")[0])["missing links"][0]


def test_what_was_branched_off_is_no_older_segment(build: Build) -> None:
    home = build("0.22.2")
    segment(home, 1, end_reason="branched")
    segment(home, 2)
    assert told(home) == [("LIN009", "undecidable", "s2")]


@pytest.mark.near_miss("LIN013")
@pytest.mark.parametrize(
    "values",
    [
        {"title": "Garden #2"},
        {"title": "Taxes #3"},
        {"title": None},
        {"source": "telegram"},
        {"user_id": "2"},
        {"started_at": START},
        {"model_config": {"_branched_from": "s1"}},
    ],
    ids=["other title", "later number", "no title", "other source", "other user", "older", "branch"],
)
def test_near_misses_are_silent(build: Build, values: dict[str, Any]) -> None:
    home = build("0.22.2")
    segment(home, 1, user_id="1")
    segment(home, 2, **values)
    assert home.findings("LIN013") == []


def test_two_chats_with_one_automatic_title_are_silent(build: Build) -> None:
    """A title that is taken gets a number, and a second chat may follow within seconds."""
    home = build()
    segment(home, 1)
    segment(home, 2)
    home.sql("UPDATE messages SET content = 'Again: my taxes?' WHERE session_id = 's2' AND role = 'user'")
    assert told(home) == []


def test_a_dead_end_that_fits_is_told_by_the_rules_for_it(build: Build) -> None:
    home = build()
    segment(home, 1, end_reason="compression")
    segment(home, 2)
    assert told(home) == [("LIN001", "fault", "s1"), ("LIN009", "fault", "s2")]


def test_a_predecessor_that_has_its_continuation_is_silent(build: Build) -> None:
    home = build()
    segment(home, 1)
    segment(home, 2)
    home.session("other", parent_session_id="s1", started_at=START + 1990)
    home.message("other", "user", SUMMARY, timestamp=START + 1990)
    assert told(home) == [("LIN014", "fault", "other"), ("LIN009", "undecidable", "s2")]


def test_the_order_of_the_rows_and_more_segments_leave_the_id_alone(build: Build) -> None:
    home = build()
    segment(home, 2)
    segment(home, 1)
    (before,) = home.findings("LIN013")
    segment(home, 3)
    (after,) = home.findings("LIN013")
    assert before.id == after.id
