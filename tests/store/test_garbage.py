"""Stores as no release leaves them: whatever the bytes, rows or an error of the store, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.folders import changed, copied, crashed, filled, snapshot

from statemend.errors import StatemendError, StoreUnreadable
from statemend.store import connection
from statemend.store.catalogue import CATALOGUE
from statemend.store.connection import open_for_audit
from statemend.store.schema import Schema

Stores = Mapping[str, Path]
BARE = (
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, started_at REAL)",
    "CREATE TABLE messages "
    "(id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL)",
)
LONG = 50_000_000


def _read_everything(path: Path) -> Schema | StatemendError:
    """The schema of a store of which every row could be read, or the error that stopped it."""
    try:
        with open_for_audit(path) as opened:
            for table in CATALOGUE:
                for row in opened.rows(f"SELECT * FROM {table}"):
                    assert len(row) == len(CATALOGUE[table].columns)
            return opened.schema
    except StatemendError as error:
        return error


edits = st.lists(
    st.tuples(st.integers(0, 1 << 20), st.binary(min_size=1, max_size=40)), min_size=1, max_size=8
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=edits, cut=st.integers(0, 1 << 20), version=st.sampled_from(["0.13.0", "0.19.0", "0.22.2"]))
def test_any_bytes_give_rows_or_an_error_and_leave_no_trace(
    stores: Stores, edits: list[tuple[int, bytes]], cut: int, version: str
) -> None:
    content = bytearray(stores[version].read_bytes())
    for offset, replacement in edits:
        at = offset % len(content)
        content[at : at + len(replacement)] = replacement
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "state.db")
        path.write_bytes(content if cut % 3 else content[: cut % len(content)])
        before = snapshot(path.parent)

        outcome = _read_everything(path)

        assert isinstance(outcome, Schema) or "\n" not in str(outcome)
        assert snapshot(path.parent) == before


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=edits, sidecar=st.sampled_from(["-wal", "-journal"]), whole=st.binary(max_size=2000))
def test_any_sidecar_gives_rows_or_an_error_and_leaves_no_trace(
    interrupted: Mapping[str, Path], edits: list[tuple[int, bytes]], sidecar: str, whole: bytes
) -> None:
    source = interrupted[sidecar]
    content = bytearray(Path(f"{source}{sidecar}").read_bytes())
    for offset, replacement in edits:
        at = offset % len(content)
        content[at : at + len(replacement)] = replacement
    with tempfile.TemporaryDirectory() as name:
        path = copied(source, Path(name))
        Path(f"{path}{sidecar}").write_bytes(whole if len(whole) % 5 == 1 else content)
        before = snapshot(path.parent)

        outcome = _read_everything(path)

        assert isinstance(outcome, Schema) or "\n" not in str(outcome)
        assert snapshot(path.parent) == before


@pytest.fixture(scope="module")
def interrupted(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Stores whose writer died, by the sidecar that it left."""
    folder = tmp_path_factory.mktemp("interrupted")
    logged = filled(copied(stores["0.19.0"], folder / "logged"), 50)
    journalled = changed(
        filled(copied(stores["0.19.0"], folder / "journalled"), 50), "PRAGMA journal_mode = DELETE"
    )
    update = "UPDATE messages SET content = 'half'"
    return {
        "-wal": crashed(logged, folder / "wal", update),
        "-journal": crashed(
            journalled, folder / "journal", "PRAGMA cache_size = 1", "BEGIN", update, sidecars=("-journal",)
        ),
    }


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not tell a process's memory"
)
def test_a_cell_of_fifty_megabytes_is_one_row_of_memory(tmp_path: Path) -> None:
    path = changed(
        tmp_path / "state.db",
        *BARE,
        "WITH n(i) AS (VALUES (1), (2), (3)) INSERT INTO messages (content) SELECT hex(zeroblob(?)) FROM n",
        bindings=(LONG // 2,),
    )
    script = """
import pathlib, sys
from statemend.store.connection import open_for_audit
with open_for_audit(pathlib.Path(sys.argv[1])) as opened:
    for (content,) in opened.rows("SELECT content FROM messages"):
        print(len(content))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )

    *lengths, peak = map(int, done.stdout.split())
    assert lengths == [LONG] * 3
    assert peak * 1024 < 4.2 * LONG


def test_a_cell_beyond_the_bound_is_an_error_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = changed(
        tmp_path / "state.db", *BARE, "INSERT INTO messages (content) VALUES (hex(zeroblob(1000000)))"
    )
    monkeypatch.setattr(connection, "_LONGEST_CELL", 1 << 20)

    with open_for_audit(path) as opened:
        assert opened.value("SELECT id FROM messages") == 1
        with pytest.raises(StoreUnreadable, match="longer than 1 MiB"):
            opened.value("SELECT content FROM messages")
