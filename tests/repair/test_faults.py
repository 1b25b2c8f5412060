"""Whatever fails underneath, the store is the old one or the new one, and verify says which."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.repair import plans
from tests.repair.faults import ALL, Faults, faults, undisturbed
from tests.repair.whole import restore, sound

from statemend.errors import RolledBack, StatemendError, Undetermined
from statemend.repair import bounds
from statemend.repair.perform import perform
from statemend.repair.run import RunFolder, State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

#: Each journal mode with one failure and with a disk that is dead from then on; for all, each release too.
SOME = [
    ("0.22.2", "delete", False),
    ("0.22.2", "wal", True),
    ("0.19.0", "wal", False),
    ("0.19.0", "delete", True),
]
EACH = [
    ("0.22.2", "delete"),
    ("0.22.2", "wal"),
    ("0.19.0", "delete"),
    ("0.19.0", "wal"),
    ("0.13.0", "delete"),
]
CASES = [(*case, dead) for case in EACH for dead in (False, True)] if ALL else SOME
OLD = {State.NOT_APPLIED, State.BEFORE_COMMIT, State.UNDONE}
#: What must have failed at least once, by journal mode.
FAILED = {
    "delete": {"sync state.db-journal", "write state.db-journal", "delete state.db-journal", "sync state.db"},
    "wal": {"write state.db-wal", "sync state.db-wal", "lock state.db-shm", "truncate state.db"},
}

each_case = pytest.mark.parametrize(
    ("release", "mode", "dead"),
    CASES,
    ids=[f"{release}-{mode}-{'from then on' if dead else 'once'}" for release, mode, dead in CASES],
)


@each_case
def test_apply_is_whole_whatever_fails(
    stores: Mapping[str, Path], tmp_path: Path, release: str, mode: str, dead: bool
) -> None:
    store, file = plans.mixed(tmp_path, stores[release])
    plans.query(store, f"PRAGMA journal_mode = {mode}")
    made, old, pristine = bounds.read(file), plans.digest(store), store.read_bytes()
    folder = RunFolder.create(tmp_path / "run", made)

    def work(injected: Faults) -> str:
        return perform(made, store, folder, folder.log(injected.reached), now=plans.NOW).undo.digest_after

    chosen = undisturbed(tmp_path, work)
    new, seen = plans.digest(store), set[str]()
    for number in chosen:
        restore(store, pristine)
        folder = RunFolder.create(tmp_path / f"run-{number}", made)
        error: StatemendError | None = None
        with faults(tmp_path, number, dead=dead) as injected:
            try:
                assert work(injected) == new
            except StatemendError as caught:
                error = caught
        seen.update(injected.happened[:1])
        digest = plans.digest(store)
        if error is None:
            assert digest == new
        elif not isinstance(error, Undetermined):
            assert digest == old, injected.happened
        sound(store, mode)
        state = verify(folder.path, now=plans.NOW).state
        assert (digest == old) is (state in OLD), (injected.happened, error)
        assert digest == old or state is State.AFTER_COMMIT
    assert not injected.happened
    assert error is None
    assert seen >= {"write state.db", "open state.db", *FAILED[mode]}
    assert {"half a write undo.json.new", "half a write undo.changeset", "half a write snapshot.db"} <= seen
    print(f"apply {release} {mode}: {len(chosen) - 1} failures")


@each_case
def test_undo_is_whole_whatever_fails(
    stores: Mapping[str, Path], tmp_path: Path, release: str, mode: str, dead: bool
) -> None:
    store, file = plans.mixed(tmp_path, stores[release])
    plans.query(store, f"PRAGMA journal_mode = {mode}")
    made, old = bounds.read(file), plans.digest(store)
    kept = RunFolder.create(tmp_path / "kept", made)
    log = kept.log()
    new = perform(made, store, kept, log, now=plans.NOW).undo.digest_after
    log.step("committed")
    applied, place, seen = store.read_bytes(), tmp_path / "run", set[str]()
    shutil.copytree(kept.path, place)

    def work(injected: Faults) -> State:
        return undo(place, now=plans.NOW, steps=injected.reached).state

    chosen = undisturbed(tmp_path, work)
    for number in chosen:
        restore(store, applied)
        place = tmp_path / f"run-{number}"
        shutil.copytree(kept.path, place)
        error: StatemendError | None = None
        with faults(tmp_path, number, dead=dead) as injected:
            try:
                assert work(injected) is State.UNDONE
            except StatemendError as caught:
                error = caught
        seen.update(injected.happened[:1])
        digest = plans.digest(store)
        assert digest in (old, new)
        if error is None:
            assert digest == old
        elif isinstance(error, RolledBack):
            assert digest == new, injected.happened
        sound(store, mode)
        assert verify(place, now=plans.NOW).state is (State.UNDONE if digest == old else State.AFTER_COMMIT)
        if digest == new:
            assert undo(place, now=plans.NOW).state is State.UNDONE
            assert plans.digest(store) == old
    assert not injected.happened
    assert error is None
    assert seen >= {"write state.db", "open state.db", *FAILED[mode]}
    print(f"undo {release} {mode}: {len(chosen) - 1} failures")
