"""LIN009 cut-continuation: a session that begins in the middle of a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100


def ended(home: HomeBuilder, **values: object) -> None:
    home.chat("old", 6, **{"ended_at": END, "end_reason": "compression", **values})


def cut(home: HomeBuilder, after: float = 1.0, first: str = SUMMARY, **values: object) -> int:
    home.session("new", **{"started_at": END + after, **values})
    row = home.message("new", "user", first, timestamp=END + after)
    home.message("new", "assistant", "And so on.", timestamp=END + after + 1)
    return row


@pytest.mark.fires("LIN009")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_fitting_dead_end_makes_it_a_fault(build: Build, version: str) -> None:
    home = build(version)
    ended(home)
    row = cut(home)
    (finding,) = home.findings("LIN009")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    assert finding.subject.session == "new"
    assert finding.subject.message_ids == (row,)
    assert facts(finding)["candidate parents"] == ["old: begins where the other ends"]
    assert "old" in finding.remedy.text


@pytest.mark.parametrize("version", VERSIONS)
def test_without_a_dead_end_it_is_undecidable(build: Build, version: str) -> None:
    home = build(version)
    cut(home)
    (finding,) = home.findings("LIN009")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert "a backup, an export or a log" in facts(finding)["what would decide"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_linked_continuation_is_silent(build: Build, version: str) -> None:
    home = build(version)
    ended(home)
    cut(home, parent_session_id="old")
    assert home.findings("LIN009") == []


@pytest.mark.parametrize("carried_at", [START, END + 1])
def test_the_protected_first_messages_may_stand_before_the_summary(build: Build, carried_at: float) -> None:
    home = build()
    ended(home)
    home.session("new", started_at=END + 1)
    home.message("new", "user", "turn 0 of old", timestamp=carried_at)
    home.message("new", "assistant", "turn 1 of old", timestamp=carried_at)
    row = home.message("new", "user", SUMMARY, timestamp=END + 1)
    (finding,) = home.findings("LIN009")
    assert finding.verdict is Verdict.FAULT
    assert finding.subject.message_ids == (row,)


def test_two_in_place_compactions_of_a_short_chat_are_silent(build: Build) -> None:
    home = build()
    home.session("chat")
    home.message("chat", "user", "How are you?", active=0, compacted=1)
    home.message("chat", "user", SUMMARY, active=0, compacted=1, timestamp=START + 500)
    home.message("chat", "user", SUMMARY, timestamp=START + 900)
    assert home.findings("LIN009") == []


@pytest.mark.near_miss("LIN009")
@pytest.mark.parametrize("rows", [1, 4])
def test_one_compacted_within_two_seconds_of_its_first_message_and_again_is_silent(
    build: Build, rows: int
) -> None:
    home = build()
    ended(home, ended_at=START + 1)
    home.session("chat", started_at=START)
    for number in range(rows):
        home.message("chat", "user", f"part {number}", active=0, compacted=1, timestamp=START + number / 10)
    home.message("chat", "user", SUMMARY, active=0, compacted=1, timestamp=START + 1)
    home.message("chat", "user", SUMMARY, timestamp=START + 900)
    assert home.findings("LIN009") == []
    assert [facts(one)["candidates"] for one in home.findings("LIN001")] == [0]


def test_a_continuation_compacted_again_is_told_where_rows_of_the_other_stand_in_it(build: Build) -> None:
    home = build()
    ended(home)
    home.session("new", started_at=END + 1)
    old = {"active": 0, "compacted": 1}
    home.message("new", "user", "turn 0 of old", timestamp=END + 1, **old)
    row = home.message("new", "user", SUMMARY, timestamp=END + 1, **old)
    for number in (4, 5):
        role = ("user", "assistant")[number % 2]
        home.message("new", role, f"turn {number} of old", timestamp=END + 1, **old)
    home.message("new", "user", SUMMARY, timestamp=END + 900)
    (finding,) = home.findings("LIN009")
    assert finding.verdict is Verdict.FAULT
    assert finding.subject.message_ids == (row,)


def test_an_in_place_compaction_is_silent(build: Build) -> None:
    home = build()
    home.session("chat")
    home.message("chat", "user", "How are you?", active=0, compacted=1)
    home.message("chat", "user", SUMMARY)
    assert home.findings("LIN009") == []


def test_a_rewrite_in_place_is_a_leftover(build: Build) -> None:
    home = build("0.13.0")
    cut(home, started_at=START - 4000)
    (finding,) = home.findings("LIN009")
    assert finding.verdict is Verdict.LEFTOVER
    assert "was replaced, or deleted" in finding.summary


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"source": "telegram"}, {"source": "cli"}),
        ({"user_id": "1"}, {"user_id": "2"}),
        ({"title": "Taxes"}, {"title": "Garden #2"}),
        ({"ended_at": END - 4000}, {}),
    ],
)
def test_a_dead_end_that_does_not_fit(build: Build, old: dict[str, object], new: dict[str, object]) -> None:
    home = build()
    ended(home, **old)
    cut(home, **new)
    (finding,) = home.findings("LIN009")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["candidates"] == 0


def test_the_next_number_of_the_title_fits_at_any_distance(build: Build) -> None:
    home = build()
    ended(home, title="Taxes")
    cut(home, 90_000, title="Taxes #2")
    (finding,) = home.findings("LIN009")
    assert facts(finding)["candidate parents"] == ["old: the next number of the same title"]


def test_a_later_number_alone_does_not_fit(build: Build) -> None:
    home = build()
    ended(home, title="Taxes")
    cut(home, 90_000, title="Taxes #3")
    (finding,) = home.findings("LIN009")
    assert finding.verdict is Verdict.UNDECIDABLE


def test_carried_rows_fit_at_any_distance(build: Build) -> None:
    home = build()
    ended(home)
    cut(home, 90_000)
    home.message("old", "user", "The last question.")
    home.message("old", "assistant", "The last answer.")
    home.message("new", "user", "The last question.")
    home.message("new", "assistant", "The last answer.")
    (finding,) = home.findings("LIN009")
    assert finding.verdict is Verdict.FAULT
    assert facts(finding)["rows carried over from the best candidate"] == 2
    assert "last question" not in repr(finding)


def test_an_export_that_names_the_deleted_parent_makes_it_a_leftover(build: Build) -> None:
    home = build()
    cut(home)
    record = {"id": "new", "source": "cli", "parent_session_id": "old", "started_at": END + 1, "messages": []}
    home.file("session-exports/new.jsonl", json.dumps(record) + "\n")
    (finding,) = home.findings("LIN009")
    assert finding.verdict is Verdict.LEFTOVER
    (known,) = facts(finding)["parents named by exports"]
    assert known.startswith("old: ")


@pytest.mark.parametrize("marker", [{"_branched_from": "old"}, {"_delegate_from": "old"}])
def test_a_branch_or_a_run_whose_parent_was_deleted_is_silent(build: Build, marker: dict[str, str]) -> None:
    home = build()
    cut(home, model_config=marker)
    assert home.findings("LIN009") == []


@pytest.mark.parametrize(
    "first",
    [
        "[CONTEXT SUMMARY]: A plan was made.",
        "[PRIOR CONTEXT — for reference only; not a new message]\nGo on.\n"
        "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n" + SUMMARY,
    ],
)
def test_older_and_merged_summaries_are_known(build: Build, first: str) -> None:
    home = build()
    cut(home, first=first)
    assert [finding.subject.session for finding in home.findings("LIN009")] == ["new"]


def test_talk_about_a_summary_is_silent(build: Build) -> None:
    home = build()
    cut(home, first="What does [CONTEXT COMPACTION mean in the log?")
    assert home.findings("LIN009") == []


def test_a_summary_flag_is_enough(build: Build) -> None:
    home = build("0.22.2")
    home.session("new")
    home.message("new", "user", "A plan was made.", _compressed_summary=1)
    assert [finding.subject.session for finding in home.findings("LIN009")] == ["new"]


def test_a_session_that_may_have_stood_between_leaves_it_open(build: Build) -> None:
    """What begins with the summary may be a branch of a continuation that was deleted."""
    home = build("0.15.2")
    ended(home)
    home.session("between", started_at=END + 1)
    home.message("between", "user", SUMMARY, timestamp=END + 1)
    home.message("new", "user", SUMMARY, timestamp=END + 60)
    home.session("new", started_at=END + 60)
    home.message("new", "assistant", "And so on.", timestamp=END + 61)
    home.sql("DELETE FROM messages WHERE session_id = 'between'")
    home.sql("DELETE FROM sessions WHERE id = 'between'")

    found = {one.rule: one for one in home.audit("LIN").findings}

    assert {rule: one.verdict for rule, one in found.items()} == {
        "LIN001": Verdict.UNDECIDABLE,
        "LIN009": Verdict.UNDECIDABLE,
    }
    assert facts(found["LIN009"])["rows are missing between it and"] == ["old"]
    assert facts(found["LIN009"])["what would decide"]
