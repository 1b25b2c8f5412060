"""STO005 store-younger-than-evidence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import START, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict
from statemend.formats.jsonl import render
from statemend.store.connection import open_for_audit
from statemend.store.history import View, records, session_record

Build = Callable[..., HomeBuilder]
DAY = 86_400.0
SNAPSHOT = "state-snapshots/20260801-090000/state.db"
TURN = "INFO agent.conversation_loop: conversation turn: session={} model=m provider=p platform=cli history=0"


def keep(home: HomeBuilder, place: str = SNAPSHOT) -> Path:
    path = home.root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(home.store, path)
    return path


def export(home: HomeBuilder, session_id: str, folder: str = "session-exports") -> Path:
    with open_for_audit(home.store) as store:
        lines = render(session_record(store, session_id) or {}, list(records(store, session_id, View.ACTIVE)))
        return home.file(f"{folder}/{session_id}.jsonl", "".join(lines))


def log_turn(home: HomeBuilder, session_id: str, clock: str) -> None:
    home.log([f"{clock},000 {TURN.format(session_id)}"])


def begin_anew(home: HomeBuilder, later: float = 30 * DAY) -> None:
    """Hermes finds no store and makes a new one; then life goes on."""
    home.sql("DELETE FROM messages", "DELETE FROM sessions", "DELETE FROM sqlite_sequence")
    if later:
        home.session("new", started_at=START + later)
        for number in range(3):
            home.message("new", content=f"new {number}", timestamp=START + later + number)


@pytest.mark.fires("STO005")
def test_older_sessions_in_a_snapshot_whose_ids_belong_to_others_are_a_fault(build: Build) -> None:
    home = build("0.19.0")
    home.chat("old", 6)
    path = keep(home)
    begin_anew(home)

    (finding,) = home.findings("STO005")

    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.CRITICAL)
    told = facts(finding)
    assert told["their ids"] == ["old"]
    assert told["other stores that have them"] == [str(path)]
    assert told["highest row id it ever gave"] == 3
    assert told["row ids of theirs that this store cannot have had"] == 6


@pytest.mark.parametrize("version", ["0.13.0", "0.22.2"])
def test_a_store_that_was_begun_anew_and_is_still_empty_is_one_too(version: str, build: Build) -> None:
    home = build(version)
    home.chat("old")
    keep(home, "state.db.zeroed-20260801-090000-7.bak")
    begin_anew(home, later=0)

    (finding,) = home.findings("STO005")

    assert finding.verdict is Verdict.FAULT
    assert facts(finding)["oldest time in the store"] == "it is empty"


def test_a_store_inside_a_backup_tells_as_well(build: Build, tmp_path: Path) -> None:
    import zipfile

    home = build("0.19.0")
    home.chat("old")
    (home.root / "backups").mkdir()
    with zipfile.ZipFile(home.root / "backups" / "pre-update-1.zip", "w") as archive:
        archive.write(home.store, "state.db")
    begin_anew(home)

    (finding,) = home.findings("STO005")

    assert finding.verdict is Verdict.FAULT


def test_a_store_elsewhere_in_the_home_may_be_another_profiles(build: Build) -> None:
    home = build("0.19.0")
    home.chat("theirs", 6)
    keep(home, "session-exports/coder/state.db")
    begin_anew(home)
    (finding,) = home.findings("STO005")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.HIGH)


@pytest.mark.parametrize("place", ["state.db.pre-clean-markers-backup-20260801_090226", "an export"])
def test_what_a_clone_takes_along_may_be_of_the_profile_that_it_was_made_from(
    build: Build, place: str
) -> None:
    home = build("0.19.0", name="profiles/coder")
    home.chat("old", 6)
    if place == "an export":
        export(home, "old")
    else:
        keep(home, place)
    log_turn(home, "old", "2026-09-21 10:00:00")
    begin_anew(home)
    (finding,) = home.findings("STO005")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.HIGH)


def test_a_snapshot_of_a_profile_is_its_own(build: Build) -> None:
    home = build("0.19.0", name="profiles/coder")
    home.chat("old", 6)
    keep(home)
    begin_anew(home)
    (finding,) = home.findings("STO005")
    assert finding.verdict is Verdict.FAULT


def test_an_export_alone_may_be_of_another_machine(build: Build) -> None:
    home = build("0.19.0")
    home.chat("old", 6)
    path = export(home, "old")
    begin_anew(home)

    (finding,) = home.findings("STO005")

    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.HIGH)
    assert facts(finding)["exports that show them"] == [str(path)]


def test_an_export_of_a_session_that_this_home_logged_is_certain(build: Build) -> None:
    home = build("0.19.0")
    home.chat("old", 6)
    export(home, "old")
    log_turn(home, "old", "2026-09-21 10:00:00")
    begin_anew(home)

    (finding,) = home.findings("STO005")

    assert finding.verdict is Verdict.FAULT


def test_logs_alone_leave_it_undecidable(build: Build) -> None:
    home = build("0.19.0")
    begin_anew(home)
    log_turn(home, "old", "2026-09-21 10:00:00")

    (finding,) = home.findings("STO005")

    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["their ids"] == ["old"]


def test_a_turn_from_about_the_time_of_the_first_row_says_nothing(build: Build) -> None:
    """The log's clock has no zone, and a first turn is logged before it is stored."""
    home = build("0.19.0")
    home.chat("first")
    log_turn(home, "unsaved", "2026-09-21 07:00:00")
    assert home.findings("STO005") == []


def test_logs_say_nothing_where_the_first_row_is_gone(build: Build) -> None:
    home = build("0.19.0")
    begin_anew(home)
    log_turn(home, "old", "2026-09-21 10:00:00")
    home.sql("DELETE FROM messages WHERE id = 1")
    assert home.findings("STO005") == []


@pytest.mark.near_miss("STO005")
def test_sessions_that_were_deleted_are_lawful(build: Build) -> None:
    """All old ones pruned: the store is younger than its snapshots and exports, and still the same file."""
    home = build("0.19.0")
    home.chat("old", 6)
    keep(home)
    export(home, "old")
    log_turn(home, "old", "2026-09-21 10:00:00")
    home.sql("DELETE FROM messages", "DELETE FROM sessions")
    home.session("new", started_at=START + 30 * DAY)
    home.message("new", timestamp=START + 30 * DAY)
    assert home.findings("STO005") == []


def test_a_fresh_home_is_silent(build: Build) -> None:
    home = build("0.19.0")
    assert home.findings("STO005") == []
    home.chat("first")
    assert home.findings("STO005") == []


def test_exports_of_another_machine_in_a_folder_of_their_own_are_none_of_it(
    build: Build, tmp_path: Path
) -> None:
    other = build("0.19.0", name="other")
    other.chat("theirs", 6)
    export(other, "theirs")
    keep(other)
    home = build("0.19.0")
    begin_anew(home)
    found = home.audit("STO005", exports=[other.root / "session-exports", other.root / "state-snapshots"])
    assert found.findings == ()


def test_imported_sessions_are_not_missed(build: Build) -> None:
    """The export lies in the home, clashes in its ids, and what it shows is in the store."""
    home = build("0.19.0")
    home.chat("old", 6)
    export(home, "old")
    begin_anew(home)
    home.session("old", started_at=START)
    for number in range(6):
        home.message(
            "old", ("user", "assistant")[number % 2], f"turn {number} of old", timestamp=START + number
        )
    assert home.findings("STO005") == []


def test_going_back_to_a_snapshot_is_no_new_beginning(build: Build) -> None:
    home = build("0.19.0")
    home.chat("kept", 4)
    earlier = home.store.read_bytes()
    home.chat("later", 4, started_at=START + 10)
    keep(home)
    home.store.write_bytes(earlier)
    home.chat("after", 6, started_at=START + 20)
    assert home.findings("STO005") == []


def test_a_broken_copy_proves_nothing(build: Build) -> None:
    home = build("0.19.0")
    home.chat("old", 6)
    path = keep(home)
    path.write_bytes(path.read_bytes()[:9000])
    begin_anew(home)
    assert home.findings("STO005") == []


def test_without_the_table_of_sequences_only_a_clash_counts(build: Build) -> None:
    home = build("0.19.0")
    home.chat("old", 2)
    home.sql("UPDATE messages SET id = id + 500")
    keep(home)
    begin_anew(home)
    home.sql("DELETE FROM sqlite_sequence")
    assert home.findings("STO005") == []


def test_no_text_of_a_message_is_told(build: Build) -> None:
    home = build("0.19.0")
    home.session("old")
    home.message("old", content="a secret")
    keep(home)
    export(home, "old")
    begin_anew(home)
    (finding,) = home.findings("STO005")
    assert "a secret" not in json.dumps([fact.value for fact in finding.evidence]) + finding.summary
