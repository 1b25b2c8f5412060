"""However much room there is, the store is the old one or the new one."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.repair import cleanups, plans
from tests.repair.faults import ALL
from tests.repair.whole import restore, sound

from statemend.errors import Refused, StatemendError
from statemend.repair import bounds, cleanup, cleanup_plan, preflight
from statemend.repair.apply import apply
from statemend.repair.cleanup_perform import CleanupFolder
from statemend.repair.cleanup_perform import perform as perform_cleanup
from statemend.repair.perform import perform
from statemend.repair.run import RunFolder, State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

PAGE = 4096

each_mode = pytest.mark.parametrize("mode", ["delete", "wal"])
each_moment = pytest.mark.parametrize("later", [False, True], ids=["at the start", "behind the snapshot"])


def sizes(most: int) -> list[int]:
    """The sizes in bytes that files may have: every page up to the ``most``, by default each ninth."""
    return [0, 1, 100, 1000, *range(PAGE, most, PAGE if ALL else 9 * PAGE)]


@contextmanager
def room(size: int, *, later: bool = False) -> Iterator[Callable[[str], None]]:
    """No file may grow beyond ``size`` bytes meanwhile, or ``later``, once the hook that this yields is told
    that the snapshot is there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def run_out() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

    if not later:
        run_out()
    try:
        yield cleanups.at("snapshot verified", run_out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def grown(tmp_path: Path, release: Path) -> tuple[Path, Path]:
    """A store that has to grow when its plan is carried out."""
    store = plans.home_with(tmp_path, release)
    rows = [
        plans.insert("state_meta", "key", {"key": f"k{number}", "value": "x" * 3000}) for number in range(40)
    ]
    return store, plans.write(plans.plan(store, plans.step(*rows)), tmp_path / "plan.json")


@each_moment
@each_mode
def test_a_change_that_finds_no_room_is_taken_back(
    stores: Mapping[str, Path], tmp_path: Path, mode: str, later: bool
) -> None:
    store, file = grown(tmp_path, stores["0.22.2"])
    plans.query(store, f"PRAGMA journal_mode = {mode}")
    made, old, pristine = bounds.read(file), plans.digest(store), store.read_bytes()
    outcomes = set()
    for size in sizes(len(pristine) + 60 * PAGE):
        restore(store, pristine)
        folder = RunFolder.create(tmp_path / f"run-{size}", made)
        done = None
        with suppress(StatemendError), room(size, later=later) as hook:
            done = perform(made, store, folder, folder.log(hook), now=plans.NOW)
        if done is None:
            assert plans.digest(store) == old, size
            assert verify(folder.path, now=plans.NOW).state in (State.NOT_APPLIED, State.BEFORE_COMMIT)
        else:
            assert plans.digest(store) == done.undo.digest_after
        outcomes.add((done is not None, (folder.path / "snapshot.db").exists()))
        sound(store, mode)
        assert [path.name for path in store.parent.iterdir()] == ["state.db"]
    # A commit to a write-ahead log needs less room than the snapshot before it.
    assert {(False, later), (True, True)} <= outcomes


@each_mode
def test_an_undo_that_finds_no_room_is_taken_back(
    stores: Mapping[str, Path], tmp_path: Path, mode: str
) -> None:
    store, file = grown(tmp_path, stores["0.22.2"])
    plans.query(store, f"PRAGMA journal_mode = {mode}")
    old = plans.digest(store)
    run = apply(file, run_dir=tmp_path / "run", now=plans.NOW)
    new = plans.digest(store)
    for size in range(0, store.stat().st_size, PAGE if ALL else 16 * PAGE):
        with pytest.raises(StatemendError), room(size):
            undo(Path(run.folder), now=plans.NOW)
        assert plans.digest(store) == new
        assert verify(Path(run.folder), now=plans.NOW).state is State.APPLIED
    assert undo(Path(run.folder), now=plans.NOW).state is State.UNDONE
    assert plans.digest(store) == old


@each_moment
@each_mode
def test_a_cleanup_that_finds_no_room_is_taken_back(tmp_path: Path, mode: str, later: bool) -> None:
    scene = cleanups.cleaned(tmp_path, "0.22.2")
    plans.query(scene.store, f"PRAGMA journal_mode = {mode}")
    plan = scene.plan("alpha", "beta")
    old, pristine, outcomes = plans.digest(scene.store), scene.store.read_bytes(), set()
    for size in sizes(len(pristine) + 60 * PAGE):
        restore(scene.store, pristine)
        RunFolder.create(tmp_path / f"run-{size}", plan.envelope())
        folder = CleanupFolder(tmp_path / f"run-{size}")
        folder.cleanup.write_bytes(cleanup_plan.dump(plan))
        done = None
        with suppress(StatemendError), room(size, later=later) as hook:
            done = perform_cleanup(plan, scene.store, folder, folder.log(hook), now=cleanups.NOW)
        state = verify(folder.path, now=cleanups.NOW).state
        digest = plans.digest(scene.store)
        sound(scene.store, mode)
        if done is None:
            assert digest == old, size
            assert state in (State.NOT_APPLIED, State.BEFORE_COMMIT)
        else:
            assert digest == done.undo.digest_after
            assert state is State.AFTER_COMMIT
            assert undo(folder.path, now=cleanups.NOW).state is State.UNDONE
            assert plans.digest(scene.store) == old
        outcomes.add((done is not None, (folder.path / "snapshot.db").exists()))
    assert {(False, later), (True, True)} <= outcomes


@each_mode
def test_an_undo_of_a_cleanup_that_finds_no_room_is_taken_back(tmp_path: Path, mode: str) -> None:
    scene = cleanups.cleaned(tmp_path, "0.22.2")
    plans.query(scene.store, f"PRAGMA journal_mode = {mode}")
    old, run, undone = plans.digest(scene.store), tmp_path / "run", 0
    cleanup.apply(scene.file("alpha", "beta"), run_dir=run, now=cleanups.NOW)
    new, cleaned_up = plans.digest(scene.store), scene.store.read_bytes()
    for size in sizes(len(cleaned_up) + 60 * PAGE):
        restore(scene.store, cleaned_up)
        place = tmp_path / f"run-{size}"
        shutil.copytree(run, place)
        with suppress(StatemendError), room(size):
            undo(place, now=cleanups.NOW)
        digest = plans.digest(scene.store)
        sound(scene.store, mode)
        assert digest in (old, new)
        undone += digest == old
        assert verify(place, now=cleanups.NOW).state is (State.UNDONE if digest == old else State.APPLIED)
        assert undo(place, now=cleanups.NOW).state is State.UNDONE
        assert plans.digest(scene.store) == old
    assert 0 < undone < len(sizes(len(cleaned_up) + 60 * PAGE))


def test_too_little_room_is_refused_with_numbers(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, file = grown(tmp_path, stores["0.22.2"])
    usage = preflight.shutil.disk_usage(tmp_path)
    before = store.read_bytes()
    folder = RunFolder.create(tmp_path / "run", bounds.read(file))
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda _: usage._replace(free=1_234_567))
    with pytest.raises(Refused, match=r"need [\d,]{10,} bytes and 1,234,567 are free"):
        perform(bounds.read(file), store, folder, folder.log(), now=plans.NOW)
    assert store.read_bytes() == before
