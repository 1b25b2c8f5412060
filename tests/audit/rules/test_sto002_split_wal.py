"""STO002 split-wal."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from tests.audit.builder import EXPORTED, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict
from statemend.store.holders import Holder

pytestmark = pytest.mark.built("STO002", "it takes a process that is killed while another replaces the file")

Build = Callable[..., HomeBuilder]
FRAME = 24 + 4096


WRITE = "INSERT INTO state_meta (key, value) VALUES (?, ?)"


def crash(home: HomeBuilder, writes: int = 3, write: str = WRITE) -> Path:
    """Leave the store as a killed writer does: its last transactions committed to the log alone."""
    folder = home.root / "writer"
    folder.mkdir()
    shutil.copyfile(home.store, folder / "state.db")
    connection = apsw.Connection(str(folder / "state.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("wal_autocheckpoint", 0)
    for number in range(writes):
        connection.execute(write, (f"crash {number}", "x" * 3000))
    shutil.copyfile(folder / "state.db", home.store)
    wal = home.root / "state.db-wal"
    shutil.copyfile(folder / "state.db-wal", wal)
    connection.close()
    shutil.rmtree(folder)
    return wal


def fill(home: HomeBuilder, number: int) -> None:
    """Have a store of many pages."""
    with home.opened():
        for row in range(number):
            home.message("filler", content="y" * 3000, timestamp=1.79e9 + row)


@pytest.mark.near_miss("STO002")
def test_a_log_that_was_not_checkpointed_is_lawful(build: Build) -> None:
    home = build(empty=False)
    crash(home)

    assert home.audit("STO002").findings == ()


def test_an_interrupted_last_write_is_lawful(build: Build) -> None:
    home = build(empty=False)
    wal = crash(home)
    wal.write_bytes(wal.read_bytes()[:-1000])

    assert home.audit("STO002").findings == ()


def test_frames_of_an_earlier_use_behind_the_valid_ones_are_lawful(build: Build) -> None:
    home = build(empty=False)
    wal = crash(home)
    data = wal.read_bytes()
    frame = bytearray(data[-FRAME:])
    frame[8:16] = bytes(8)
    wal.write_bytes(data + bytes(frame))

    assert home.audit("STO002").findings == ()


def test_an_empty_log_beside_the_store_is_lawful(build: Build) -> None:
    home = build(empty=False)
    home.file("state.db-wal", b"")
    home.file("state.db-shm", b"")

    assert home.audit("STO002").findings == ()


@pytest.mark.fires("STO002")
def test_a_log_without_a_header_hides_all_its_rows(build: Build) -> None:
    home = build(empty=False)
    wal = crash(home)
    wal.write_bytes(bytes(32) + wal.read_bytes()[32:])

    (finding,) = home.findings("STO002")

    assert finding.verdict is Verdict.FAULT
    assert "no valid header" in finding.summary


def test_a_header_with_a_wrong_checksum_is_no_header(build: Build) -> None:
    home = build(empty=False)
    wal = crash(home)
    data = bytearray(wal.read_bytes())
    data[31] ^= 1
    wal.write_bytes(bytes(data))

    (finding,) = home.findings("STO002")

    assert "no valid header" in finding.summary


def test_committed_transactions_behind_a_torn_frame_are_lost(build: Build) -> None:
    home = build(empty=False)
    wal = crash(home, writes=4)
    data = bytearray(wal.read_bytes())
    data[32 + 24 + 100] ^= 0xFF
    wal.write_bytes(bytes(data))

    (finding,) = home.findings("STO002")

    evidence = facts(finding)
    assert finding.verdict is Verdict.FAULT
    assert evidence["frames that SQLite accepts"] == 0
    assert evidence["commits behind the break"] == 4


def test_a_log_of_another_generation_is_named_and_left_open(build: Build) -> None:
    home = build(empty=False)
    wal = crash(home)
    data = bytearray(wal.read_bytes())
    for start in range(32, len(data), FRAME):
        data[start + 8 : start + 16] = b"\x01" * 8
    wal.write_bytes(bytes(data))

    (finding,) = home.findings("STO002")

    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["frames of another generation"] == facts(finding)["frames"]


def test_a_log_with_another_page_size_belongs_to_another_store(build: Build, tmp_path: Path) -> None:
    home = build(empty=False)
    other = apsw.Connection(str(tmp_path / "other.db"))
    other.pragma("page_size", 1024)
    other.pragma("journal_mode", "wal")
    other.execute("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    shutil.copyfile(tmp_path / "other.db-wal", home.root / "state.db-wal")
    other.close()

    (finding,) = home.findings("STO002")

    assert facts(finding)["page size of the -wal"] == 1024
    assert facts(finding)["page size of the store"] == 4096


def test_a_sound_log_beside_the_wrong_main_file_is_told_from_damage(build: Build) -> None:
    """A restore put another store in place and left the log of the one before."""
    home = build("0.22.2", rich=True)
    fill(home, 400)
    wal = crash(home, writes=400)
    restored = build("0.13.0", empty=False, name="restored")
    shutil.copyfile(restored.store, home.store)

    (finding,) = home.findings("STO002")

    assert finding.verdict is Verdict.FAULT
    assert "sound without it" in finding.summary
    assert wal.exists()


def test_a_log_is_not_blamed_for_a_store_that_is_no_better_without_it(build: Build) -> None:
    home = build(empty=False)
    crash(home, write="UPDATE sessions SET title = ?, model = substr(?, 1, 1)")
    data = bytearray(home.store.read_bytes())
    data[103:108] = b"\xff\xff\xff\xff\xff"
    home.store.write_bytes(bytes(data))

    assert {each.rule for each in home.audit("STO002", "STO003").findings} == {"STO003"}


def test_a_log_saved_from_under_a_writer_is_named(build: Build) -> None:
    home = build("0.22.2", empty=False)
    home.file("state.db.retired-wal-20260925-101010-4242/state.db-wal", b"frames")
    crash(home)

    (finding,) = home.findings("STO002")

    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["saved logs"] == ["state.db.retired-wal-20260925-101010-4242"]
    assert facts(finding)["size of the -wal in bytes"] > FRAME


def test_a_log_that_does_not_fit_a_store_that_opens_is_told_from_damage(build: Build) -> None:
    """Put back as it was before it grew: the table in the log has pages that are not there."""
    home = build("0.22.2", rich=True)
    before = home.store.read_bytes()
    fill(home, 50)
    crash(home, write="INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, 1)")
    home.store.write_bytes(before)

    outcome = home.audit("STO002", "STO003")

    assert "sound without it" in next(each for each in outcome.findings if each.rule == "STO002").summary
    assert {each.rule for each in outcome.findings} == {"STO002", "STO003"}


def test_a_process_that_writes_into_a_log_that_was_taken_away_is_named(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = build("0.22.2", empty=False)
    there = Holder(pid=11, name="hermes", command="hermes", files=(str(home.store),))
    gone = Holder(pid=12, name="hermes", command="hermes", files=(f"{home.store}-wal (deleted)",))
    monkeypatch.setattr("statemend.store.connection.find_holders", lambda _: (there, gone))

    (finding,) = home.findings("STO002", live=True)

    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.CRITICAL)
    assert finding.summary.startswith("Process 12 writes")


@pytest.mark.parametrize(
    ("mode", "verdict"), [(1, Verdict.LEFTOVER), (2, Verdict.UNDECIDABLE)], ids=["rollback", "log"]
)
def test_the_journal_of_an_interrupted_transaction(
    build: Build, tmp_path: Path, mode: int, verdict: Verdict
) -> None:
    """Beside a store that keeps a log it may be of another time, and is no mere leftover."""
    home = build(empty=False)
    connection = apsw.Connection(str(home.store))
    connection.pragma("journal_mode", "delete")
    connection.pragma("cache_size", 1)
    connection.execute("BEGIN IMMEDIATE; UPDATE messages SET content = content || ?", ("z" * 50_000,))
    connection.execute("UPDATE sessions SET title = ?", ("z" * 50_000,))
    shutil.copyfile(home.store, tmp_path / "main")
    shutil.copyfile(f"{home.store}-journal", tmp_path / "journal")
    connection.execute("ROLLBACK")
    connection.close()
    main = bytearray((tmp_path / "main").read_bytes())
    main[18:20] = bytes([mode, mode])
    home.store.write_bytes(main)
    shutil.copyfile(tmp_path / "journal", f"{home.store}-journal")

    (finding,) = home.findings("STO002")

    assert finding.verdict is verdict


@pytest.mark.parametrize("version", VERSIONS)
def test_a_closed_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("STO002").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("STO002").status == "clean"
