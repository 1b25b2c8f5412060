"""Write-ahead logs judged from their bytes, held to what SQLite itself makes of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import apsw
import pytest

from statemend.errors import Undetermined
from statemend.store.bundle import StoreFile
from statemend.store.wal import FRAME_HEADER, HEADER, read_log

PAGE = 4096
FRAME = FRAME_HEADER + PAGE


def as_file(path: Path) -> StoreFile:
    size = path.stat().st_size if path.exists() else 0
    return StoreFile(path=str(path), size=size, mtime_ns=0, inode=0, device=0, mode=0o600)


def log_of(folder: Path, transactions: int = 5, *, restarted: bool = False) -> Path:
    """A log with so many transactions of one or more frames, as a killed writer leaves it."""
    store = folder / "live.db"
    connection = apsw.Connection(str(store))
    connection.pragma("page_size", PAGE)
    connection.pragma("journal_mode", "wal")
    connection.pragma("wal_autocheckpoint", 0)
    connection.execute("CREATE TABLE t (x)")
    for number in range(transactions):
        connection.execute("INSERT INTO t VALUES (?)", (f"{number}" * 3000,))
    if restarted:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        connection.execute("INSERT INTO t VALUES ('after')")
    shutil.copyfile(store, folder / "state.db")
    shutil.copyfile(f"{store}-wal", folder / "state.db-wal")
    connection.close()
    return folder / "state.db-wal"


def accepted_by_sqlite(wal: Path) -> int:
    """How many frames SQLite finds when it recovers a copy."""
    folder = wal.parent / "recovered"
    folder.mkdir()
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{wal.parent / 'state.db'}{suffix}", folder / f"state.db{suffix}")
    connection = apsw.Connection(str(folder / "state.db"))
    connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchall()
    frames, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    connection.close()
    return frames


def change(wal: Path, offset: int, data: bytes) -> None:
    content = bytearray(wal.read_bytes())
    content[offset : offset + len(data)] = data
    wal.write_bytes(bytes(content))


def test_a_sound_log_is_accepted_to_its_end(tmp_path: Path) -> None:
    wal = log_of(tmp_path)

    log = read_log(as_file(wal))

    assert log.header
    assert log.page_size == PAGE
    assert log.frames == log.valid == log.committed == log.verified == accepted_by_sqlite(wal)
    assert (log.lost, log.foreign) == (0, 0)


@pytest.mark.parametrize("frame", [0, 2, 4])
def test_a_flipped_byte_ends_the_log_where_sqlite_stops(tmp_path: Path, frame: int) -> None:
    wal = log_of(tmp_path)
    change(wal, HEADER + frame * FRAME + FRAME_HEADER + 99, b"\xee")

    log = read_log(as_file(wal))

    assert log.valid == frame
    assert log.committed == accepted_by_sqlite(wal)
    assert log.lost > 0


def test_a_log_begun_anew_keeps_frames_of_before(tmp_path: Path) -> None:
    wal = log_of(tmp_path, restarted=True)

    log = read_log(as_file(wal))

    assert 0 < log.valid == accepted_by_sqlite(wal) < log.frames
    assert log.foreign == log.frames - log.valid
    assert log.lost == 0


def test_a_frame_cut_short_is_no_frame(tmp_path: Path) -> None:
    wal = log_of(tmp_path)
    whole = read_log(as_file(wal)).frames
    os.truncate(wal, wal.stat().st_size - 1)

    log = read_log(as_file(wal))

    assert log.frames == log.valid == whole - 1
    assert log.committed == accepted_by_sqlite(wal)


@pytest.mark.parametrize(
    ("offset", "data"),
    [(0, b"\0\0\0\0"), (4, b"\0\0\0\0"), (8, b"\0\0\0\x07"), (20, b"\xff"), (28, b"\xff\xff")],
    ids=["magic", "format", "page size", "salt", "checksum"],
)
def test_a_header_that_is_none_hides_the_whole_log(tmp_path: Path, offset: int, data: bytes) -> None:
    wal = log_of(tmp_path)
    change(wal, offset, data)

    log = read_log(as_file(wal))

    assert not log.header
    assert log.valid == 0 == accepted_by_sqlite(wal)


@pytest.mark.parametrize("size", [0, 1, HEADER - 1])
def test_a_file_too_short_for_a_header_has_none(tmp_path: Path, size: int) -> None:
    wal = tmp_path / "state.db-wal"
    wal.write_bytes(b"\x37\x7f\x06\x82"[:size].ljust(size, b"\0"))

    assert not read_log(as_file(wal)).header


def test_only_the_beginning_of_a_long_log_is_summed_unless_all_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wal = log_of(tmp_path)
    monkeypatch.setattr("statemend.store.wal.CHECKED", HEADER + 2 * FRAME)

    part, whole = read_log(as_file(wal)), read_log(as_file(wal), whole=True)

    assert (part.verified, whole.verified) == (2, whole.frames)
    assert part.valid == whole.valid


def test_a_log_that_is_gone_is_undetermined(tmp_path: Path) -> None:
    with pytest.raises(Undetermined, match=r"state\.db-wal"):
        read_log(as_file(tmp_path / "state.db-wal"))
