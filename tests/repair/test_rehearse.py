"""A rehearsal finds out on a copy, and leaves the store and everything beside it alone."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.repair import plans

from statemend.errors import Refused
from statemend.repair.rehearse import rehearse

RELEASES = ("0.13.0", "0.16.0", "0.19.0", "0.20.1", "0.22.2")


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("release", RELEASES)
def test_a_good_plan_passes_and_nothing_is_touched(
    stores: Mapping[str, Path], tmp_path: Path, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, file = plans.mixed(tmp_path, stores[release])
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    old = plans.digest(store)
    before = everything(tmp_path)
    found = rehearse(file, now=plans.NOW)
    assert found.passed, found.reasons
    assert found.before == found.undone == old
    assert found.after not in (None, old)
    assert everything(tmp_path) == before
    assert list(room.iterdir()) == []


def test_a_store_with_a_log_is_rehearsed_with_it(stores: Mapping[str, Path], tmp_path: Path) -> None:
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    plans.query(store, "PRAGMA journal_mode = wal")
    with closing(apsw.Connection(str(store))) as writer:
        writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        writer.execute("INSERT INTO state_meta(key, value) VALUES ('late', '1')")
    assert store.with_name("state.db-wal").stat().st_size > 0
    before = everything(tmp_path / "home")
    found = rehearse(file, now=plans.NOW)
    assert found.passed, found.reasons
    assert everything(tmp_path / "home") == before


def test_a_plan_that_does_not_keep_its_promise_fails(stores: Mapping[str, Path], tmp_path: Path) -> None:
    store, _ = plans.orphaned(tmp_path, stores["0.22.2"])
    note = plans.insert("state_meta", "key", {"key": "mended", "value": "no"})
    finding = plans.orphans(store)
    file = plans.write(plans.plan(store, plans.step(note, finding=finding)), tmp_path / "plan.json")
    before = everything(tmp_path)
    found = rehearse(file, now=plans.NOW)
    assert not found.passed
    assert f"{finding} is still there" in found.reasons
    assert everything(tmp_path) == before


def test_an_undo_that_fails_underneath_is_told(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise apsw.AuthError("authorization denied")

    _, file = plans.mixed(tmp_path, stores["0.22.2"])
    monkeypatch.setattr("statemend.repair.rehearse.take_back", failing)
    assert rehearse(file, now=plans.NOW).reasons == ("it could not be undone: authorization denied",)


def test_a_stale_plan_is_refused(stores: Mapping[str, Path], tmp_path: Path) -> None:
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    plans.change(store, "INSERT INTO state_meta(key, value) VALUES ('mended', 'by another')")
    with pytest.raises(Refused, match="stale"):
        rehearse(file, now=plans.NOW)
