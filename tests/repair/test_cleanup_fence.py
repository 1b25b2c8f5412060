"""Whatever happens between the plan and the commit of a cleanup, no message is lost and nothing is half
done."""

from __future__ import annotations

import ast
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.repair import cleanups, plans
from tests.repair.cleanups import NOW, Cleaned, at, cleaned
from tests.repair.faults import Faults, faults, undisturbed
from tests.repair.test_faults import FAILED, each_case
from tests.repair.whole import restore, sound

import statemend
from statemend.errors import Refused, RolledBack, StatemendError, Undetermined, UsageError
from statemend.repair import bounds, cleanup_plan
from statemend.repair.cleanup import apply
from statemend.repair.cleanup_perform import CleanupFolder, perform
from statemend.repair.cleanup_plan import CleanupPlan
from statemend.repair.plan import Kind, Operation
from statemend.repair.run import RunFolder, State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

STEPS = (
    "rehearsal passed",
    "preflight passed",
    "snapshot verified",
    "fence entered",
    "checked again",
    "changed and proven",
    "undo record written",
    "committed",
    "receipt written",
    "verified",
)
MESSAGE = (
    "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('{}', 'user', 'new', 1790000500.0)"
)
#: What another process may do meanwhile, and what is said of the session then.
MEANWHILE = {
    "append": (MESSAGE.format("alpha"), "does not hold every row"),
    "append to the delegate": (MESSAGE.format("worker"), "does not hold every row"),
    "edit": ("UPDATE messages SET content = 'edited' WHERE session_id = 'alpha' AND active = 1", "not hold"),
    "undo": ("UPDATE messages SET active = 0 WHERE session_id = 'alpha' AND active = 1", "not hold"),
    "rename": ("UPDATE sessions SET title = 'Renamed' WHERE id = 'alpha'", "not hold"),
    "reopen": ("UPDATE sessions SET ended_at = NULL WHERE id = 'alpha'", "never ended"),
    "new delegate": (
        "INSERT INTO sessions (id, source, started_at, parent_session_id, model_config, ended_at) VALUES "
        "('late', 'subagent', 1790000000.0, 'alpha', '{\"_delegate_from\": \"alpha\"}', 1790001000.0)",
        "its subagent late: it goes with it, and was not there",
    ),
    "new child": (
        "INSERT INTO sessions (id, source, started_at, parent_session_id) VALUES "
        "('late', 'cli', 1790000000.0, 'alpha')",
        "other children",
    ),
    "lease": (
        "INSERT INTO session_turn_leases VALUES ('alpha', 'elsewhere', 1790000000.0, 1890000000.0)",
        "a turn lease on alpha is live",
    ),
    "lock on the delegate": (
        "INSERT INTO compression_locks VALUES ('worker', 'elsewhere', 1790000000.0, 1890000000.0)",
        "a compression lock on worker is live",
    ),
    "usage": (
        "INSERT INTO session_model_usage (session_id, model, billing_provider, billing_base_url, "
        "billing_mode, task) VALUES ('alpha', 'other', '', '', '', '')",
        "other rows hang on it",
    ),
}


#: An undo waits for these.
LEASED = {"lease", "lock on the delegate"}


@pytest.fixture
def newest(tmp_path: Path) -> Cleaned:
    return cleaned(tmp_path, "0.22.2")


def files(scene: Cleaned) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in scene.exports.iterdir()}


@pytest.mark.parametrize("what", MEANWHILE)
def test_what_happened_since_the_plan_keeps_the_session(newest: Cleaned, tmp_path: Path, what: str) -> None:
    statement, said = MEANWHILE[what]
    file = newest.file("alpha")
    plans.change(newest.store, statement)
    old, held = plans.digest(newest.store), files(newest)

    done = apply(file, run_dir=tmp_path / "run", now=NOW)

    assert (done.run, done.receipt, done.exit_code) == (None, None, 4)
    assert said in done.kept[0].reason
    assert (plans.digest(newest.store), files(newest)) == (old, held)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("what", MEANWHILE)
def test_what_happens_after_the_first_check_keeps_the_session(
    newest: Cleaned, tmp_path: Path, what: str
) -> None:
    """Between the check and the snapshot, a second connection commits. Only the check inside the fence can
    see it. The other session of the plan goes."""
    statement, said = MEANWHILE[what]
    file, held = newest.file("alpha", "beta"), files(newest)
    hook = at("rehearsal passed", lambda: plans.change(newest.store, statement))

    done = apply(file, run_dir=tmp_path / "run", now=NOW, steps=hook)

    ((kept),) = done.kept
    assert (kept.session, said in kept.reason) == ("alpha", True)
    assert {"alpha", "worker", "other"} <= newest.sessions().keys()
    assert "beta" not in newest.sessions()
    assert files(newest) == held
    assert done.run is not None
    if what not in LEASED:
        assert undo(tmp_path / "run", now=NOW).state is State.UNDONE


@pytest.mark.parametrize("what", MEANWHILE)
def test_what_happens_between_snapshot_and_fence_refuses_everything(
    newest: Cleaned, tmp_path: Path, what: str
) -> None:
    """The snapshot would not be of what is deleted."""
    statement, _ = MEANWHILE[what]
    file, held, run = newest.file("alpha", "beta"), files(newest), tmp_path / "run"
    seen: list[str] = []

    def write() -> None:
        plans.change(newest.store, statement)
        seen.append(plans.digest(newest.store))

    with pytest.raises(Refused, match="another process wrote to it since the snapshot"):
        apply(file, run_dir=run, now=NOW, steps=at("snapshot verified", write))

    assert [plans.digest(newest.store)] == seen
    assert files(newest) == held
    assert verify(run, now=NOW).state is State.BEFORE_COMMIT


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize(
    "step", ["fence entered", "checked again", "changed and proven", "undo record written"]
)
def test_another_process_waits_from_the_check_to_the_commit(
    newest: Cleaned, tmp_path: Path, step: str, mode: str
) -> None:
    """Reading the files that license the deletion must not let go of the lock on the store."""
    plans.query(newest.store, f"PRAGMA journal_mode = {mode}")
    found: list[bool] = []
    hook = at(step, lambda: found.append(cleanups.other_process_may_write(newest.store)))
    apply(newest.file("alpha"), run_dir=tmp_path / "run", now=NOW, steps=hook)
    assert found == [False]
    assert cleanups.other_process_may_write(newest.store)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-50])


def _add(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def _link_to_the_store(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent / "home" / "state.db")


def _hard_link_to_the_store(path: Path) -> None:
    path.unlink()
    path.hardlink_to(path.parent.parent / "home" / "state.db")


SPOILT = [
    (spoil, step)
    for step in ("", "rehearsal passed", "snapshot verified", "fence entered")
    for spoil in (_truncate, _add, Path.unlink, _link_to_the_store, _hard_link_to_the_store)
    if spoil is not _hard_link_to_the_store or step in ("snapshot verified", "fence entered")  # else refused
]


@pytest.mark.parametrize(("spoil", "step"), SPOILT)
def test_a_file_that_changed_licenses_nothing(
    newest: Cleaned, tmp_path: Path, spoil: Callable[[Path], None], step: str
) -> None:
    file = newest.file("alpha", "beta")
    (path,) = newest.exports.glob("worker*")
    if not step:
        spoil(path)
    done = apply(file, run_dir=tmp_path / "run", now=NOW, steps=at(step, lambda: spoil(path)))
    ((kept),) = done.kept
    assert (kept.session, "its subagent worker" in kept.reason) == ("alpha", True)
    assert {"alpha", "worker"} <= newest.sessions().keys()
    assert "beta" not in newest.sessions()


def test_nothing_left_inside_the_fence_leaves_everything(newest: Cleaned, tmp_path: Path) -> None:
    old = plans.digest(newest.store)
    for path in list(newest.exports.glob("beta*")):
        hook = at("fence entered", path.unlink)
    done = apply(newest.file("beta"), run_dir=tmp_path / "run", now=NOW, steps=hook)
    assert (done.receipt, done.kept[0].session) == (None, "beta")
    assert plans.digest(newest.store) == old
    assert verify(tmp_path / "run", now=NOW).state is State.BEFORE_COMMIT


def test_a_trigger_that_deletes_more_is_taken_back(newest: Cleaned, tmp_path: Path) -> None:
    newest.home.sql(
        "CREATE TRIGGER greedy AFTER DELETE ON messages BEGIN "
        "DELETE FROM messages WHERE session_id = 'other'; END"
    )
    file, old = newest.file("beta"), plans.digest(newest.store)
    with pytest.raises((Refused, RolledBack)):
        apply(file, run_dir=tmp_path / "run", now=NOW)
    assert plans.digest(newest.store) == old


def test_a_deletion_that_its_undo_would_not_give_back_is_not_begun(
    newest: Cleaned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statemend.repair.cleanup.take_back", lambda connection, undo, changeset: True)
    old = newest.store.read_bytes()
    with pytest.raises(RolledBack, match="the undo did not give the store back"):
        apply(newest.file("beta"), run_dir=tmp_path / "run", now=NOW)
    assert newest.store.read_bytes() == old
    assert not (tmp_path / "run").exists()


def test_an_undo_is_refused_when_a_row_came_in_its_place(newest: Cleaned, tmp_path: Path) -> None:
    run = tmp_path / "run"
    apply(newest.file("beta"), run_dir=run, now=NOW)
    plans.change(
        newest.store, "INSERT INTO sessions (id, source, started_at) VALUES ('beta', 'unknown', 1790000000.0)"
    )
    new = plans.digest(newest.store)
    with pytest.raises(Refused, match="changed since the run"):
        undo(run, now=NOW)
    assert plans.digest(newest.store) == new


def test_an_undo_keeps_what_was_written_since(newest: Cleaned, tmp_path: Path) -> None:
    run = tmp_path / "run"
    old = plans.query(newest.store, "SELECT * FROM messages WHERE session_id = 'alpha' ORDER BY id")
    apply(newest.file("alpha"), run_dir=run, now=NOW)
    plans.change(newest.store, MESSAGE.format("other"))
    assert undo(run, now=NOW).state is State.UNDONE
    assert plans.query(newest.store, "SELECT * FROM messages WHERE session_id = 'alpha' ORDER BY id") == old
    ((count,),) = plans.query(newest.store, "SELECT COUNT(*) FROM messages WHERE content = 'new'")
    assert count == 1


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step(newest: Cleaned, tmp_path: Path, step: str, mode: str) -> None:
    plans.query(newest.store, f"PRAGMA journal_mode = {mode}")
    file, run, old = newest.file("alpha", "beta"), tmp_path / "run", plans.digest(newest.store)
    held = files(newest)
    done = subprocess.run(
        [sys.executable, "-m", "tests.repair.cleanup_killed", str(file), step, str(run)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert tuple(done.stdout.splitlines()) == STEPS[: STEPS.index(step)]

    in_store = STEPS.index(step) >= STEPS.index("committed")
    assert (plans.digest(newest.store) == old) is not in_store
    told = verify(run, now=NOW).state
    expected = {
        "rehearsal passed": State.NOT_APPLIED,
        "preflight passed": State.NOT_APPLIED,
        "snapshot verified": State.NOT_APPLIED,
        "committed": State.AFTER_COMMIT,
        "receipt written": State.AFTER_COMMIT,
        "verified": State.APPLIED,
    }
    assert told is expected.get(step, State.BEFORE_COMMIT)
    assert (run / "receipt.json").exists() is (STEPS.index(step) > STEPS.index("committed"))
    assert files(newest) == held

    again = apply(run if in_store else file, run_dir=None if in_store else tmp_path / "again", now=NOW + 1)
    assert again.run is not None
    assert again.receipt is not None
    assert again.run.state is State.APPLIED
    assert [each.session for each in again.receipt.deleted] == ["alpha", "worker", "beta"]
    assert (Path(again.run.folder) / "receipt.json").exists()
    assert undo(Path(again.run.folder), now=NOW).state is State.UNDONE
    assert plans.digest(newest.store) == old


def begun(scene: Cleaned, plan: CleanupPlan, name: str) -> CleanupFolder:
    """The folder of a run of this plan, as it is before the change."""
    RunFolder.create(scene.folder / name, plan.envelope())
    folder = CleanupFolder(scene.folder / name)
    folder.cleanup.write_bytes(cleanup_plan.dump(plan))
    return folder


@each_case
def test_a_cleanup_is_whole_whatever_fails(tmp_path: Path, release: str, mode: str, dead: bool) -> None:
    """The n-th write, sync, truncate, open, lock or delete fails, and maybe all after it."""
    scene = cleaned(tmp_path, release)
    plans.query(scene.store, f"PRAGMA journal_mode = {mode}")
    plan = scene.plan("alpha")
    old, pristine, seen = plans.digest(scene.store), scene.store.read_bytes(), set[str]()
    folder = begun(scene, plan, "run")

    def work(injected: Faults) -> str:
        return perform(plan, scene.store, folder, folder.log(injected.reached), now=NOW).undo.digest_after

    chosen = undisturbed(tmp_path, work)
    new = plans.digest(scene.store)
    for number in chosen:
        restore(scene.store, pristine)
        folder = begun(scene, plan, f"run-{number}")
        error: Exception | None = None
        with faults(tmp_path, number, dead=dead) as injected:
            try:
                assert work(injected) == new
            except StatemendError as caught:
                error = caught
        seen.update(injected.happened[:1])
        digest = plans.digest(scene.store)
        if error is None:
            assert digest == new
        elif not isinstance(error, Undetermined):
            assert digest == old, injected.happened
        sound(scene.store, mode)
        state = verify(folder.path, now=NOW).state
        assert (digest == old) is (state in (State.NOT_APPLIED, State.BEFORE_COMMIT)), (
            injected.happened,
            error,
        )
        if digest != old:
            assert state is State.AFTER_COMMIT
            assert undo(folder.path, now=NOW).state is State.UNDONE
            assert plans.digest(scene.store) == old
    assert not injected.happened
    assert error is None
    assert seen >= {"write state.db", "open state.db", "half a write receipt.promised.json", *FAILED[mode]}
    print(f"cleanup {release} {mode}: {len(chosen) - 1} failures")


@each_case
def test_an_undo_of_a_cleanup_is_whole_whatever_fails(
    tmp_path: Path, release: str, mode: str, dead: bool
) -> None:
    scene = cleaned(tmp_path, release)
    plans.query(scene.store, f"PRAGMA journal_mode = {mode}")
    plan = scene.plan("alpha")
    old, kept = plans.digest(scene.store), begun(scene, plan, "kept")
    log = kept.log()
    new = perform(plan, scene.store, kept, log, now=NOW).undo.digest_after
    log.step("committed")
    cleaned_up, place, seen = scene.store.read_bytes(), tmp_path / "run", set[str]()
    shutil.copytree(kept.path, place)

    def work(injected: Faults) -> State:
        return undo(place, now=NOW, steps=injected.reached).state

    chosen = undisturbed(tmp_path, work)
    assert plans.digest(scene.store) == old
    for number in chosen:
        restore(scene.store, cleaned_up)
        place = tmp_path / f"run-{number}"
        shutil.copytree(kept.path, place)
        error: StatemendError | None = None
        with faults(tmp_path, number, dead=dead) as injected:
            try:
                assert work(injected) is State.UNDONE
            except StatemendError as caught:
                error = caught
        seen.update(injected.happened[:1])
        digest = plans.digest(scene.store)
        assert digest in (old, new)
        if error is None:
            assert digest == old
        elif isinstance(error, RolledBack):
            assert digest == new, injected.happened
        sound(scene.store, mode)
        assert verify(place, now=NOW).state is (State.UNDONE if digest == old else State.AFTER_COMMIT)
        assert undo(place, now=NOW).state is State.UNDONE
        assert plans.digest(scene.store) == old
    assert not injected.happened
    assert error is None
    assert seen >= {"write state.db", "open state.db", *FAILED[mode]}
    print(f"undo of a cleanup {release} {mode}: {len(chosen) - 1} failures")


# Nobody else deletes


def test_no_repair_plan_may_delete_a_session_or_a_message(tmp_path: Path) -> None:
    store = cleaned(tmp_path, "0.19.0", exported=()).store
    for table, key in (("sessions", "other"), ("messages", 1)):
        row = plans.row(store, table, "id", key) if table == "sessions" else {"id": 1}
        operation = Operation(
            kind=Kind.DELETE, table=table, key={"id": key}, before=plans.cells(row), before_digest="0" * 64
        )
        file = plans.write(plans.plan(store, plans.step(operation)), tmp_path / f"{table}.json")
        with pytest.raises(UsageError, match="only a cleanup removes rows"):
            bounds.read(file)


def test_only_the_cleanup_deletes_from_sessions_and_messages() -> None:
    """No other module holds such a statement, and no recipe makes an operation that deletes from them."""
    source = Path(statemend.__file__).parent
    deleting: dict[str, set[str]] = {}
    for path in source.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words = node.value.replace('"', "").replace("main.", "").upper().split()
                for first, second, table in zip(words, words[1:], words[2:], strict=False):
                    if (first, second) == ("DELETE", "FROM") and table in ("SESSIONS", "MESSAGES"):
                        deleting.setdefault(path.relative_to(source).as_posix(), set()).add(table)
    deleting.pop("demo/writer.py")  # it damages the home that it has just built
    assert deleting == {"repair/cleanup_fence.py": {"SESSIONS", "MESSAGES"}}
    for path in (source / "repair" / "recipes").glob("*.py"):
        text = path.read_text("utf-8")
        assert "Kind.DELETE" not in text or not {"sessions", "messages"} & _deleted_tables(ast.parse(text)), (
            path
        )


def _deleted_tables(tree: ast.AST) -> set[str]:
    """The tables of the operations with ``kind=Kind.DELETE`` in a module; what is no literal counts as
    both."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            kind, table = given.get("kind"), given.get("table")
            if isinstance(kind, ast.Attribute) and kind.attr == "DELETE":
                literal = table.value if isinstance(table, ast.Constant) else None
                found |= {literal} if isinstance(literal, str) else {"sessions", "messages"}
    return found
