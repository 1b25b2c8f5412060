"""Who holds a store, and which leases its rows record."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import apsw
import pytest
from tests.store.folders import changed, copied, held

from statemend.store import holders
from statemend.store.bundle import inspect
from statemend.store.connection import open_for_audit
from statemend.store.holders import Lease, find_holders, leases

Stores = Mapping[str, Path]


@pytest.fixture
def store(stores: Stores, tmp_path: Path) -> Path:
    return copied(stores["0.19.0"], tmp_path / "home")


def test_nobody_holds_a_store_that_lies_there(store: Path) -> None:
    assert find_holders(inspect(store)) == ()


def test_a_process_that_has_the_store_open_is_found(store: Path) -> None:
    with held(store, "UPDATE sessions SET title = id") as process:
        (holder,) = find_holders(inspect(store))

    assert holder.pid == process.pid
    assert "python" in holder.name
    assert {Path(file).name for file in holder.files} == {"state.db", "state.db-wal", "state.db-shm"}
    assert not holder.holds_deleted
    assert f"pid {process.pid}" in str(holder)
    assert len(holder.command) <= 120
    assert "\n" not in str(holder)


def test_a_process_is_found_by_the_file_and_not_by_its_name(store: Path, tmp_path: Path) -> None:
    other_name = tmp_path / "elsewhere.db"
    os.link(store, other_name)
    with held(other_name, "PRAGMA schema_version") as process:
        (holder,) = find_holders(inspect(store))

    assert holder.pid == process.pid


def test_a_process_that_only_reads_the_file_is_no_holder(store: Path) -> None:
    with open(store, "rb") as source, subprocess.Popen(["sleep", "60"], stdin=source) as reader:
        found = find_holders(inspect(store))
        reader.kill()

    assert found == ()


def test_this_process_is_left_out(store: Path) -> None:
    connection = apsw.Connection(str(store))
    try:
        connection.execute("SELECT * FROM sessions").fetchall()
        assert find_holders(inspect(store)) == ()
    finally:
        connection.close()


@pytest.mark.parametrize("replaced", ["state.db", "state.db-wal"])
def test_a_process_that_writes_into_a_deleted_file_is_told(store: Path, replaced: str) -> None:
    with held(store, "UPDATE sessions SET title = id") as process:
        file = store.parent / replaced
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(content)
        (holder,) = find_holders(inspect(store))

    assert holder.pid == process.pid
    assert holder.holds_deleted
    assert f"{file} (deleted)" in holder.files


def test_locks_show_a_holder_whose_descriptors_may_not_be_seen(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(store, "UPDATE sessions SET title = id") as process:
        bundle = inspect(store)
        monkeypatch.setattr(holders, "_open_descriptors", lambda bundle, identities: {})
        found = find_holders(bundle)

    assert [holder.pid for holder in found] == [process.pid]


def test_without_proc_the_system_is_asked_otherwise(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(store, "UPDATE sessions SET title = id") as process:
        monkeypatch.setattr(holders, "_PROC", tmp_path / "no proc here")
        (holder,) = find_holders(inspect(store))

    assert holder.pid == process.pid
    assert str(store) in holder.files


def _gone_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def _namespace() -> str:
    return os.readlink("/proc/self/ns/pid").partition("[")[2].rstrip("]")


def _found(path: Path, now: float) -> list[Lease]:
    with open_for_audit(path) as opened:
        return list(leases(opened, now))


def test_a_store_without_the_tables_has_no_leases(stores: Stores) -> None:
    assert _found(stores["0.13.0"], 1000.0) == []


@pytest.mark.parametrize(
    ("holder", "expires", "live"),
    [
        ("pid={here}:pidns={namespace}:turn=1", 1000.5, True),
        ("pid={here}:pidns={namespace}:turn=1", 1000.0, False),
        ("pid={gone}:pidns={namespace}:turn=1", 2000.0, False),
        ("pid={gone}:pidns=1:turn=1", 2000.0, None),
        ("pid={gone}:tid=7", 2000.0, None),
        ("another machine", 2000.0, None),
        ("pid=99999999999999999999", 2000.0, None),
    ],
    ids=["there", "expired", "gone", "other namespace", "unknown namespace", "no pid", "impossible pid"],
)
def test_a_lease_lives_while_its_process_does(
    stores: Stores, tmp_path: Path, holder: str, expires: float, live: bool | None
) -> None:
    named = holder.format(here=os.getpid(), gone=_gone_pid(), namespace=_namespace())
    path = changed(
        copied(stores["0.22.2"], tmp_path),
        "INSERT INTO session_turn_leases VALUES ('conversation', ?, 900.0, ?)",
        bindings=(named, expires),
    )

    assert _found(path, 1000.0) == [Lease("turn lease", "conversation", named, 900.0, expires, live)]


def test_locks_and_leases_are_told_apart_and_odd_cells_are_borne(stores: Stores, tmp_path: Path) -> None:
    path = changed(
        copied(stores["0.22.2"], tmp_path),
        "INSERT INTO compression_locks VALUES ('session', x'ff', 'long ago', 'never')",
        "INSERT INTO session_turn_leases VALUES ('conversation', 'x', 1, 2)",
    )

    lock, turn = _found(path, 1000.0)

    assert (lock.kind, lock.key, lock.expires_at, lock.live) == (
        "compression lock",
        "session",
        float("inf"),
        None,
    )
    assert (turn.kind, turn.key, turn.live) == ("turn lease", "conversation", False)
