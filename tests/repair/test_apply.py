"""Applying a plan: once, on the store it was made for, with nothing changed but what it lists."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import pytest
from tests.repair import plans

from statemend.errors import Refused, RolledBack, StoreHeld, Undetermined, UsageError, VerificationFailed
from statemend.repair import bounds
from statemend.repair.apply import apply
from statemend.repair.plan import Choice, Option, Step
from statemend.repair.run import Run, State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

RELEASES = ("0.13.0", "0.14.0", "0.15.2", "0.16.0", "0.17.0", "0.18.2", "0.19.0", "0.20.1", "0.22.2")
FILES = {
    "after.json",
    "before.json",
    "journal.jsonl",
    "plan.json",
    "run.json",
    "snapshot.db",
    "undo.changeset",
    "undo.json",
}


@pytest.fixture
def newest(stores: Mapping[str, Path]) -> Path:
    return stores["0.22.2"]


def folder_of(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.parent.iterdir()}


def kept(store: Path) -> tuple[object, ...]:
    """What a file keeps beside its rows: its schema, and its header without counters."""
    header = store.read_bytes()[:100]
    return plans.query(store, "SELECT sql FROM sqlite_schema"), header[16:24], header[40:48], header[52:92]


@pytest.mark.parametrize("release", RELEASES)
def test_apply_and_undo_on_a_store_of_each_release(
    stores: Mapping[str, Path], tmp_path: Path, release: str
) -> None:
    store, file = plans.mixed(tmp_path, stores[release])
    made, old = bounds.read(file), plans.digest(store)
    sequence = plans.query(store, "SELECT * FROM sqlite_sequence")
    settings = kept(store)
    messages = plans.query(store, "SELECT id, session_id, role, content, timestamp FROM messages")

    run = apply(file, now=plans.NOW)
    assert run.state is State.APPLIED
    assert run.remaining == run.new == run.troubles == ()
    assert run.served == tuple(step.finding for step in made.steps)
    assert run.digest_before == old
    assert run.digest_after == plans.digest(store) != old
    for operation in made.work().operations:
        ((name, value),) = bounds.key_of(operation).items()
        row = plans.row(store, operation.table, name, value)
        assert row.items() >= bounds.values(operation.after).items()
    assert plans.query(store, "PRAGMA foreign_key_check") == []
    assert plans.query(store, "SELECT id, session_id, role, content, timestamp FROM messages") == messages

    assert undo(Path(run.folder), now=plans.NOW).state is State.UNDONE
    assert plans.digest(store) == old
    assert plans.query(store, "SELECT * FROM sqlite_sequence") == sequence
    assert kept(store) == settings
    assert [path.name for path in store.parent.iterdir()] == ["state.db"]


def test_a_run_keeps_everything_for_this_user_alone(newest: Path, tmp_path: Path) -> None:
    store, file = plans.mixed(tmp_path, newest)
    run = Path(apply(file, now=plans.NOW).folder)
    assert run.parent == store.parent.with_name("home.statemend")
    assert {path.name for path in run.iterdir()} == FILES
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in run.iterdir()} == {0o600}
    assert msgspec.json.decode((run / "run.json").read_bytes(), type=Run).state is State.APPLIED
    assert (
        plans.digest(run / "snapshot.db")
        == msgspec.json.decode((run / "undo.json").read_bytes())["digest_before"]
    )


def test_a_second_apply_changes_nothing_and_says_so(newest: Path, tmp_path: Path) -> None:
    store, file = plans.mixed(tmp_path, newest)
    first = apply(file, now=plans.NOW)
    before = folder_of(store)
    second = apply(file, now=plans.NOW + 60)
    assert second.state is State.APPLIED
    assert second.folder == first.folder
    assert "nothing was changed" in second.notes[-1]
    assert folder_of(store) == before
    assert [path.name for path in Path(first.folder).parent.iterdir()] == [Path(first.folder).name]


def test_an_applied_plan_whose_run_is_gone_changes_nothing(newest: Path, tmp_path: Path) -> None:
    store, file = plans.orphaned(tmp_path, newest)
    run = Path(apply(file, now=plans.NOW).folder)
    run.rename(tmp_path / "moved")
    before = folder_of(store)
    again = apply(file, now=plans.NOW)
    assert again.state is State.NOTHING
    assert "already" in again.advice
    assert folder_of(store) == before


@pytest.mark.parametrize("given", ["'abc'", "9e999", "NULL"])
def test_a_highest_id_that_is_no_number_stops_nothing(newest: Path, tmp_path: Path, given: str) -> None:
    store, file = plans.orphaned(tmp_path, newest)
    plans.change(store, f"UPDATE sqlite_sequence SET seq = {given} WHERE name = 'messages'")
    assert apply(file, now=plans.NOW).state is State.APPLIED


def test_the_id_of_a_plan_leads_nowhere_else(newest: Path, tmp_path: Path) -> None:
    _, file = plans.orphaned(tmp_path, newest)
    plans.write(msgspec.structs.replace(bounds.read(file), id="/../../x"), file)
    run = Path(apply(file, now=plans.NOW).folder)
    assert run.parent == tmp_path / "home.statemend"


def test_runs_of_another_user_are_named_and_nothing_is_done(
    newest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them may have carried the plan out."""
    _, file = plans.orphaned(tmp_path, newest)
    place = tmp_path / "home.statemend"
    place.mkdir()

    def closed(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", closed)
    with pytest.raises(Undetermined, match=rf"^{place}: cannot be read .* as the user who did it$"):
        apply(file, now=plans.NOW)


def test_an_undone_plan_can_be_applied_again(newest: Path, tmp_path: Path) -> None:
    store, file = plans.mixed(tmp_path, newest)
    first = apply(file, now=plans.NOW)
    undo(Path(first.folder), now=plans.NOW)
    second = apply(file, now=plans.NOW + 60)
    assert second.state is State.APPLIED
    assert second.folder != first.folder
    assert undo(Path(second.folder), now=plans.NOW).state is State.UNDONE
    assert plans.digest(store) == first.digest_before


def test_a_plan_without_steps_needs_no_run(newest: Path, tmp_path: Path) -> None:
    store = plans.home_with(tmp_path, newest)
    file = plans.write(plans.plan(store), tmp_path / "plan.json")
    assert apply(file, now=plans.NOW).state is State.NOTHING
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "plan.json"]


@pytest.mark.parametrize(("chosen", "title"), [(None, None), ("leave", None), ("name", "named")])
def test_only_a_chosen_option_happens(
    newest: Path, tmp_path: Path, chosen: str | None, title: str | None
) -> None:
    store = plans.home_with(tmp_path, newest)
    ((session,),) = plans.query(store, "SELECT id FROM sessions")
    step = plans.step(
        plans.update(store, "sessions", ("id", session), {"title": "named"}), sessions=[session]
    )
    choice = Choice(
        id="c",
        finding=step.finding,
        question="Which?",
        options=(Option(id="leave", title="Leave it"), Option(id="name", title="Name it", steps=(step,))),
        chosen=chosen,
    )
    made = msgspec.structs.replace(plans.plan(store), choices=(choice,))
    apply(plans.write(made, tmp_path / "plan.json"), now=plans.NOW)
    assert plans.query(store, "SELECT title FROM sessions") == [(title,)]


def at(step: str, do: Callable[[], object]) -> Callable[[str], None]:
    """A hook that does something when a step is reached."""

    def hook(name: str) -> None:
        if name == step:
            do()

    return hook


WRITES = {
    "an append": "INSERT INTO messages(session_id, role, content, timestamp) "
    "SELECT session_id, 'user', 'late', 9.0 FROM messages LIMIT 1",
    "an edit": "UPDATE messages SET content = 'other' WHERE role = 'user'",
    "an unrelated key": "INSERT INTO state_meta(key, value) VALUES ('late', '1')",
    "the same row": "INSERT INTO state_meta(key, value) VALUES ('mended', 'by another')",
}


@pytest.mark.parametrize("write", WRITES, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_writer_between_snapshot_and_fence_is_seen(
    newest: Path, tmp_path: Path, write: str, mode: str
) -> None:
    store, file = plans.mixed(tmp_path, newest)
    plans.query(store, f"PRAGMA journal_mode = {mode}")
    theirs: list[str] = []

    def race() -> None:
        plans.change(store, WRITES[write])
        theirs.append(plans.digest(store))

    with pytest.raises(Refused, match="another process wrote to it since the snapshot"):
        apply(file, run_dir=tmp_path / "run", now=plans.NOW, steps=at("snapshot verified", race))
    assert [plans.digest(store)] == theirs
    assert not (tmp_path / "run" / "undo.changeset").exists()


def test_a_writer_inside_the_fence_has_to_wait(newest: Path, tmp_path: Path) -> None:
    _, file = plans.mixed(tmp_path, newest)
    code = (
        "import apsw, sys\n"
        "c = apsw.Connection(sys.argv[1])\n"
        "try: c.execute('BEGIN IMMEDIATE')\n"
        "except apsw.BusyError: print('busy')"
    )
    said: list[str] = []

    def race() -> None:
        store = tmp_path / "home" / "state.db"
        said.append(subprocess.check_output([sys.executable, "-c", code, str(store)], text=True))

    run = apply(file, now=plans.NOW, steps=at("undo record written", race))
    assert said == ["busy\n"]
    assert run.state is State.APPLIED


STALE = {
    "a changed row": "UPDATE messages SET token_count = 7",
    "a row that came": "INSERT INTO state_meta(key, value) VALUES ('mended', 'by another')",
    "a row that went": "DELETE FROM messages WHERE id = (SELECT MAX(id) FROM messages)",
}


@pytest.mark.parametrize("statement", STALE.values(), ids=[name.replace(" ", "-") for name in STALE])
def test_a_stale_plan_is_refused(stores: Mapping[str, Path], tmp_path: Path, statement: str) -> None:
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    plans.change(
        store, "INSERT INTO messages_fts_trigram(messages_fts_trigram) VALUES ('rebuild')", statement
    )
    before = folder_of(store)
    with pytest.raises(Refused, match=rf"^{store}: the plan is stale"):
        apply(file, now=plans.NOW)
    assert folder_of(store) == before
    assert not store.parent.with_name("home.statemend").exists()


def test_a_plan_outlives_what_does_not_concern_it(newest: Path, tmp_path: Path) -> None:
    store, file = plans.orphaned(tmp_path, newest)
    plans.change(store, "INSERT INTO state_meta(key, value) VALUES ('late', '1')")
    os.utime(store, (1, 1))
    assert apply(file, now=plans.NOW).state is State.APPLIED


def test_another_store_is_refused(newest: Path, tmp_path: Path) -> None:
    store, file = plans.orphaned(tmp_path, newest)
    plans.change(store, "UPDATE state_meta SET value = 'other' WHERE key = 'store_instance_id'")
    made = bounds.read(file)
    if made.store.instance is None:
        store_of = msgspec.structs.replace(made.store, instance="another")
        plans.write(msgspec.structs.replace(made, store=store_of), file)
    with pytest.raises(Refused, match="for another store"):
        apply(file, now=plans.NOW)


def test_other_tables_are_refused(newest: Path, tmp_path: Path) -> None:
    store, file = plans.orphaned(tmp_path, newest)
    plans.change(store, "CREATE TABLE other (id INTEGER PRIMARY KEY)")
    with pytest.raises(Refused, match="its tables are not those"):
        apply(file, now=plans.NOW)


LEASES = {
    "compression_locks": ("compression lock", "session_id"),
    "session_turn_leases": ("turn lease", "conversation_id"),
}


@pytest.mark.parametrize("table", LEASES)
def test_a_live_lease_is_refused_and_an_expired_one_told(newest: Path, tmp_path: Path, table: str) -> None:
    store, file = plans.orphaned(tmp_path, newest)
    kind, column = LEASES[table]
    plans.change(
        store,
        f"INSERT INTO {table}({column}, holder, acquired_at, expires_at) "
        f"VALUES ('s', 'gateway@elsewhere', {plans.NOW}, {plans.NOW + 600})",
    )
    before = folder_of(store)
    with pytest.raises(Refused, match=f"{kind} on 's', held by gateway@elsewhere, expires 2026-09-2"):
        apply(file, now=plans.NOW)
    assert folder_of(store) == before
    run = apply(file, now=plans.NOW + 3600)
    assert run.state is State.APPLIED
    assert re.search(f"{kind} on 's'.* no longer live; it was left", run.notes[0])
    assert plans.query(store, f"SELECT COUNT(*) FROM {table}") == [(1,)]


def test_a_lease_taken_after_the_snapshot_is_refused(newest: Path, tmp_path: Path) -> None:
    store, file = plans.orphaned(tmp_path, newest)

    def lease() -> None:
        plans.change(store, f"INSERT INTO compression_locks VALUES ('s', 'pid=1', 1.0, {plans.NOW + 600})")

    with pytest.raises(Refused):
        apply(file, now=plans.NOW, steps=at("snapshot verified", lease))
    assert plans.query(store, "SELECT COUNT(*) FROM sessions") == [(0,)]


def test_two_runs_on_one_store_refuse_each_other(newest: Path, tmp_path: Path) -> None:
    store, file = plans.mixed(tmp_path, newest)
    said: list[str] = []

    def again() -> None:
        with pytest.raises(StoreHeld) as caught:
            apply(file, run_dir=tmp_path / "other", now=plans.NOW)
        said.append(str(caught.value))

    apply(file, now=plans.NOW, steps=at("undo record written", again))
    assert f"running (pid {os.getpid()})" in said[0]
    assert not (tmp_path / "other").exists()
    assert [path.name for path in store.parent.iterdir()] == ["state.db"]


def test_a_folder_that_is_there_is_not_used(newest: Path, tmp_path: Path) -> None:
    store, file = plans.mixed(tmp_path, newest)
    (tmp_path / "run").mkdir()
    before = folder_of(store)
    with pytest.raises(Refused, match="is there already"):
        apply(file, run_dir=tmp_path / "run", now=plans.NOW)
    assert folder_of(store) == before


def test_the_folders_above_a_run_that_are_made_for_it_are_for_this_user_alone(
    newest: Path, tmp_path: Path
) -> None:
    _, file = plans.mixed(tmp_path, newest)
    tmp_path.chmod(0o755)
    before = os.umask(0)
    try:
        apply(file, run_dir=tmp_path / "a" / "b" / "run", now=plans.NOW)
    finally:
        os.umask(before)
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "run"]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700] * 3
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def attempt(tmp_path: Path, newest: Path, build: Callable[[Path, str], Step]) -> tuple[Path, Path]:
    store = plans.home_with(tmp_path, newest)
    ((session,),) = plans.query(store, "SELECT id FROM sessions")
    return store, plans.write(plans.plan(store, build(store, session)), tmp_path / "plan.json")


def test_a_foreign_key_that_sqlite_cannot_follow_is_named_with_its_table(
    newest: Path, tmp_path: Path
) -> None:
    def build(store: Path, session: str) -> Step:
        connection = apsw.Connection(str(store))
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, of REFERENCES sessions (source))")
        connection.close()
        return plans.step(
            plans.update(store, "sessions", ("id", session), {"message_count": 77}), sessions=[session]
        )

    store, file = attempt(tmp_path, newest, build)
    before = plans.digest(store)
    with pytest.raises(Refused, match=r"'notes' has a foreign key to 'sessions' .* mend or drop that table"):
        apply(file, run_dir=tmp_path / "run", now=plans.NOW)
    assert plans.digest(store) == before


def test_a_change_of_a_session_that_no_step_names_is_taken_back(newest: Path, tmp_path: Path) -> None:
    store, file = attempt(
        tmp_path,
        newest,
        lambda store, session: plans.step(
            plans.update(store, "sessions", ("id", session), {"title": "new"}), sessions=["another"]
        ),
    )
    before = folder_of(store)
    with pytest.raises(RolledBack, match="no step names that session"):
        apply(file, now=plans.NOW)
    assert folder_of(store) == before


def test_a_new_reference_to_nothing_is_taken_back(newest: Path, tmp_path: Path) -> None:
    store, file = attempt(
        tmp_path,
        newest,
        lambda store, session: plans.step(
            plans.update(store, "sessions", ("id", session), {"parent_session_id": "nobody"}),
            sessions=[session],
        ),
    )
    before = folder_of(store)
    with pytest.raises(RolledBack, match="FOREIGN KEY"):
        apply(file, now=plans.NOW)
    assert folder_of(store) == before


def test_a_new_finding_fails_the_rehearsal(newest: Path, tmp_path: Path) -> None:
    store, file = attempt(
        tmp_path,
        newest,
        lambda store, session: plans.step(
            plans.update(store, "sessions", ("id", session), {"message_count": 99}), sessions=[session]
        ),
    )
    before = folder_of(store)
    with pytest.raises(RolledBack, match=r"rehearsal did not pass.*CNT001-\w+ is new"):
        apply(file, now=plans.NOW)
    assert folder_of(store) == before


def test_a_finding_that_stays_fails_the_rehearsal(newest: Path, tmp_path: Path) -> None:
    store, _ = plans.orphaned(tmp_path, newest)
    finding = plans.orphans(store)
    note = plans.insert("state_meta", "key", {"key": "mended", "value": "no"})
    file = plans.write(plans.plan(store, plans.step(note, finding=finding)), tmp_path / "plan.json")
    before = folder_of(store)
    with pytest.raises(RolledBack, match=f"{finding} is still there"):
        apply(file, now=plans.NOW)
    assert folder_of(store) == before


def named(store: Path, session: str) -> Step:
    """A step that gives a session a title."""
    return plans.step(plans.update(store, "sessions", ("id", session), {"title": "new"}), sessions=[session])


def test_what_goes_wrong_after_the_commit_is_told_and_can_be_undone(newest: Path, tmp_path: Path) -> None:
    store, file = attempt(tmp_path, newest, named)
    ((count,),) = plans.query(store, "SELECT message_count FROM sessions")
    old, run = plans.digest(store), tmp_path / "run"

    def lose() -> None:
        plans.change(store, "UPDATE sessions SET message_count = 99")

    with pytest.raises(VerificationFailed, match=r"CNT001-\w+ is new.*statemend undo"):
        apply(file, run_dir=run, now=plans.NOW, steps=at("committed", lose))
    assert verify(run, now=plans.NOW).state is State.CHANGED
    with pytest.raises(Refused, match="changed since the run"):
        undo(run, now=plans.NOW)
    plans.change(store, f"UPDATE sessions SET message_count = {count}")
    assert verify(run, now=plans.NOW).state is State.APPLIED
    assert undo(run, now=plans.NOW).state is State.UNDONE
    assert plans.digest(store) == old


def test_a_failed_verification_is_told_again(newest: Path, tmp_path: Path) -> None:
    store, file = attempt(tmp_path, newest, named)
    run = tmp_path / "run"

    def orphan() -> None:
        plans.change(store, "UPDATE messages SET session_id = 'gone' WHERE id = 1")

    with pytest.raises(VerificationFailed, match=r"ORP001-\w+ is new"):
        apply(file, run_dir=run, now=plans.NOW, steps=at("committed", orphan))
    assert verify(run, now=plans.NOW).state is State.FAILED
    with pytest.raises(VerificationFailed, match="statemend undo"):
        apply(file, run_dir=run, now=plans.NOW)
    assert undo(run, now=plans.NOW).notes[-1] == "other rows were written since, and are kept"
    assert plans.query(store, "SELECT session_id FROM messages WHERE id = 1") == [("gone",)]
    assert plans.query(store, "SELECT title FROM sessions") == [(None,)]


def test_what_life_brings_later_is_not_held_against_a_verified_run(newest: Path, tmp_path: Path) -> None:
    store, file = plans.orphaned(tmp_path, newest)
    run = apply(file, now=plans.NOW)
    assert run.state is State.APPLIED
    plans.change(
        store,
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('elsewhere', 'user', 'x', 1.5)",
    )

    again = verify(Path(run.folder), now=plans.NOW)

    assert again.state is State.APPLIED
    assert again.new == ()
    (note,) = (note for note in again.notes if "came later" in note)
    assert note.startswith("ORP001-")


def test_what_comes_later_in_a_session_that_was_changed_is_held_against_the_run(
    newest: Path, tmp_path: Path
) -> None:
    store, file = attempt(tmp_path, newest, named)
    run = apply(file, now=plans.NOW)
    columns = "session_id, role, content, timestamp"
    plans.change(store, f"INSERT INTO messages ({columns}) SELECT {columns} FROM messages")

    again = verify(Path(run.folder), now=plans.NOW)

    assert again.state is State.FAILED
    assert [one.partition("-")[0] for one in again.new] == ["CNT001", "MSG004"]


def test_a_trigger_that_does_more_than_derive_is_refused(newest: Path, tmp_path: Path) -> None:
    store = plans.home_with(tmp_path, newest)
    ((session,),) = plans.query(store, "SELECT id FROM sessions")
    plans.change(
        store,
        "CREATE TRIGGER spy AFTER UPDATE OF title ON sessions BEGIN UPDATE messages SET content = ''; END",
    )
    file = plans.write(plans.plan(store, named(store, session)), tmp_path / "plan.json")
    before = folder_of(store)
    with pytest.raises(Refused, match="the plan does not list what it does: update messages content"):
        apply(file, now=plans.NOW)
    assert folder_of(store) == before


@pytest.mark.parametrize(
    "does", ["UPDATE messages SET message_uid = 'x' WHERE id = new.id", "DELETE FROM messages_fts"]
)
def test_a_trigger_of_somebody_else_may_not_even_derive(newest: Path, tmp_path: Path, does: str) -> None:
    store, file = plans.mixed(tmp_path, newest)
    plans.change(store, f"CREATE TRIGGER mine AFTER UPDATE OF active ON messages BEGIN {does}; END")
    plans.write(plans.plan(store, *bounds.read(file).steps), file)
    old = plans.digest(store)
    with pytest.raises(Refused, match="the plan does not list what it does"):
        apply(file, now=plans.NOW)
    assert plans.digest(store) == old


@pytest.mark.parametrize("release", RELEASES[3:7])
def test_a_text_that_another_sqlite_indexed_does_not_stop_a_repair(
    stores: Mapping[str, Path], tmp_path: Path, release: str
) -> None:
    store = plans.home_with(tmp_path, stores[release])
    (message, session), *_ = plans.query(
        store, "SELECT id, session_id FROM messages WHERE instr(CAST(content AS BLOB), x'00') > 0"
    )
    old = plans.digest(store)
    pages = "SELECT id, block FROM messages_fts_trigram_data ORDER BY id"
    index = plans.query(store, pages)
    step = plans.step(plans.update(store, "messages", ("id", message), {"active": 0}), sessions=[session])
    run = apply(plans.write(plans.plan(store, step), tmp_path / "plan.json"), now=plans.NOW)
    assert plans.query(store, "SELECT active FROM messages WHERE id = ?", (message,)) == [(0,)]
    assert plans.query(store, pages) == index
    undo(Path(run.folder), now=plans.NOW)
    assert plans.digest(store) == old
    assert plans.query(store, pages) == index


@pytest.mark.parametrize("release", ["0.13.0", "0.19.0", "0.20.1", "0.22.2"])
def test_a_search_index_is_built_anew(stores: Mapping[str, Path], tmp_path: Path, release: str) -> None:
    store = plans.home_with(tmp_path, stores[release])
    word = "SELECT COUNT(*) FROM messages_fts WHERE messages_fts MATCH 'hello OR content OR the OR a'"
    wanted = plans.query(store, word)
    kept = [(99,)] if release in ("0.13.0", "0.19.0") else []
    if kept:
        plans.change(
            store,
            "DELETE FROM messages_fts WHERE rowid > (SELECT MAX(id) - 2 FROM messages)",
            "INSERT INTO messages_fts(rowid, content) VALUES (99, 'a text that no message has')",
            "UPDATE messages_fts SET content = 'hello altered' WHERE rowid = (SELECT MIN(id) FROM messages)",
        )
    else:
        plans.change(store, "INSERT INTO messages_fts(messages_fts) VALUES ('delete-all')")
    step = plans.step(reindex=["messages_fts"])
    run = apply(plans.write(plans.plan(store, step), tmp_path / "plan.json"), now=plans.NOW)
    assert run.state is State.APPLIED
    assert plans.query(store, f"{word} AND rowid <> 99") == wanted
    plans.query(store, "INSERT INTO messages_fts(messages_fts, rank) VALUES ('integrity-check', 1)")
    if kept:
        rows = "SELECT rowid FROM messages_fts ORDER BY rowid"
        assert plans.query(store, rows) == plans.query(store, "SELECT id FROM messages ORDER BY id") + kept
    assert undo(Path(run.folder), now=plans.NOW).state is State.UNDONE
    plans.query(store, "INSERT INTO messages_fts(messages_fts, rank) VALUES ('integrity-check', 1)")


def _flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


@pytest.mark.parametrize("at", [0, 20, 200], ids=["no-log", "another-log", "torn"])
@pytest.mark.parametrize("verb", [apply, undo])
def test_a_log_of_which_sqlite_reads_a_part_is_kept(
    newest: Path, tmp_path: Path, at: int, verb: Callable[..., object]
) -> None:
    """To write to the store would overwrite the only copy of what is in it."""
    store, file = plans.orphaned(tmp_path, newest)
    run = tmp_path / "run"
    if verb is undo:
        apply(file, run_dir=run, now=plans.NOW)
    log = store.with_name("state.db-wal")
    with closing(apsw.Connection(str(store))) as connection:
        connection.pragma("journal_mode", "wal")
        connection.execute("INSERT INTO state_meta(key, value) VALUES ('only', 'here')")
        data = log.read_bytes()
    with closing(apsw.Connection(str(store))) as connection:
        connection.execute("DELETE FROM state_meta WHERE key = 'only'")
    log.write_bytes(_flip(data, at))
    before = folder_of(store)
    with pytest.raises(Refused, match="SQLite does not read all of this log"):
        verb(run if verb is undo else file, now=plans.NOW)
    assert folder_of(store) == before
    log.unlink()
    verb(run if verb is undo else file, now=plans.NOW)


def test_a_rollback_journal_beside_a_store_with_a_log_is_kept(newest: Path, tmp_path: Path) -> None:
    store, file = plans.orphaned(tmp_path, newest)
    with closing(apsw.Connection(str(store))) as connection:
        connection.pragma("journal_mode", "wal")
    journal = store.with_name("state.db-journal")
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(504))
    with pytest.raises(Refused, match="a rollback journal lies beside it"):
        apply(file, now=plans.NOW)
    assert journal.exists()


def test_a_store_with_another_name_is_refused(newest: Path, tmp_path: Path) -> None:
    """A log beside the other name would override the change."""
    store, file = plans.orphaned(tmp_path, newest)
    other = tmp_path / "backup.db"
    os.link(store, other)
    before = store.read_bytes()
    with pytest.raises(Refused, match=r"has 2 names \(hard links\)"):
        apply(file, run_dir=tmp_path / "refused", now=plans.NOW)
    assert store.read_bytes() == before
    other.unlink()
    apply(file, run_dir=tmp_path / "run", now=plans.NOW)
    os.link(store, other)
    before = store.read_bytes()
    with pytest.raises(Refused, match=r"has 2 names \(hard links\)"):
        undo(tmp_path / "run", now=plans.NOW)
    assert store.read_bytes() == before


def test_a_store_that_is_gone_is_said(newest: Path, tmp_path: Path) -> None:
    store, file = plans.orphaned(tmp_path, newest)
    store.unlink()
    with pytest.raises(UsageError, match="no such file"):
        apply(file, now=plans.NOW)
    assert list(store.parent.iterdir()) == []


def test_a_store_in_use_is_refused_naming_who(newest: Path, tmp_path: Path) -> None:
    store, file = plans.mixed(tmp_path, newest)
    code = (
        "import apsw, sys\n"
        "c = apsw.Connection(sys.argv[1]); c.execute('SELECT 1 FROM sessions')\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    before = folder_of(store)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreHeld, match=rf"pid {holder.pid}"):
            apply(file, now=plans.NOW)
        holder.communicate()
    assert folder_of(store) == before
    assert apply(file, now=plans.NOW).state is State.APPLIED
