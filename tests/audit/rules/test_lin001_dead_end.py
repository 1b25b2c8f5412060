"""LIN001 dead-end: a session that a compression ended and that nothing continues."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import NOW, START, VERSIONS, HomeBuilder, facts
from tests.audit.houses import House

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100


def ended(home: HomeBuilder, session_id: str = "old", **values: object) -> list[int]:
    """A chat that a compression ended at ``END``."""
    return home.chat(session_id, 6, ended_at=END, end_reason="compression", title="Plan", **values)


def continued(
    home: HomeBuilder, session_id: str = "new", parent: str | None = "old", **values: object
) -> None:
    """A session that begins with a summary, just after ``END``."""
    at = {"timestamp": END + 2}
    home.session(session_id, parent_session_id=parent, started_at=END + 1, **values)
    home.message(session_id, "user", SUMMARY, **at)
    home.message(session_id, "assistant", "And so on.", **at)


@pytest.mark.fires("LIN001")
@pytest.mark.parametrize("version", VERSIONS)
def test_an_end_without_continuation_is_a_fault(build: Build, version: str) -> None:
    home = build(version)
    rows = ended(home)
    (finding,) = home.findings("LIN001")
    assert finding.verdict is Verdict.FAULT
    assert finding.severity is Severity.HIGH
    assert finding.subject.session == "old"
    assert facts(finding)["ended at"] == "2026-09-21T14:15:00Z"
    assert facts(finding)["live rows"] == len(rows)
    assert "none was ever stored" in finding.summary


@pytest.mark.parametrize("version", VERSIONS)
def test_a_continued_session_is_silent(build: Build, version: str) -> None:
    home = build(version)
    ended(home)
    continued(home)
    assert home.findings("LIN001") == []


def test_an_empty_continuation_is_a_continuation(build: Build) -> None:
    home = build()
    ended(home)
    home.session("new", parent_session_id="old", started_at=END + 1)
    assert home.findings("LIN001") == []


@pytest.mark.near_miss("LIN001")
def test_a_continuation_with_an_inherited_marker_counts(build: Build) -> None:
    home = build("0.20.1")
    home.chat("first", 2)
    ended(home, parent_session_id="first", model_config={"_branched_from": "first"})
    continued(home, model_config={"_branched_from": "first"})
    assert home.findings("LIN001") == []


@pytest.mark.parametrize("marker", ["_branched_from", "_delegate_from", "_reset_from"])
def test_a_marked_child_is_no_continuation(build: Build, marker: str) -> None:
    home = build("0.22.2")
    ended(home)
    home.chat("side", 2, parent_session_id="old", started_at=END + 1, model_config={marker: "old"})
    (finding,) = home.findings("LIN001")
    assert facts(finding)["children that do not continue it"] == 1


def test_an_unlinked_continuation_is_listed_as_candidate(build: Build) -> None:
    home = build()
    ended(home)
    continued(home, parent=None)
    (finding,) = home.findings("LIN001")
    assert finding.verdict is Verdict.FAULT
    assert facts(finding)["candidate sessions"] == ["new: begins where the other ends"]
    assert "new" in finding.remedy.text


def test_a_continuation_hidden_by_a_false_delegate_marker_is_left_to_that_rule(build: Build) -> None:
    home = build()
    ended(home)
    continued(home, model_config={"_delegate_from": "old"})
    assert home.findings("LIN001") == []


def test_vanished_rows_make_it_undecidable(build: Build) -> None:
    home = build()
    ended(home)
    continued(home)
    home.sql("DELETE FROM messages WHERE session_id = 'new'", "DELETE FROM sessions WHERE id = 'new'")
    (finding,) = home.findings("LIN001")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert "an export, a backup or a log" in facts(finding)["what would decide"]
    assert "deleted" in finding.summary


def test_rows_that_vanished_long_after_the_end_do_not_matter(build: Build) -> None:
    home = build()
    ended(home)
    home.session("later")
    home.message("later", timestamp=END + 10_000)
    home.message("later", timestamp=END + 20_000)
    home.message("later", timestamp=END + 30_000)
    home.sql("DELETE FROM messages WHERE timestamp = ?", bindings=(END + 20_000,))
    (finding,) = home.findings("LIN001")
    assert finding.verdict is Verdict.FAULT


def test_a_session_that_was_brought_in_after_younger_rows_is_undecidable(build: Build) -> None:
    home = build()
    home.chat("meanwhile", 4, started_at=END + 86400)
    home.sql("UPDATE messages SET timestamp = timestamp + 86500")
    ended(home)
    (finding,) = home.findings("LIN001")
    assert finding.verdict is Verdict.UNDECIDABLE


def test_a_session_between_older_and_younger_rows_was_not_brought_in(build: Build) -> None:
    home = build()
    home.chat("before", 4)
    ended(home)
    home.chat("after", 4, started_at=END + 86400)
    home.sql("UPDATE messages SET timestamp = timestamp + 86500 WHERE session_id = 'after'")
    (finding,) = home.findings("LIN001")
    assert finding.verdict is Verdict.FAULT


def test_an_export_of_the_deleted_continuation_makes_it_a_leftover(build: Build) -> None:
    home = build()
    ended(home)
    record = {"id": "new", "source": "cli", "parent_session_id": "old", "started_at": END + 1, "messages": []}
    home.file("session-exports/new.jsonl", json.dumps(record) + "\n")
    (finding,) = home.findings("LIN001")
    assert finding.verdict is Verdict.LEFTOVER
    (known,) = facts(finding)["continuations known from exports"]
    assert known.startswith("new: ")


@pytest.mark.parametrize("version", ["0.13.0", "0.22.2"])
def test_a_child_in_the_store_of_another_profile_is_named_and_decides_nothing(
    tmp_path: Path, version: str
) -> None:
    house = House(tmp_path, version)
    ended(house.root)
    continued(house["work"])
    (finding,) = house.findings("LIN001")
    assert (finding.verdict, finding.subject.session) == (Verdict.UNDECIDABLE, "old")
    assert facts(finding)["children in other stores"] == [f"new: {house['work'].store}"]
    assert "in another store" in finding.summary
    assert "work" in finding.remedy.text


def test_an_export_of_a_continuation_in_another_store_tells_of_no_deletion(tmp_path: Path) -> None:
    house = House(tmp_path)
    ended(house.root)
    continued(house["work"])
    record = {"id": "new", "source": "cli", "parent_session_id": "old", "started_at": END + 1, "messages": []}
    house.root.file("session-exports/new.jsonl", json.dumps(record) + "\n")
    (finding,) = house.findings("LIN001")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert "deleted" not in finding.summary


def test_where_another_store_cannot_be_asked_nothing_is_claimed_of_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    ended(house.root)
    house["work"].store.write_bytes(b"no database")
    audit, _ = house.survey("LIN001")
    (result,) = audit.rules
    assert result.status == "could not run"
    assert "not every store of the home could be asked" in result.reason
    assert [one.subject.session for one in audit.findings] == ["old"]


def lock(home: HomeBuilder, expires_at: float) -> None:
    home.insert(
        "compression_locks", session_id="old", holder="elsewhere", acquired_at=END, expires_at=expires_at
    )


def test_a_handoff_under_way_is_silent(build: Build) -> None:
    home = build()
    ended(home)
    lock(home, NOW + 60)
    assert home.findings("LIN001") == []


def test_an_expired_lock_does_not_excuse_it(build: Build) -> None:
    home = build()
    ended(home)
    lock(home, NOW - 60)
    assert [finding.subject.session for finding in home.findings("LIN001")] == ["old"]


def test_the_id_does_not_depend_on_what_grows(build: Build) -> None:
    home = build()
    ended(home)
    (before,) = home.findings("LIN001")
    home.turns("old", 2)
    (after,) = home.findings("LIN001")
    assert before.id == after.id
    assert before.evidence != after.evidence
