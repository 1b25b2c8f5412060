"""An undo gives back exactly what the run found, or nothing at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from tests.repair import plans

from statemend.errors import Refused, Undetermined, UsageError
from statemend.repair import bounds
from statemend.repair.apply import apply
from statemend.repair.cells import encode, row_digest
from statemend.repair.plan import Kind, Operation
from statemend.repair.run import State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

LATER = {
    "a table of its own": "INSERT INTO state_meta(key, value) VALUES ('late', '1')",
    "another session": "INSERT INTO sessions(id, source, started_at) VALUES ('late', 'cli', 1.0)",
}


@pytest.fixture
def newest(stores: Mapping[str, Path]) -> Path:
    return stores["0.22.2"]


def applied(tmp_path: Path, release: Path) -> tuple[Path, Path]:
    """A store and the folder of the run that mended it."""
    store, file = plans.mixed(tmp_path, release)
    apply(file, run_dir=tmp_path / "run", now=plans.NOW)
    return store, tmp_path / "run"


def deletion(store: Path, table: str, key: str, value: str) -> Operation:
    row = plans.row(store, table, key, value)
    return Operation(
        kind=Kind.DELETE,
        table=table,
        key={key: encode(value)},
        before=plans.cells(row),
        before_digest=row_digest(row),
    )


@pytest.mark.parametrize("later", LATER.values(), ids=[name.replace(" ", "-") for name in LATER])
def test_what_was_written_elsewhere_since_is_kept(newest: Path, tmp_path: Path, later: str) -> None:
    store, run = applied(tmp_path, newest)
    untouched = "SELECT 'm', key FROM state_meta WHERE key <> 'mended' UNION ALL SELECT 's', id FROM sessions"
    plans.change(store, later)
    ((mended,),) = plans.query(store, "SELECT DISTINCT session_id FROM messages")
    before = [row for row in plans.query(store, untouched) if row != ("s", mended)]
    done = undo(run, now=plans.NOW)
    assert done.state is State.UNDONE
    assert done.notes[-1] == "other rows were written since, and are kept"
    assert plans.query(store, untouched) == before


def test_rows_that_name_what_the_run_made_are_not_orphaned(newest: Path, tmp_path: Path) -> None:
    store, run = applied(tmp_path, newest)
    plans.change(
        store,
        "INSERT INTO messages(session_id, role, content, timestamp) "
        "SELECT id, 'user', 'late', 9.0 FROM sessions",
    )
    after = plans.digest(store)
    with pytest.raises(Refused, match="undoing it would orphan them"):
        undo(run, now=plans.NOW)
    assert plans.digest(store) == after


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sessions SET title = 'renamed'",
        "UPDATE state_meta SET value = 'other' WHERE key = 'mended'",
        "DELETE FROM state_meta WHERE key = 'mended'",
        "UPDATE messages SET token_count = 7 WHERE id = (SELECT MAX(id) FROM messages)",
    ],
)
def test_a_row_of_the_run_that_changed_is_never_overwritten(
    newest: Path, tmp_path: Path, statement: str
) -> None:
    store, run = applied(tmp_path, newest)
    plans.change(store, statement)
    after = plans.digest(store)
    assert verify(run, now=plans.NOW).state is State.CHANGED
    with pytest.raises(Refused, match="changed since the run"):
        undo(run, now=plans.NOW)
    assert plans.digest(store) == after


def test_rows_that_a_plan_deleted_come_back(stores: Mapping[str, Path], tmp_path: Path) -> None:
    store = plans.home_with(tmp_path, stores["0.22.2"])
    plans.change(
        store,
        "INSERT INTO gateway_routing(scope, session_key, entry_json, updated_at) VALUES ('', 'k', '{}', 1.5)",
        "INSERT INTO state_meta(key, value) "
        "VALUES ('odd', CAST(x'ff' AS TEXT)), ('nul', 'a' || char(0) || 'b')",
    )
    row = plans.row(store, "gateway_routing", "session_key", "k")
    routing = Operation(
        kind=Kind.DELETE,
        table="gateway_routing",
        key=plans.cells({"scope": "", "session_key": "k"}),
        before=plans.cells(row),
        before_digest=row_digest(row),
    )
    step = plans.step(routing, deletion(store, "state_meta", "key", "nul"))
    file = plans.write(plans.plan(store, step), tmp_path / "plan.json")
    old = plans.digest(store)
    run = apply(file, now=plans.NOW)
    assert plans.query(store, "SELECT COUNT(*) FROM gateway_routing") == [(0,)]
    assert undo(Path(run.folder), now=plans.NOW).state is State.UNDONE
    assert plans.digest(store) == old


def test_a_run_is_not_taken_back_out_of_other_tables(newest: Path, tmp_path: Path) -> None:
    """As after a newer release has opened the store."""
    store, run = applied(tmp_path, newest)
    plans.change(store, "CREATE INDEX added_later ON messages(role)")
    files = {path.name for path in run.iterdir()}
    told = verify(run, now=plans.NOW)
    assert (told.state, str(run / "snapshot.db") in told.advice) == (State.CHANGED, True)
    with pytest.raises(Refused, match="its tables changed since the run"):
        undo(run, now=plans.NOW)
    assert {path.name for path in run.iterdir()} == files
    plans.change(store, "DROP INDEX added_later")
    assert undo(run, now=plans.NOW).state is State.UNDONE


def test_a_message_that_was_only_changed_needs_no_tokenizer_that_is_not_here(
    newest: Path, tmp_path: Path
) -> None:
    store, file = plans.mixed(tmp_path, newest)
    plans.with_foreign_index(store)
    old = plans.digest(store)
    plans.write(plans.plan(store, *bounds.read(file).steps), file)
    apply(file, run_dir=tmp_path / "run", now=plans.NOW)
    assert undo(tmp_path / "run", now=plans.NOW).state is State.UNDONE
    assert plans.digest(store) == old


def test_a_run_is_told_from_where_it_lies_now(newest: Path, tmp_path: Path) -> None:
    _, run = applied(tmp_path, newest)
    moved = run.rename(tmp_path / "moved")
    told = verify(moved, now=plans.NOW)
    assert told.snapshot is not None
    assert (told.folder, told.snapshot.path) == (str(moved), str(moved / "snapshot.db"))
    assert undo(moved, now=plans.NOW).folder == str(moved)


def test_no_undo_is_promised_of_a_store_that_came_in_its_place(newest: Path, tmp_path: Path) -> None:
    store, run = applied(tmp_path, newest)
    plans.change(
        store, "INSERT OR REPLACE INTO state_meta(key, value) VALUES ('store_instance_id', 'another')"
    )
    assert verify(run, now=plans.NOW).state is State.CHANGED
    with pytest.raises(Refused, match="for another store"):
        undo(run, now=plans.NOW)


def test_an_id_that_was_given_is_not_given_again(newest: Path, tmp_path: Path) -> None:
    store = plans.home_with(tmp_path, newest)
    ((session,),) = plans.query(store, "SELECT id FROM sessions")
    row = {"id": 900, "session_id": session, "role": "user", "content": "restored", "timestamp": 1.5}
    ((count,),) = plans.query(store, "SELECT message_count FROM sessions")
    step = plans.step(
        plans.insert("messages", "id", row),
        plans.update(store, "sessions", ("id", session), {"message_count": count + 1}),
        sessions=[session],
    )
    old = plans.digest(store)
    run = apply(plans.write(plans.plan(store, step), tmp_path / "plan.json"), now=plans.NOW)
    assert plans.query(store, "SELECT seq FROM sqlite_sequence WHERE name = 'messages'") == [(900,)]
    found = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'restored'"
    assert plans.query(store, found) == [(900,)]
    undo(Path(run.folder), now=plans.NOW)
    assert plans.digest(store) == old
    assert plans.query(store, found) == []
    assert plans.query(store, "SELECT seq FROM sqlite_sequence WHERE name = 'messages'") == [(900,)]


def test_a_second_undo_changes_nothing_and_says_so(newest: Path, tmp_path: Path) -> None:
    store, run = applied(tmp_path, newest)
    undo(run, now=plans.NOW)
    before, kept = store.read_bytes(), sorted(run.iterdir())
    again = undo(run, now=plans.NOW)
    assert again.state is State.UNDONE
    assert "as it was before the run" in again.advice
    assert store.read_bytes() == before
    assert sorted(run.iterdir()) == kept


def test_an_undo_keeps_a_snapshot_of_what_it_takes_back(newest: Path, tmp_path: Path) -> None:
    store, run = applied(tmp_path, newest)
    new = plans.digest(store)
    undo(run, now=plans.NOW)
    assert plans.digest(run / "before-undo-1.db") == new


@pytest.mark.parametrize("name", ["undo.changeset", "undo.json"])
@pytest.mark.parametrize("how", ["altered", "cut", "gone"])
def test_a_damaged_undo_record_is_not_used(newest: Path, tmp_path: Path, name: str, how: str) -> None:
    store, run = applied(tmp_path, newest)
    data = (run / name).read_bytes()
    if how == "gone":
        (run / name).unlink()
    else:
        (run / name).write_bytes(data[:-9] if how == "cut" else data[:-1] + bytes([data[-1] ^ 0xFF]))
    before = store.read_bytes()
    with pytest.raises(Undetermined):
        undo(run, now=plans.NOW)
    assert store.read_bytes() == before


def test_a_live_lease_stops_an_undo(newest: Path, tmp_path: Path) -> None:
    store, run = applied(tmp_path, newest)
    plans.change(store, f"INSERT INTO compression_locks VALUES ('s', 'gateway', 1.0, {plans.NOW + 600})")
    after = plans.digest(store)
    with pytest.raises(Refused, match="held by gateway"):
        undo(run, now=plans.NOW)
    assert plans.digest(store) == after


@pytest.mark.parametrize("verb", [undo, verify])
def test_a_folder_that_is_no_run_is_said(tmp_path: Path, verb: object) -> None:
    with pytest.raises(UsageError, match="not the folder of a run"):
        verb(tmp_path)  # type: ignore[operator]


def test_verify_writes_nothing(newest: Path, tmp_path: Path) -> None:
    store, run = applied(tmp_path, newest)
    before = {path: path.read_bytes() for folder in (run, store.parent) for path in folder.iterdir()}
    assert verify(run, now=plans.NOW).state is State.APPLIED
    assert {path: path.read_bytes() for folder in (run, store.parent) for path in folder.iterdir()} == before


def test_a_run_record_that_lies_does_not_decide(newest: Path, tmp_path: Path) -> None:
    store, run = applied(tmp_path, newest)
    undo(run, now=plans.NOW)
    told = msgspec.json.decode((run / "run.json").read_bytes())
    (run / "run.json").write_bytes(msgspec.json.encode({**told, "state": "applied and verified"}))
    assert verify(run, now=plans.NOW).state is State.UNDONE
    (run / "run.json").write_bytes(b"{")
    (run / "journal.jsonl").unlink()
    assert verify(run, now=plans.NOW).state is State.BEFORE_COMMIT
    assert plans.query(store, "SELECT COUNT(*) FROM sessions") == [(0,)]


def test_a_lost_journal_does_not_hide_a_commit(newest: Path, tmp_path: Path) -> None:
    store, run = applied(tmp_path, newest)
    (run / "journal.jsonl").unlink()
    (run / "run.json").unlink()
    assert verify(run, now=plans.NOW).state is State.AFTER_COMMIT
    plans.change(store, "UPDATE state_meta SET value = 'other' WHERE key = 'mended'")
    assert verify(run, now=plans.NOW).state is State.CHANGED
