"""Other stores of a home: found by content, listed by what the audited store lacks, never slow unasked."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.evidence.scene import Scene
from tests.store.rows import Rows

from statemend.evidence import other_stores
from statemend.evidence.inventory import Inventory, find_home, take
from statemend.formats.artifact import Kind
from statemend.store.connection import open_for_audit


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path / "home").session("s1").session("s2")
    made.say("kept", 10).say("kept too", 11, role="assistant")
    return made.say("gone later", 20, "s2").say("gone later too", 21, "s2", "assistant")


def kept_at(scene: Scene, place: str, at: float) -> Path:
    """A copy of the store as it is now, at a place in the home."""
    path = scene.root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(scene.rows.path, path)
    os.utime(path, (at, at))
    return path


def looked(scene: Scene, *extra: Path, deep: bool = False) -> Inventory:
    with open_for_audit(scene.rows.path) as store:
        return take(find_home(scene.root), extra, store=store, deep=deep)


def listed(inventory: Inventory, root: Path) -> dict[str, list[str]]:
    return {
        os.path.relpath(each.path, root): [section.session_id for section in each.sections]
        for each in inventory.stores
    }


def forget(scene: Scene, *session_ids: str) -> None:
    for session_id in session_ids:
        scene.change("DELETE FROM messages WHERE session_id = ?", session_id)
        scene.change("DELETE FROM sessions WHERE id = ?", session_id)


PLACES = (
    "state-snapshots/20260801-090000/state.db",
    "backups/old.db",
    "state.db.malformed-backup-20260801_090000",
    "state.db.pre-update-emergency-2026-08-01T09-00-00-000000Z-1.bak",
    "state.db.pre-clean-markers-backup-20260801_090000",
    "state.db.zeroed-20260801-090000-1.bak",
    "state.db.bak",
    "state.db.retired-wal-20260801-090000-17/state.db",
    "session-exports/by hand.sqlite",
)


@pytest.mark.parametrize("place", PLACES)
def test_finds_a_store_wherever_a_home_keeps_one(place: str, scene: Scene) -> None:
    kept_at(scene, place, 1000.0)
    forget(scene, "s2")
    inventory = looked(scene)
    assert listed(inventory, scene.root) == {place: ["s2"]}
    assert inventory.artifacts == ()
    assert inventory.skipped == ()
    assert inventory.by_session() == {}
    ((artifact, section),) = inventory.stores_by_session()["s2"]
    assert (artifact.kind, section.held, section.title) == (Kind.STORE, 2, "On s2")


def test_finds_the_store_in_a_backup(scene: Scene) -> None:
    (scene.root / "backups").mkdir()
    with zipfile.ZipFile(scene.root / "backups" / "pre-update-1.zip", "w") as archive:
        archive.write(scene.rows.path, "state.db")
    forget(scene, "s2")
    assert listed(looked(scene), scene.root) == {"backups/pre-update-1.zip!state.db": ["s2"]}


def test_a_store_that_has_no_more_than_the_audited_one_lists_nothing(scene: Scene) -> None:
    kept_at(scene, PLACES[0], 1000.0)
    scene.say("more", 30)
    assert listed(looked(scene), scene.root) == {PLACES[0]: []}


def test_lists_a_session_of_which_rows_are_gone(scene: Scene) -> None:
    kept_at(scene, PLACES[0], 1000.0)
    scene.change("DELETE FROM messages WHERE content = 'kept'")
    assert listed(looked(scene), scene.root) == {PLACES[0]: ["s1"]}


def test_lists_a_session_that_was_rewritten_with_as_many_rows(scene: Scene) -> None:
    """What /retry of the older releases does: the rows go, and others come."""
    kept_at(scene, PLACES[0], 1000.0)
    scene.change("DELETE FROM messages WHERE content = 'kept too'")
    scene.say("another answer", 12, role="assistant").say("and on", 13)
    assert listed(looked(scene), scene.root) == {PLACES[0]: ["s1"]}


def test_rows_of_any_number_are_told_apart(scene: Scene) -> None:
    scene.change("UPDATE messages SET id = id + 9223372036854775800 WHERE session_id = 's1'")
    kept_at(scene, PLACES[0], 1000.0)
    assert listed(looked(scene), scene.root) == {PLACES[0]: []}
    scene.change("DELETE FROM messages WHERE content = 'kept'")
    assert listed(looked(scene), scene.root) == {PLACES[0]: ["s1"]}


def test_of_many_stores_the_newest_speaks_unless_it_is_deep(scene: Scene) -> None:
    older, newer = (f"state-snapshots/{number}/state.db" for number in (1, 2))
    scene.say("was edited away", 22, "s2")
    kept_at(scene, older, 1000.0)
    scene.change("DELETE FROM messages WHERE content = 'was edited away'")
    forget_also = scene.session("s3").say("third", 40, "s3")
    kept_at(forget_also, newer, 2000.0)
    kept_at(forget_also, "state-snapshots/0/state.db", 500.0)
    forget(scene, "s2", "s3")
    inventory = looked(scene)
    assert listed(inventory, scene.root) == {
        newer: ["s2", "s3"],
        older: ["s2"],  # it has a row more of it
        "state-snapshots/0/state.db": [],
    }
    (skipped,) = inventory.skipped
    assert skipped.reason == (
        "2 sessions are listed from a newer store with the same rows; it is looked at with --deep"
    )
    assert not skipped.unread
    deep = looked(scene, deep=True)
    assert listed(deep, scene.root) == {
        newer: ["s2", "s3"],
        older: ["s2"],
        "state-snapshots/0/state.db": ["s2", "s3"],
    }
    assert deep.skipped == ()


def test_what_takes_large_copies_waits_for_deep(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    path = kept_at(scene, PLACES[0], 1000.0)
    with zipfile.ZipFile(scene.root / "backup.zip", "w") as archive:
        archive.writestr("state.db", path.read_bytes())
    forget(scene, "s2")
    monkeypatch.setattr(other_stores, "_UNASKED", path.stat().st_size // 2)
    monkeypatch.setattr(other_stores, "_HASHED", path.stat().st_size // 2)
    inventory = looked(scene)
    assert listed(inventory, scene.root) == {PLACES[0]: ["s2"]}
    assert [each.sha256 for each in inventory.stores] == [""]
    (skipped,) = inventory.skipped
    assert skipped.reason.endswith("it is looked at with --deep")
    deep = looked(scene, deep=True)
    assert set(listed(deep, scene.root)) == {PLACES[0], "backup.zip!state.db"}
    assert all(each.sha256 for each in deep.stores)


def test_a_retired_log_is_read_with_its_store(scene: Scene) -> None:
    place = scene.root / "state.db.retired-wal-20260801-090000-17"
    place.mkdir()
    scene.change("PRAGMA journal_mode = WAL")
    with closing(apsw.Connection(str(scene.rows.path))) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        values = "('s2', 'user', 'in the log', 1)"
        writer.execute(f"INSERT INTO messages (session_id, role, content, timestamp) VALUES {values}")
        for suffix in ("", "-wal", "-shm"):
            shutil.copyfile(f"{scene.rows.path}{suffix}", place / f"state.db{suffix}")
    scene.change("PRAGMA journal_mode = DELETE")
    forget(scene, "s2")
    before = sorted((each.name, each.stat().st_mtime_ns) for each in place.iterdir())
    inventory = looked(scene)
    ((_, section),) = inventory.stores_by_session()["s2"]
    assert section.held == 3
    assert sorted((each.name, each.stat().st_mtime_ns) for each in place.iterdir()) == before


def test_a_broken_store_is_an_artifact_that_says_so(scene: Scene) -> None:
    path = kept_at(scene, PLACES[2], 1000.0)
    os.truncate(path, path.stat().st_size // 2)
    (artifact,) = looked(scene).stores
    assert artifact.kind is Kind.STORE
    assert artifact.damage is not None
    assert "page-count" in artifact.damage


def test_what_was_put_aside_and_is_no_store_is_named(scene: Scene) -> None:
    path = scene.root / PLACES[5]
    path.write_bytes(bytes(8192))
    (skipped,) = looked(scene).skipped
    assert skipped.path == str(path)
    assert skipped.reason.startswith("put aside as a store, and none: ")


@pytest.mark.parametrize(
    ("place", "data"),
    [
        ("state-snapshots/1/config.yaml", b"x: 1\n"),
        ("state-snapshots/1/auth.json", b"{}"),
        ("state.db.quarantine.lock", b""),
        ("state_notes.txt", b"notes"),
        ("notes.zip", b"no archive"),
    ],
)
def test_other_files_there_are_nobodys_business(place: str, data: bytes, scene: Scene) -> None:
    path = scene.root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    inventory = looked(scene)
    assert (inventory.stores, inventory.skipped, inventory.artifacts) == ((), (), ())


def test_a_database_of_another_program_is_none(scene: Scene, tmp_path: Path) -> None:
    other = Rows(tmp_path / "other", "0.19.0")
    other.run("DROP TABLE messages")
    shutil.copyfile(other.path, scene.exports / "kanban.db")
    (skipped,) = looked(scene).skipped
    assert skipped.reason == "a database, not an export"


def test_the_audited_store_is_found_by_no_other_name(scene: Scene) -> None:
    snapshots = scene.root / "state-snapshots" / "1"
    snapshots.mkdir(parents=True)
    os.link(scene.rows.path, snapshots / "state.db")
    (snapshots / "link.db").symlink_to(scene.rows.path)
    inventory = looked(scene)
    assert inventory.stores == ()


def test_an_archive_that_may_not_be_unpacked_leaves_the_audit_undetermined(scene: Scene) -> None:
    with zipfile.ZipFile(scene.root / "backup.zip", "w") as archive:
        archive.writestr("../state.db", scene.rows.path.read_bytes())
    (skipped,) = looked(scene).skipped
    assert "leads out" in skipped.reason
    assert skipped.unread


def test_a_cut_archive_is_an_artifact_that_says_so(scene: Scene) -> None:
    path = scene.root / "backup.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(scene.rows.path, "state.db")
    os.truncate(path, path.stat().st_size - 60)
    (artifact,) = looked(scene).stores
    assert (artifact.kind, artifact.damage) == (
        Kind.ARCHIVE,
        "the archive is cut off: its directory is missing",
    )


@pytest.mark.parametrize(
    ("place", "passing"),
    [
        (PLACES[0], True),
        ("backups/pre-update-2026-08-01.zip!state.db", True),
        ("backups/pre-migration-2026-08-01.zip!state.db", True),
        (PLACES[2], True),
        (PLACES[3], True),
        ("backups/hermes-backup-2026-08-01.zip!state.db", False),
        ("state.db.bak", False),
        ("../elsewhere/state-snapshots/1/state.db", False),
    ],
)
def test_knows_which_stores_hermes_deletes_by_itself(place: str, passing: bool, scene: Scene) -> None:
    path = scene.root / place.partition("!")[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert other_stores.is_passing(scene.root, str(scene.root / place)) is passing


def sessions(inventory: Inventory) -> Sequence[str]:
    return sorted(inventory.stores_by_session())


def test_without_a_readable_store_every_session_is_listed(scene: Scene) -> None:
    kept_at(scene, PLACES[0], 1000.0)
    assert sessions(take(find_home(scene.root))) == ["s1", "s2"]
