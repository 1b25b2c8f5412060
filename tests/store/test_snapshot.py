"""A snapshot is a whole store, proven, private, and never in place of another file."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.store.folders import copied

from statemend.errors import Refused, StatemendError, StoreUnreadable, Undetermined
from statemend.store import snapshot
from statemend.store.connection import open_for_audit
from statemend.store.identity import store_digest
from statemend.store.snapshot import take, take_from
from statemend.store.writing import open_for_repair

RELEASES = ("0.13.0", "0.14.0", "0.15.2", "0.16.0", "0.17.0", "0.18.2", "0.19.0", "0.20.1", "0.22.2")


def digest(path: Path) -> str:
    with open_for_audit(path) as store:
        return store_digest(store)


@pytest.mark.parametrize("release", RELEASES)
def test_a_snapshot_is_equal_to_its_source(stores: Mapping[str, Path], tmp_path: Path, release: str) -> None:
    source = Path(shutil.copy(stores[release], tmp_path / "state.db"))
    before = source.read_bytes()
    taken = take(source, tmp_path / "snapshot.db")
    target = Path(taken.path)
    assert taken.digest == digest(source) == digest(target)
    assert taken.sha256 == hashlib.sha256(target.read_bytes()).hexdigest()
    assert taken.size == target.stat().st_size == taken.page_count * 4096
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["snapshot.db", "state.db"]


def test_a_snapshot_holds_what_only_the_log_has(stores: Mapping[str, Path], tmp_path: Path) -> None:
    source = Path(shutil.copy(stores["0.22.2"], tmp_path / "state.db"))
    with closing(apsw.Connection(str(source))) as writer:
        writer.pragma("journal_mode", "wal")
        writer.execute("UPDATE sessions SET title = 'in the log'")
        taken = take(source, tmp_path / "snapshot.db")
    with open_for_audit(Path(taken.path)) as copy:
        assert copy.value("SELECT title FROM sessions") == "in the log"
    assert not (tmp_path / "snapshot.db-wal").exists()


def test_a_file_that_is_there_is_never_replaced(stores: Mapping[str, Path], tmp_path: Path) -> None:
    target = tmp_path / "snapshot.db"
    target.write_bytes(b"mine")
    with pytest.raises(Refused, match="never replaces"):
        take(copied(stores["0.22.2"], tmp_path), target)
    assert target.read_bytes() == b"mine"


def test_a_link_is_not_followed(stores: Mapping[str, Path], tmp_path: Path) -> None:
    target = tmp_path / "snapshot.db"
    target.symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(Refused):
        take(copied(stores["0.22.2"], tmp_path), target)
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_folder_that_is_not_there_is_said(stores: Mapping[str, Path], tmp_path: Path) -> None:
    with pytest.raises(Undetermined, match="no snapshot can be made"):
        take(copied(stores["0.22.2"], tmp_path), tmp_path / "nowhere" / "snapshot.db")


def spoiled(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None]) -> None:
    """Have something happen to every copy before it is on the disk."""
    sync = snapshot.durable.sync_file

    def spoil_and_sync(path: Path) -> None:
        spoil(path)
        sync(path)

    monkeypatch.setattr(snapshot.durable, "sync_file", spoil_and_sync)


def lose_a_title(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as copy:
        copy.execute("UPDATE sessions SET title = 'lost'")


def flip(path: Path, offset: int) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def test_a_copy_that_differs_is_refused_and_removed(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(shutil.copy(stores["0.22.2"], tmp_path / "state.db"))
    spoiled(monkeypatch, lose_a_title)
    with pytest.raises(StoreUnreadable, match="is not the store"):
        take(source, tmp_path / "snapshot.db")
    assert [path.name for path in tmp_path.iterdir()] == ["state.db"]


@pytest.mark.parametrize("release", ["0.13.0", "0.22.2"])
def test_one_flipped_bit_anywhere_is_refused(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    """Search indexes, free pages and unused room are part of a copy too."""
    source = Path(shutil.copy(stores[release], tmp_path / "state.db"))
    pages = source.stat().st_size // 4096
    assert pages > 20
    for offset in (0, 20, 44, 100, *(page * 4096 + (page * 977) % 4096 for page in range(1, pages))):
        with monkeypatch.context() as patch:
            spoiled(patch, lambda path, offset=offset: flip(path, offset))  # type: ignore[misc]
            with pytest.raises(StoreUnreadable):
                take(source, tmp_path / "snapshot.db")
    assert [path.name for path in tmp_path.iterdir()] == ["state.db"]


def test_a_copy_that_is_longer_or_shorter_is_refused(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(shutil.copy(stores["0.22.2"], tmp_path / "state.db"))
    for more in (-4096, 4096):
        with monkeypatch.context() as patch:
            spoiled(patch, lambda path, more=more: os.truncate(path, path.stat().st_size + more))  # type: ignore[misc]
            with pytest.raises(StatemendError):
                take(source, tmp_path / "snapshot.db")


def test_a_copy_of_what_the_log_has_is_proven_by_its_rows(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(shutil.copy(stores["0.22.2"], tmp_path / "state.db"))
    with closing(apsw.Connection(str(source))) as writer:
        writer.pragma("journal_mode", "wal")
        writer.execute("UPDATE sessions SET title = 'in the log'")
        spoiled(monkeypatch, lose_a_title)
        with pytest.raises(StoreUnreadable, match="is not the store"):
            take(source, tmp_path / "snapshot.db")


def test_looking_at_the_file_frees_no_lock(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing a descriptor of a file drops every lock of the process on it, those of SQLite too."""
    source = Path(shutil.copy(stores["0.22.2"], tmp_path / "state.db"))
    write = f"import apsw; apsw.Connection({str(source)!r}).execute('UPDATE sessions SET title = 1')"
    said = []
    prove = snapshot._prove

    def prove_and_write(*arguments: Any) -> None:
        prove(*arguments)
        done = subprocess.run([sys.executable, "-c", write], capture_output=True, text=True, check=False)
        said.append(done.stderr)

    monkeypatch.setattr(snapshot, "_prove", prove_and_write)
    take(source, tmp_path / "one.db")
    with open_for_repair(source) as connection:
        take_from(connection.raw, connection.store, tmp_path / "two.db")
    assert ["BusyError" in each for each in said] == [True, True]


def test_a_damaged_table_makes_no_snapshot(stores: Mapping[str, Path], tmp_path: Path) -> None:
    source = Path(shutil.copy(stores["0.22.2"], tmp_path / "state.db"))
    with closing(apsw.Connection(str(source))) as plain:
        page = plain.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").get
    with open(source, "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(StatemendError):
        take(source, tmp_path / "snapshot.db")
    assert [path.name for path in tmp_path.iterdir()] == ["state.db"]
