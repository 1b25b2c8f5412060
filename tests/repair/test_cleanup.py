"""What a cleanup deletes, what it never deletes, and why."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder
from tests.repair import cleanups, plans
from tests.repair.cleanups import NOW, WITH_DELEGATES, Cleaned, cleaned

from statemend import formats
from statemend.errors import Refused, RolledBack, StoreHeld, Undetermined, UsageError, VerificationFailed
from statemend.formats.artifact import Artifact
from statemend.repair import cleanup_plan, preflight
from statemend.repair.apply import apply as apply_repair
from statemend.repair.cleanup import apply
from statemend.repair.cleanup_plan import Preserved, Rows
from statemend.repair.plan import dump as plan_file
from statemend.repair.planner import make_plan
from statemend.repair.receipt import Receipt
from statemend.repair.reexport import Format, View
from statemend.repair.run import RunFolder, State
from statemend.repair.undo import undo
from statemend.repair.verify import verify
from statemend.store.holders import Holder

MAKER = "statemend export"


@pytest.fixture
def newest(tmp_path: Path) -> Cleaned:
    return cleaned(tmp_path, "0.22.2")


def health(store: Path) -> dict[str, str]:
    """What SQLite says of the search indexes, contents compared."""
    found = {}
    for index in ("messages_fts", "messages_fts_trigram"):
        plans.query(store, f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', 1)")
        found[index] = "ok"
    return found


def everything(store: Path) -> tuple[object, ...]:
    settings = [plans.query(store, f"PRAGMA {name}") for name in ("journal_mode", "user_version")]
    sequence = plans.query(store, "SELECT * FROM sqlite_sequence ORDER BY name")
    found = plans.query(store, "SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'alpha' ORDER BY 1")
    return plans.digest(store), settings, sequence, found, health(store)


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("release", VERSIONS)
def test_a_session_goes_with_its_delegates_and_comes_back(tmp_path: Path, release: str, mode: str) -> None:
    scene = cleaned(tmp_path, release)
    plans.query(scene.store, f"PRAGMA journal_mode = {mode}")
    before = everything(scene.store)
    others = plans.query(scene.store, "SELECT * FROM messages WHERE session_id NOT IN ('alpha', 'worker')")
    file, run = scene.file("alpha"), tmp_path / "run"

    done = apply(file, run_dir=run, now=NOW)

    gone = ["alpha", "worker"] if release in WITH_DELEGATES else ["alpha"]
    assert done.run is not None
    assert done.receipt is not None
    assert (done.exit_code, done.run.state, done.kept) == (0, State.APPLIED, ())
    assert scene.sessions() == {"beta": None, "branch": None, "other": None}
    assert plans.query(scene.store, "SELECT * FROM messages") == others
    assert [each.session for each in done.receipt.deleted] == gone
    assert done.receipt.detached == {"branch": "alpha"}
    assert done.receipt.rows["messages"] == (9 if "worker" in gone else 5)
    assert ("session_model_usage" in done.receipt.rows) is bool(scene.home.columns("session_model_usage"))
    assert plans.query(scene.store, "SELECT * FROM sqlite_sequence ORDER BY name") == before[2]
    assert plans.query(scene.store, "SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'words'") == []
    assert health(scene.store)
    assert verify(run, now=NOW).state is State.APPLIED

    assert undo(run, now=NOW).state is State.UNDONE
    assert everything(scene.store) == before
    assert verify(run, now=NOW).state is State.UNDONE


def test_the_plan_and_the_receipt_say_exactly_what_goes(newest: Cleaned, tmp_path: Path) -> None:
    (entry,) = newest.plan("alpha").entries
    alpha, worker = entry.members
    assert alpha.rows == Rows(live=2, archived=2, rewound=1, first_id=4, last_id=8)
    assert worker.rows.total == 4
    assert (entry.detached, entry.besides) == (("branch",), {"session_model_usage": 1})
    held = Path(alpha.preserved.path)
    assert alpha.preserved.sha256 == hashlib.sha256(held.read_bytes()).hexdigest()
    assert (alpha.preserved.format, alpha.preserved.view) == ("jsonl", "raw")

    file, run = newest.file("alpha"), tmp_path / "run"
    apply(file, run_dir=run, now=NOW)

    receipt = msgspec.json.decode((run / "receipt.json").read_bytes(), type=Receipt)
    assert stat.S_IMODE((run / "receipt.json").stat().st_mode) == 0o600
    assert receipt.plan_digest == cleanup_plan.load(file).digest
    assert receipt.deleted_at == NOW
    assert [(each.session, each.asked) for each in receipt.deleted] == [
        ("alpha", "alpha"),
        ("worker", "alpha"),
    ]
    assert receipt.deleted[0].preserved == alpha.preserved
    assert receipt.snapshot == hashlib.sha256((run / "snapshot.db").read_bytes()).hexdigest()
    assert receipt.changeset == hashlib.sha256((run / "undo.changeset").read_bytes()).hexdigest()
    assert receipt.digest_after == plans.digest(newest.store)
    assert "message 0" not in (run / "receipt.json").read_text() + file.read_text()


def test_a_plan_holds_no_message_and_stays_small(newest: Cleaned) -> None:
    newest.home.message("beta", "user", "x" * 1_000_000, timestamp=START + 5)
    newest.export("beta")
    assert len(cleanup_plan.dump(newest.plan("beta"))) < 10_000


def test_a_session_above_is_told_and_stays(newest: Cleaned, tmp_path: Path) -> None:
    home = newest.home
    home.chat("first", ended_at=START + 900, end_reason="compression")
    home.chat("second", parent_session_id="first", started_at=START + 901, ended_at=cleanups.ENDED)
    newest.export("second")
    (entry,) = newest.plan("second").entries
    assert [(each.session, each.effect) for each in entry.ancestors] == [
        ("first", "its conversation no longer goes on")
    ]
    rows = plans.row(newest.store, "sessions", "id", "first")
    done = apply(newest.file("second"), run_dir=tmp_path / "run", now=NOW)
    assert done.run is not None
    assert plans.row(newest.store, "sessions", "id", "first") == rows
    assert any("first" in note and "follows from the deletion" in note for note in done.run.notes)


@pytest.mark.parametrize("empty", ["display_order = NULL, display_identity = NULL", "message_uid = NULL"])
def test_columns_that_triggers_fill_come_back_as_empty_as_they_were(
    newest: Cleaned, tmp_path: Path, empty: str
) -> None:
    newest.home.sql(f"UPDATE messages SET {empty} WHERE session_id = 'beta'")
    newest.export("beta")
    old, run = plans.digest(newest.store), tmp_path / "run"
    assert apply(newest.file("beta"), run_dir=run, now=NOW).exit_code == 0
    assert undo(run, now=NOW).state is State.UNDONE
    assert plans.digest(newest.store) == old


# What licenses a deletion


@pytest.mark.parametrize("form", [Format.MD, Format.QMD, Format.HTML])
def test_a_file_for_people_never_licenses(tmp_path: Path, form: Format) -> None:
    scene = cleaned(tmp_path, "0.22.2", exported=())
    (path,) = scene.export("beta", form=form)
    assert path.stat().st_size
    assert f"{path} is {form.kind.value}, which never holds every column" in scene.reasons("beta")["beta"]


@pytest.mark.parametrize("view", [View.ACTIVE, View.DISPLAY])
def test_a_part_never_licenses_the_whole(tmp_path: Path, view: View) -> None:
    scene = cleaned(tmp_path, "0.22.2", exported=("worker",))
    scene.export("alpha", view=view)
    assert "it shows" in scene.reasons("alpha")["alpha"]


def _masked(line: dict[str, object]) -> None:
    line["messages"][1]["content"] = "[REDACTED]"  # type: ignore[index]


def _cut(line: dict[str, object]) -> None:
    del line["messages"][-1]  # type: ignore[attr-defined]


def _column(line: dict[str, object]) -> None:
    del line["messages"][0]["token_count"]  # type: ignore[attr-defined]


def _flag(line: dict[str, object]) -> None:
    line["messages"][0]["active"] = 1  # type: ignore[index]


def _more(line: dict[str, object]) -> None:
    line["messages"].append(line["messages"][0])  # type: ignore[attr-defined]


def _title(line: dict[str, object]) -> None:
    line["title"] = "Another"


@pytest.mark.parametrize("spoil", [_masked, _cut, _column, _flag, _more, _title])
def test_only_an_exact_file_licenses(newest: Cleaned, spoil: Callable[[dict[str, object]], None]) -> None:
    (path,) = newest.export("alpha")
    line = json.loads(path.read_bytes())
    spoil(line)
    path.write_text(json.dumps(line, ensure_ascii=False) + "\n")
    assert "no file holds every row of it" in newest.reasons("alpha")["alpha"]


def test_a_column_that_no_export_shows_keeps_the_session(newest: Cleaned) -> None:
    """A later release may keep something in a column that its exporter hides, as 0.22 hides unknown blobs."""
    newest.home.sql(
        "ALTER TABLE messages ADD COLUMN added_later BLOB",
        "UPDATE messages SET added_later = x'01' WHERE session_id = 'beta'",
    )
    newest.export("alpha", "worker", "beta")
    assert "added_later is not in it" in newest.reasons("beta")["beta"]
    assert newest.reasons("alpha") == {}


def test_a_file_of_several_sessions_never_licenses(newest: Cleaned) -> None:
    exports = [path for path in newest.exports.glob("*.jsonl") if path.name != "manifest.jsonl"]
    lines = b"".join(path.read_bytes() for path in exports)
    for path in newest.exports.iterdir():
        path.unlink()
    (newest.exports / "all.jsonl").write_bytes(lines)
    assert "not read back as an export of this one session" in newest.reasons("beta")["beta"]


def test_one_whole_file_is_enough_among_others(newest: Cleaned, tmp_path: Path) -> None:
    newest.export("beta", form=Format.MD)
    done = apply(newest.file("beta"), run_dir=tmp_path / "run", now=NOW)
    assert done.exit_code == 0
    assert "beta" not in newest.sessions()


def test_a_session_that_no_file_names_is_kept(newest: Cleaned) -> None:
    for path in newest.exports.glob("beta*"):
        path.unlink()
    assert MAKER in newest.reasons("beta")["beta"]


def test_a_delegate_needs_a_file_of_its_own(tmp_path: Path) -> None:
    scene = cleaned(tmp_path, "0.22.2", exported=("alpha", "beta"))
    reasons = scene.reasons("alpha", "beta")
    assert list(reasons) == ["alpha"]
    assert reasons["alpha"].startswith("its subagent worker: no file names it")


# Who is kept


OPEN = "UPDATE sessions SET ended_at = NULL WHERE id = '{}'"
LAST = "(SELECT MAX(id) FROM messages WHERE session_id = '{}')"
LATE = f"UPDATE messages SET timestamp = timestamp + 90000 WHERE id = {LAST}"


@pytest.mark.parametrize(
    ("statement", "said"),
    [(OPEN, "it was never ended"), (LATE, "it was written to after its end")],
)
@pytest.mark.parametrize("whose", ["alpha", "worker"])
def test_what_may_go_on_is_kept(newest: Cleaned, statement: str, said: str, whose: str) -> None:
    newest.home.sql(statement.format(whose))
    newest.export("alpha", "worker")
    told = newest.reasons("alpha", "beta")
    assert list(told) == ["alpha"]
    assert said in told["alpha"]
    assert ("its subagent worker" in told["alpha"]) is (whose == "worker")


def test_a_routed_session_is_kept(newest: Cleaned) -> None:
    entry = json.dumps({"session_id": "beta"})
    newest.home.insert("gateway_routing", scope="", session_key="k", entry_json=entry, updated_at=START)
    assert "routed" in newest.reasons("beta")["beta"]


LEASES = {
    "compression_locks": ("session_id", "compression lock"),
    "session_turn_leases": ("conversation_id", "turn lease"),
}


def lease(scene: Cleaned, table: str, key: str, until: float = NOW + 60) -> None:
    values = {LEASES[table][0]: key, "holder": "elsewhere", "acquired_at": NOW - 9, "expires_at": until}
    scene.home.insert(table, **values)


@pytest.mark.parametrize("key", ["alpha", "worker", "branch"])
@pytest.mark.parametrize("table", LEASES)
def test_a_live_lease_keeps_the_session_and_lets_others_go(
    newest: Cleaned, tmp_path: Path, table: str, key: str
) -> None:
    file = newest.file("alpha", "beta")
    lease(newest, table, key)
    assert list(newest.reasons("alpha", "beta")) == ["alpha"]
    done = apply(file, run_dir=tmp_path / "run", now=NOW)
    assert done.exit_code == Refused.exit_code
    assert done.receipt is not None
    assert [each.session for each in done.receipt.deleted] == ["beta"]
    ((kept),) = done.kept
    assert (kept.session, f"a {LEASES[table][1]} on {key} is live" in kept.reason) == ("alpha", True)
    assert {"alpha", "worker"} <= newest.sessions().keys()


def test_a_lease_on_the_conversation_above_guards_what_is_below(newest: Cleaned) -> None:
    newest.home.chat("first", ended_at=START + 900, end_reason="compression")
    newest.home.chat("second", parent_session_id="first", started_at=START + 901, ended_at=cleanups.ENDED)
    newest.export("second")
    assert newest.reasons("second") == {}
    lease(newest, "session_turn_leases", "first")
    assert "a turn lease on first is live" in newest.reasons("second")["second"]


def test_a_parent_idle_since_its_compression_is_not_live(newest: Cleaned) -> None:
    newest.home.chat("first", ended_at=START + 900, end_reason="compression")
    newest.home.chat("second", parent_session_id="first", started_at=START + 901)
    newest.export("first")
    assert newest.reasons("first") == {}


def test_an_expired_lease_is_left_and_told(newest: Cleaned, tmp_path: Path) -> None:
    lease(newest, "session_turn_leases", "beta", until=NOW - 1)
    done = apply(newest.file("beta"), run_dir=tmp_path / "run", now=NOW)
    assert done.run is not None
    assert any("no longer live" in note for note in done.run.notes)
    assert plans.query(newest.store, "SELECT conversation_id FROM session_turn_leases") == [("beta",)]


def test_a_continuation_with_a_false_mark_is_not_taken_for_a_delegate(newest: Cleaned) -> None:
    home = newest.home
    home.chat("first", ended_at=START + 900, end_reason="compression")
    mark = {"_branched_from": "first", "_delegate_from": "first"}
    home.chat(
        "second", parent_session_id="first", started_at=START + 901, ended_at=START + 950, model_config=mark
    )
    newest.export("first", "second")
    assert "second bears the mark of a subagent and does not read as one" in newest.reasons("first")["first"]


def test_releases_that_disagree_are_not_guessed_between(tmp_path: Path) -> None:
    scene = cleaned(tmp_path, "0.15.2")
    scene.home.sql("UPDATE sessions SET model_config = '{\"_delegate_from\": \"alpha\"}' WHERE id = 'branch'")
    assert "releases disagree on whether branch goes with it" in scene.reasons("alpha")["alpha"]


@pytest.mark.parametrize("release", ["0.13.0", "0.19.0", "0.20.1", "0.22.2"])
def test_text_that_only_another_sqlite_can_take_out_of_the_index_is_kept(
    stores: Mapping[str, Path], tmp_path: Path, release: str
) -> None:
    (tmp_path / "seed").mkdir()
    store = plans.home_with(tmp_path / "seed", stores[release])
    plans.change(store, f"UPDATE sessions SET ended_at = {NOW}")
    ((session,),) = plans.query(store, "SELECT id FROM sessions")
    scene = Cleaned(HomeBuilder.__new__(HomeBuilder), tmp_path / "exports")
    scene.home.root, scene.home.store = store.parent, store
    scene.exports.mkdir()
    scene.export(session)
    assert "holds a NUL" in scene.reasons(session)[session]
    plans.change(store, "INSERT INTO messages_fts_trigram(messages_fts_trigram) VALUES ('rebuild')")
    old = plans.digest(store)
    done = apply(scene.file(session), run_dir=tmp_path / "run", now=NOW)
    assert done.exit_code == 0
    assert undo(tmp_path / "run", now=NOW).state is State.UNDONE
    assert plans.digest(store) == old


def test_the_index_is_asked_again_before_the_deletion(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = plans.home_with(tmp_path, stores["0.19.0"])
    plans.change(store, f"UPDATE sessions SET ended_at = {NOW}")
    ((session,),) = plans.query(store, "SELECT id FROM sessions")
    scene = Cleaned(HomeBuilder.__new__(HomeBuilder), tmp_path / "exports")
    scene.home.root, scene.home.store = store.parent, store
    scene.exports.mkdir()
    scene.export(session)
    with monkeypatch.context() as patch:
        patch.setattr("statemend.repair.cleanup_planner.index_fits", lambda bundle: True)
        file = scene.file(session)
    old = store.read_bytes()
    done = apply(file, run_dir=tmp_path / "run", now=NOW)
    assert done.receipt is None
    assert "holds a NUL" in done.kept[0].reason
    assert store.read_bytes() == old
    assert not (tmp_path / "run").exists()


def test_rows_of_unknown_tables_that_name_a_message_keep_its_session(newest: Cleaned, tmp_path: Path) -> None:
    newest.home.sql(
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, about INTEGER REFERENCES messages)",
        "INSERT INTO notes (about) SELECT MIN(id) FROM messages WHERE session_id = 'beta'",
    )
    assert "rows of notes name it" in newest.reasons("alpha", "beta")["beta"]
    assert apply(newest.file("alpha", "beta"), run_dir=tmp_path / "run", now=NOW).exit_code == 0
    assert newest.sessions().keys() >= {"beta"}
    assert "alpha" not in newest.sessions()


def test_an_index_that_only_hermes_can_write_keeps_every_session(newest: Cleaned) -> None:
    plans.with_foreign_index(newest.store)
    assert "messages_fts_cjk has to forget what goes" in newest.reasons("beta")["beta"]


def test_a_row_without_a_key_that_would_go_with_it_keeps_it(newest: Cleaned) -> None:
    """No undo would bring it back: SQLite records no change of such a row."""
    newest.home.sql(
        "CREATE TABLE notes (id TEXT PRIMARY KEY, about TEXT REFERENCES sessions ON DELETE CASCADE)",
        "INSERT INTO notes VALUES (NULL, 'beta')",
    )
    assert newest.reasons("beta") == {"beta": "rows of notes name it, and could not be had back"}


def test_rows_of_unknown_tables_that_name_it_keep_it(newest: Cleaned) -> None:
    newest.home.sql(
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, about TEXT REFERENCES sessions(id))",
        "INSERT INTO notes VALUES (1, 'beta')",
    )
    assert "rows of notes name it" in newest.reasons("beta")["beta"]
    newest.home.sql(
        "DROP TABLE notes",
        "CREATE TABLE notes (about TEXT REFERENCES sessions(id) ON DELETE CASCADE)",
        "INSERT INTO notes VALUES ('beta')",
    )
    assert "could not be had back" in newest.reasons("beta")["beta"]


# Selecting


def test_an_age_selects_what_ended_and_was_left_alone(newest: Cleaned) -> None:
    home = newest.home
    home.chat("young", ended_at=NOW - 86400)
    home.chat("pinned", ended_at=cleanups.ENDED, pinned=1)
    home.chat("first", ended_at=START + 900, end_reason="compression")
    home.chat("second", parent_session_id="first", started_at=START + 901)
    newest.export("young", "pinned", "first")
    made = newest.plan(older_than=30.0)
    assert [entry.session for entry in made.entries] == ["alpha", "beta"]
    told = {each.session: each.reason for each in made.kept}
    assert told == {"pinned": "it is pinned", "first": "its conversation goes on in second"}


def test_one_way_of_selecting_is_asked_for(newest: Cleaned) -> None:
    with pytest.raises(UsageError, match="and not both"):
        newest.plan()
    with pytest.raises(UsageError, match="and not both"):
        newest.plan("beta", older_than=3.0)
    with pytest.raises(UsageError, match="cannot be less"):
        newest.plan(older_than=-1.0)
    with pytest.raises(UsageError, match="no session"):
        newest.plan("nobody")


def test_a_plan_has_a_limit_that_it_names(newest: Cleaned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statemend.repair.cleanup_planner.LARGEST_RUN", 3000)
    made = newest.plan("beta", "alpha")
    assert [entry.session for entry in made.entries] == ["beta"]
    assert "plan again afterwards" in made.kept[0].reason


# The run as a whole


def test_a_plan_is_carried_out_once(newest: Cleaned, tmp_path: Path) -> None:
    file, run = newest.file("beta"), tmp_path / "run"
    apply(file, run_dir=run, now=NOW)
    new = plans.digest(newest.store)
    for again in (apply(file, run_dir=run, now=NOW), apply(run, now=NOW)):
        assert again.run is not None
        assert again.run.notes[-1] == "the plan was carried out already; nothing was changed"
    assert plans.digest(newest.store) == new


def test_an_undone_plan_can_be_carried_out_again(newest: Cleaned, tmp_path: Path) -> None:
    file = newest.file("beta")
    apply(file, run_dir=tmp_path / "first", now=NOW)
    assert f"cleanup apply {tmp_path}" in undo(tmp_path / "first", now=NOW).advice
    assert apply(file, run_dir=tmp_path / "second", now=NOW).exit_code == 0
    assert "beta" not in newest.sessions()


def test_by_default_the_run_lies_beside_the_home(newest: Cleaned) -> None:
    done = apply(newest.file("beta"), now=NOW)
    assert done.run is not None
    assert Path(done.run.folder).parent == newest.home.root.with_name("home.statemend")


def test_a_repair_that_is_not_verified_comes_first(tmp_path: Path) -> None:
    newest = cleaned(tmp_path, "0.19.0")
    home = newest.home
    home.chat("gone", ended_at=cleanups.ENDED)
    lost = plans.row(newest.store, "sessions", "id", "gone")
    home.sql("DELETE FROM sessions WHERE id = 'gone'")
    repair = plans.write(
        plans.plan(newest.store, plans.step(plans.insert("sessions", "id", lost), sessions=["gone"])),
        tmp_path / "plan.json",
    )
    place = tmp_path / "repair"
    apply_repair(repair, run_dir=place, now=NOW)
    folder = RunFolder(place)
    verified = folder.load()
    assert verified is not None
    file = newest.file("beta", runs=[place])
    for state in (State.AFTER_COMMIT, State.FAILED):
        folder.save(msgspec.structs.replace(verified, state=state))
        with pytest.raises(Refused, match="nothing is deleted before it is verified"):
            apply(file, run_dir=tmp_path / "run", now=NOW)
        assert "beta" in newest.sessions()
    folder.save(verified)
    assert apply(file, run_dir=tmp_path / "run", now=NOW).exit_code == 0


def test_a_run_that_was_taken_back_and_made_again_by_another_stops_nothing(
    newest: Cleaned, tmp_path: Path
) -> None:
    newest.home.sql("UPDATE sessions SET message_count = 77 WHERE id = 'other'")
    repair = plans.write(make_plan(newest.home.root, now=NOW), tmp_path / "plan.json")
    first = Path(apply_repair(repair, now=NOW).folder)
    undo(first, now=NOW)
    second = Path(apply_repair(repair, now=NOW + 60).folder)
    told = verify(first, now=NOW)
    assert (told.state, "was taken back" in told.notes[-1]) == (State.AFTER_COMMIT, True)
    assert verify(second, now=NOW).state is State.APPLIED
    assert apply(newest.file("beta"), run_dir=tmp_path / "run", now=NOW).exit_code == 0


def test_a_run_at_the_home_is_found_without_being_named(newest: Cleaned, tmp_path: Path) -> None:
    first = apply(newest.file("beta"), now=NOW)
    assert first.run is not None
    folder = RunFolder(Path(first.run.folder))
    folder.save(msgspec.structs.replace(first.run, state=State.FAILED))
    with pytest.raises(Refused, match="nothing is deleted before it is verified"):
        apply(newest.file("alpha"), run_dir=tmp_path / "run", now=NOW)
    assert "alpha" in newest.sessions()


def test_a_named_run_must_be_one(newest: Cleaned, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not the folder of a run"):
        apply(newest.file("beta", runs=[tmp_path / "nothing"]), now=NOW)


def test_a_store_in_use_is_refused(newest: Cleaned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = newest.file("beta")
    holder = Holder(pid=7, name="hermes", command="hermes chat", files=(str(newest.store),))
    monkeypatch.setattr(preflight, "find_holders", lambda bundle: (holder,))
    with pytest.raises(StoreHeld, match="hermes chat"):
        apply(file, run_dir=tmp_path / "run", now=NOW)


def test_another_store_is_refused(newest: Cleaned, tmp_path: Path) -> None:
    file = newest.file("beta")
    newest.home.sql("UPDATE state_meta SET value = 'another' WHERE key = 'store_instance_id'")
    newest.home.sql("INSERT OR IGNORE INTO state_meta VALUES ('store_instance_id', 'another')")
    with pytest.raises(Refused, match="made for another store"):
        apply(file, run_dir=tmp_path / "run", now=NOW)


def test_a_new_finding_elsewhere_fails_the_verification(
    newest: Cleaned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, run = newest.file("beta"), tmp_path / "run"

    def damage() -> None:
        plans.change(newest.store, "DELETE FROM sessions WHERE id = 'other'")

    with pytest.raises(VerificationFailed, match="is new"):
        apply(file, run_dir=run, now=NOW, steps=cleanups.at("receipt written", damage))
    assert verify(run, now=NOW).state is State.FAILED


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plan: {**plan, "surprise": 1},
        lambda plan: {**plan, "schema": "statemend/plan/v1"},
        lambda plan: {**plan, "entries": plan["entries"] * 2},
        lambda plan: {**plan, "entries": [{**plan["entries"][0], "members": []}]},
        lambda plan: {**plan, "entries": [{**plan["entries"][0], "session": "other"}]},
    ],
)
def test_a_file_that_is_no_cleanup_plan_is_refused(
    newest: Cleaned, spoil: Callable[[dict[str, list[dict[str, object]]]], object]
) -> None:
    file = newest.file("beta")
    file.write_text(json.dumps(spoil(json.loads(file.read_bytes()))))
    with pytest.raises(UsageError):
        apply(file, now=NOW)


def test_an_edited_plan_takes_nothing_that_is_not_preserved(newest: Cleaned, tmp_path: Path) -> None:
    """Whoever writes into the plan which file is whole, or what goes, only gets the session kept."""
    file = newest.file("beta")
    plan = json.loads(file.read_bytes())
    member = plan["entries"][0]["members"][0]
    member["session"] = plan["entries"][0]["session"] = "branch"
    file.write_text(json.dumps(plan))
    done = apply(file, run_dir=tmp_path / "run", now=NOW)
    assert done.receipt is None
    assert newest.sessions()["branch"] == "alpha"


def test_a_file_that_cannot_be_read_is_named(newest: Cleaned, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = newest.exports.glob("beta*")
    real = formats.read

    def read(asked: Path) -> Artifact:
        if asked == path:
            raise Undetermined(f"{asked}: input/output error")
        return real(asked)

    monkeypatch.setattr(formats, "read", read)
    assert f"no file names it ({path} could not be read" in newest.reasons("beta")["beta"]


def test_a_file_that_cannot_be_had_on_disk_licenses_nothing(
    newest: Cleaned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(preserved: Preserved) -> None:
        raise OSError(5, "Input/output error", preserved.path)

    monkeypatch.setattr("statemend.repair.cleanup_perform.have_on_disk", fail)
    old = newest.store.read_bytes()
    with pytest.raises(RolledBack, match="Input/output error"):
        apply(newest.file("beta"), run_dir=tmp_path / "run", now=NOW)
    assert newest.store.read_bytes() == old


def test_a_run_of_another_store_does_not_matter(newest: Cleaned, tmp_path: Path) -> None:
    first = apply(newest.file("beta"), now=NOW)
    assert first.run is not None
    folder = RunFolder(Path(first.run.folder))
    folder.save(msgspec.structs.replace(first.run, state=State.FAILED))
    elsewhere = folder.load_plan()
    store = msgspec.structs.replace(elsewhere.store, path=str(tmp_path / "elsewhere" / "state.db"))
    folder.plan.write_bytes(plan_file(msgspec.structs.replace(elsewhere, store=store)))
    assert apply(newest.file("alpha"), run_dir=tmp_path / "run", now=NOW).exit_code == 0
