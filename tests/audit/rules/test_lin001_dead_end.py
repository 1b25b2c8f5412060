"""LIN001 dead-end: a session that a compression ended and that nothing continues."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.audit.builder import NOW, START, VERSIONS, HomeBuilder, facts
from tests.audit.houses import House

from statemend.audit.finding import Severity, Verdict
from statemend.formats.logs import render_line

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100
HOUR = 3600.0


def ended(home: HomeBuilder, session_id: str = "old", *, lived: bool = True, **values: object) -> list[int]:
    """A chat that a compression ended at ``END``, and whose tokens were counted if it ``lived`` here."""
    rows = home.chat(session_id, 6, ended_at=END, end_reason="compression", title="Plan", **values)
    if lived and home.columns("session_model_usage"):
        counted(home, START + 1, END, session_id)
    return rows


def counted(home: HomeBuilder, first: float, last: float, session_id: str = "old") -> None:
    """The account of the tokens that a session used, as 0.19 and newer keep it."""
    home.insert(
        "session_model_usage", session_id=session_id, model="gpt-4o", first_seen=first, last_seen=last
    )


def continued(
    home: HomeBuilder, session_id: str = "new", parent: str | None = "old", **values: object
) -> None:
    """A session that begins with a summary, just after ``END``."""
    at = {"timestamp": END + 2}
    home.session(session_id, **{"parent_session_id": parent, "started_at": END + 1, **values})
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


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_that_may_have_been_imported_is_undecidable(build: Build, version: str) -> None:
    home = build(version)
    ended(home, lived=False)
    (finding,) = home.findings("LIN001")
    signs = facts(finding)["signs that it ran in this store"]
    if version < "0.19":
        assert finding.verdict is Verdict.FAULT
        assert signs == ["no release that can import has opened the store"]
    else:
        assert finding.verdict is Verdict.UNDECIDABLE
        assert signs == "none"
        assert "brought in without it" in finding.summary
        assert "tells of an import" in facts(finding)["what would decide"]


def carried_over(home: HomeBuilder, late: bool) -> None:
    """By the upgrade; an upgrade that is not done yet does it again at each opening."""
    counted(home, START, END)
    home.sql("UPDATE schema_version SET version = ?", bindings=(19 if late else 22,))


def among_others(home: HomeBuilder, late: bool) -> None:
    at = END + 1000 if late else START + 5.5
    home.chat("other", 1, started_at=START)
    home.sql("UPDATE messages SET timestamp = ? WHERE session_id = 'other'", bindings=(at,))
    home.message("old", timestamp=START + 20)


def noted(home: HomeBuilder, late: bool) -> None:
    at = END + 1 if late else END - 1
    home.sql("UPDATE sessions SET last_activity_at = ? WHERE id = 'old'", bindings=(at,))


SIGNS: dict[str, Callable[[HomeBuilder, bool], None]] = {
    "tokens of it were counted at 2026-09-21T14:13:25Z": lambda home, late: counted(
        home, END + 1 if late else START + 5, END + 2
    ),
    "the upgrade to 0.19 or newer found its account of tokens": carried_over,
    "rows of other were written between its own": among_others,
    "a compression locked it at 2026-09-21T14:14:59Z": lambda home, late: lock(
        home, NOW - 60, acquired_at=END + 1 if late else END - 1
    ),
    "its agent was at work at 2026-09-21T14:14:59Z": noted,
}


@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_of_life_from_before_the_end_makes_it_a_fault(build: Build, sign: str) -> None:
    home = build("0.22.2")
    ended(home, lived=False)
    SIGNS[sign](home, False)
    (finding,) = home.findings("LIN001")
    assert finding.verdict is Verdict.FAULT
    assert facts(finding)["signs that it ran in this store"] == [sign]


@pytest.mark.parametrize("sign", SIGNS)
def test_what_came_later_is_no_sign_of_life(build: Build, sign: str) -> None:
    home = build("0.22.2")
    ended(home, lived=False)
    SIGNS[sign](home, True)
    (finding,) = home.findings("LIN001")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["signs that it ran in this store"] == "none"


def logged(home: HomeBuilder, at: float) -> str:
    """A log of the home tells of a turn of the session at this local time, which is told."""
    clock = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S,000")
    turn = "conversation turn: session=old model=m provider=p platform=cli history=0 msg=''"
    home.log([render_line(clock, "INFO", "agent.turn_context", turn).rstrip("\n")])
    return clock


@pytest.mark.parametrize(
    ("ahead", "at", "lived"),
    [
        (2, START + 2 * HOUR, True),
        (2, END + 2 * HOUR + 1, False),
        (-5, END - 5 * HOUR, True),
        (-5, END - 5 * HOUR + 1, False),
        (None, START, False),
        (None, END - 12 * HOUR, True),
    ],
)
def test_a_turn_in_a_log_of_the_home_is_a_sign_of_life(
    build: Build, ahead: int | None, at: float, lived: bool
) -> None:
    """Where the zone of the log is not told, only one that was before the end in any zone."""
    home = build("0.19.0")
    home.sql("DELETE FROM sqlite_sequence")  # its first row is the first of all
    ended(home, lived=False)
    for number in range(2 if ahead is not None else 0):
        local = datetime.fromtimestamp(START + (ahead or 0) * HOUR, UTC)
        home.session(f"{local:%Y%m%d_%H%M%S}_aaaaa{number}", started_at=START)
    clock = logged(home, at)
    (finding,) = home.findings("LIN001")
    assert finding.verdict is (Verdict.FAULT if lived else Verdict.UNDECIDABLE)
    if lived:
        assert facts(finding)["signs that it ran in this store"] == [
            f"a log tells of a turn of it at {clock}, local time"
        ]


@pytest.mark.parametrize(
    ("before", "deleted", "lived"),
    [
        (START - 1, False, True),
        (START - 1, True, False),
        (START + 1, False, False),
        ("then", False, False),
    ],
    ids=["an older row", "a row is gone", "a younger row", "no time"],
)
def test_a_log_tells_nothing_of_a_session_that_may_have_been_deleted_and_brought_in_again(
    build: Build, before: object, deleted: bool, lived: bool
) -> None:
    home = build("0.19.0")
    home.message("before", timestamp=before)
    if deleted:
        home.message("before", timestamp=before)
        home.sql("DELETE FROM messages WHERE id = (SELECT MAX(id) FROM messages)")
    ended(home, lived=False)
    logged(home, END - 12 * HOUR)
    (finding,) = home.findings("LIN001")
    assert finding.verdict is (Verdict.FAULT if lived else Verdict.UNDECIDABLE)


def test_the_log_of_another_home_tells_nothing(build: Build, tmp_path: Path) -> None:
    home = build("0.19.0")
    ended(home, lived=False)
    logged(home, END - 12 * HOUR)
    (home.root / "logs").rename(tmp_path / "others")
    (finding,) = home.findings("LIN001", exports=[tmp_path / "others"])
    assert finding.verdict is Verdict.UNDECIDABLE


CHAT = {"session_key": "agent:work:telegram:dm:1", "profile_name": "work"}


@pytest.mark.parametrize(
    ("version", "profiles", "values", "moved"),
    [
        ("0.22.2", True, CHAT, True),
        ("0.22.2", True, {**CHAT, "profile_name": "default"}, True),
        ("0.22.2", False, CHAT, True),
        ("0.22.2", False, {**CHAT, "profile_name": "default"}, False),
        ("0.22.2", True, {**CHAT, "profile_name": None}, False),
        ("0.22.2", True, {**CHAT, "session_key": None}, False),
        ("0.22.2", True, {**CHAT, "session_key": "room:1"}, False),
        ("0.20.1", True, CHAT, False),
    ],
    ids=["profile", "default", "alone", "default alone", "no profile", "no chat", "no gateway's", "before"],
)
def test_an_account_that_a_move_brings_along_is_no_sign_of_life(
    build: Build, version: str, profiles: bool, values: dict[str, Any], moved: bool
) -> None:
    home = build(version)
    if profiles:
        (home.root / "profiles").mkdir()
    ended(home, last_activity_at=END - 1, **values)
    (finding,) = home.findings("LIN001")
    assert finding.verdict is (Verdict.UNDECIDABLE if moved else Verdict.FAULT)
    if moved:
        assert "was brought in" in finding.summary
        among_others(home, False)
        (finding,) = home.findings("LIN001")
        assert finding.verdict is Verdict.FAULT


@pytest.mark.parametrize("end", [NOW + 1, "soon"])
def test_an_end_that_is_no_time_before_now_dates_no_sign(build: Build, end: object) -> None:
    home = build("0.22.2")
    ended(home)
    home.sql("UPDATE sessions SET ended_at = ? WHERE id = 'old'", bindings=(end,))
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
    away = facts(finding)["sessions in other stores that may continue it"]
    assert away == [f"new: {house['work'].store}"]
    assert "in another store" in finding.summary
    assert "work" in finding.remedy.text


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        ({}, True),
        ({"source": "telegram"}, False),
        ({"started_at": END + 301}, False),
        ({"parent": "another"}, False),
    ],
    ids=["then", "of another source", "later", "with a parent"],
)
def test_what_begins_at_its_end_in_the_store_of_another_profile_may_continue_it(
    tmp_path: Path, values: dict[str, Any], fits: bool
) -> None:
    """A move to another store leaves no link between the two."""
    house = House(tmp_path)
    ended(house.root)
    continued(house["work"], **{"parent": None, **values})
    (finding,) = [one for one in house.findings("LIN001") if one.subject.session == "old"]
    assert finding.verdict is (Verdict.UNDECIDABLE if fits else Verdict.FAULT)
    away = facts(finding).get("sessions in other stores that may continue it")
    assert away == ([f"new: {house['work'].store}"] if fits else None)


def test_a_fitting_session_here_outweighs_one_in_another_store(tmp_path: Path) -> None:
    house = House(tmp_path)
    ended(house.root)
    continued(house.root, parent=None)
    continued(house["work"], "other", parent=None)
    (finding,) = [one for one in house.findings("LIN001") if one.subject.session == "old"]
    assert finding.verdict is Verdict.FAULT


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


def lock(home: HomeBuilder, expires_at: float, acquired_at: float = END) -> None:
    home.insert(
        "compression_locks",
        session_id="old",
        holder="elsewhere",
        acquired_at=acquired_at,
        expires_at=expires_at,
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
