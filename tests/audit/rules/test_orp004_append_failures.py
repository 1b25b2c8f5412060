"""ORP004 append-failures."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.audit.builder import EXPORTED, START, VERSIONS, HomeBuilder, facts
from tests.audit.houses import House

from statemend.audit.finding import Severity, Verdict
from statemend.formats.logs import render_line

Build = Callable[..., HomeBuilder]

FK = "FOREIGN KEY constraint failed"
LOCKED = "database is locked"
HOUR = 3600.0


def line(at: float, session_id: str | None, error: str = FK, operation: str = "append_message") -> str:
    """A line that a log on a machine with this local time (epoch seconds as if in UTC) would have."""
    clock = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S,000")
    texts = {
        "append_message": f"Session DB append_message failed: {error}",
        "creation": f"Session DB creation failed (will retry next turn): {error}",
    }
    return render_line(clock, "WARNING", "run_agent", texts[operation], session_id).rstrip("\n")


def in_zone(home: HomeBuilder, hours: float) -> None:
    """Give the home sessions whose ids tell that its machine is so many hours ahead of UTC."""
    for number in range(3):
        started = START - 1000.0 + 100 * number
        local = datetime.fromtimestamp(started + hours * HOUR, UTC).strftime("%Y%m%d_%H%M%S")
        home.chat(f"{local}_00000{number}", 2, started_at=started)


@pytest.mark.fires("ORP004")
@pytest.mark.parametrize("version", VERSIONS)
def test_turns_of_a_session_that_is_gone_never_arrived(build: Build, version: str) -> None:
    home = build(version)
    home.log([line(START, "gone"), line(START + 30, "gone")])

    (finding,) = home.findings("ORP004")

    assert finding.subject.session == "gone"
    assert finding.subject.message_ids == ()
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.CRITICAL)
    evidence = facts(finding)
    assert evidence["failures"] == 2
    assert evidence["causes"] == [FK]
    assert evidence["first, local time of the log"] == "2026-09-21 14:13:20,000"
    assert evidence["last, local time of the log"] == "2026-09-21 14:13:50,000"
    assert evidence["lines"] == ["agent.log:1", "agent.log:2"]


def test_messages_that_the_session_left_behind_are_counted(build: Build) -> None:
    home = build()
    home.message("gone", timestamp=START - 100)
    home.log([line(START, "gone")])

    (finding,) = home.findings("ORP004")

    assert facts(finding)["rows in the store"] == 1
    assert "of which the store still has 1 message." in finding.remedy.text


def test_one_event_in_several_logs_counts_once(build: Build) -> None:
    home = build()
    for name in ("agent.log", "errors.log"):
        home.log([line(START, "gone")], name)

    (finding,) = home.findings("ORP004")

    assert facts(finding)["failures"] == 1


def test_rotated_and_packed_logs_are_read(build: Build) -> None:
    home = build()
    home.log([line(START + 10, "gone")])
    home.log([line(START + 5, "gone")], "agent.log.1")
    home.file("logs/agent.log.2.gz", gzip.compress((line(START, "gone") + "\n").encode()))

    (finding,) = home.findings("ORP004")

    assert facts(finding)["files"] == ["agent.log.2.gz", "agent.log.1", "agent.log"]


@pytest.mark.parametrize("hours", [-8.0, 0.0, 5.75])
def test_the_zone_is_told_from_the_ids_of_sessions(build: Build, hours: float) -> None:
    """An hour between the failure and the last row decides only when the zone is known."""
    home = build()
    in_zone(home, hours)
    home.chat("lost", 3, started_at=START - HOUR)
    home.sql("UPDATE messages SET timestamp = ? WHERE session_id = 'lost'", bindings=(START - HOUR,))
    home.log([line(START + hours * HOUR, "lost", LOCKED)])

    (finding,) = home.findings("ORP004")

    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    assert facts(finding)["local time ahead of UTC in hours"] == hours


@pytest.mark.parametrize("hours", [-8.0, 5.75])
def test_a_failure_that_was_made_good_is_a_leftover(build: Build, hours: float) -> None:
    home = build()
    in_zone(home, hours)
    home.chat("healed", 3, started_at=START)
    home.message("healed", timestamp=START + 60)
    home.log([line(START + hours * HOUR, "healed")])

    (finding,) = home.findings("ORP004")

    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.INFO)


def test_rows_just_before_the_failure_can_be_its_own_turn(build: Build) -> None:
    home = build()
    in_zone(home, 2)
    home.chat("near", 2, started_at=START)
    home.sql("UPDATE messages SET timestamp = ? WHERE session_id = 'near'", bindings=(START - 20,))
    home.log([line(START + 2 * HOUR, "near", LOCKED)])

    (finding,) = home.findings("ORP004")

    assert finding.verdict is Verdict.UNDECIDABLE


@pytest.mark.parametrize(
    ("last_row", "verdict"),
    [
        (START - 15 * HOUR, Verdict.FAULT),
        (START - HOUR, Verdict.UNDECIDABLE),
        (START + HOUR, Verdict.UNDECIDABLE),
        (START + 13 * HOUR, Verdict.LEFTOVER),
    ],
    ids=["before in any zone", "before or after", "after or before", "after in any zone"],
)
def test_without_a_zone_only_what_holds_in_every_zone_is_said(
    build: Build, last_row: float, verdict: Verdict
) -> None:
    home = build()
    home.session("some", started_at=START - 20 * HOUR)
    home.message("some", timestamp=last_row)
    home.log([line(START, "some", LOCKED)])

    (finding,) = home.findings("ORP004")

    assert finding.verdict is verdict
    assert facts(finding)["local time ahead of UTC in hours"] == "unknown"


def test_a_session_that_is_there_without_a_message_lost_them_all(build: Build) -> None:
    home = build()
    home.session("ghost", source="unknown")
    home.log([line(START, "ghost")])

    (finding,) = home.findings("ORP004")

    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.CRITICAL)


def test_a_row_made_anew_by_accounting_hides_what_came_before(build: Build) -> None:
    home = build()
    home.session("ghost", source="unknown")
    home.message("ghost", timestamp=START + 20 * HOUR)
    home.log([line(START, "ghost")])

    (finding,) = home.findings("ORP004")

    assert finding.verdict is Verdict.UNDECIDABLE
    assert "made anew" in finding.summary


def test_another_cause_and_no_session_today_may_be_a_deletion_since(build: Build) -> None:
    home = build()
    home.log([line(START, "gone", LOCKED)])

    (finding,) = home.findings("ORP004")

    assert finding.verdict is Verdict.UNDECIDABLE


def test_lines_that_name_no_session_are_one_open_finding(build: Build) -> None:
    home = build()
    home.log([line(START, None), line(START + 1, None, LOCKED)])

    (finding,) = home.findings("ORP004")

    assert finding.subject.session is None
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.HIGH)
    assert facts(finding)["failures"] == 2


@pytest.mark.near_miss("ORP004")
def test_a_row_that_could_not_be_made_at_once_and_was_made_later_is_lawful(build: Build) -> None:
    home = build()
    home.chat("slow", 2)
    home.log([line(START - 5, "slow", LOCKED, "creation")])

    assert home.findings("ORP004") == []


def test_logs_without_a_failure_are_lawful(build: Build) -> None:
    home = build()
    home.log(
        [render_line("2026-09-21 14:13:20,000", "INFO", "run_agent", "conversation turn: session=x").rstrip()]
    )

    assert home.findings("ORP004") == []


@pytest.mark.parametrize("damage", ["header", "table"])
def test_without_the_store_the_logs_still_speak(build: Build, damage: str) -> None:
    home = build("0.22.2", rich=True)
    home.log([line(START, "gone")])
    if damage == "header":
        home.store.write_bytes(bytes(8192))
    else:
        (root,) = home.sql("SELECT rootpage FROM sqlite_master WHERE name = 'sessions'")[0]
        data = bytearray(home.store.read_bytes())
        data[(root - 1) * 4096] ^= 0xFF
        home.store.write_bytes(bytes(data))

    (finding,) = home.findings("ORP004")

    assert finding.verdict is Verdict.UNDECIDABLE
    assert "the store cannot be read" in finding.summary


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("ORP004").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("ORP004").status == "clean"


@pytest.mark.parametrize("number", [1, 2])
def test_writes_of_a_session_that_another_profile_has(tmp_path: Path, number: int) -> None:
    house = House(tmp_path)
    house["work"].chat("one")
    for home in (house.root, house["work"]):
        home.chat("both")
    lines = [line(START + second, "one") for second in range(number)]
    house.root.log([line(START, "gone"), line(START, None), line(START, "both", LOCKED), *lines])

    found = {each.subject.session: each for each in house.findings("ORP004")}

    assert found["gone"].verdict is Verdict.FAULT
    of_work = found["one"]
    assert (of_work.verdict, of_work.severity) == (Verdict.UNDECIDABLE, Severity.MEDIUM)
    writes = f"{number} write{'s' if number > 1 else ''} to a store failed"
    assert of_work.summary == f"{writes}; the session is in that of profile work."
    assert facts(of_work)["store that has the session"] == str(house["work"].store)
    assert "Compare the last turns" in of_work.remedy.text
    assert "both" not in found or "that of profile" not in found["both"].summary
