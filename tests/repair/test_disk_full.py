"""However much room there is, the store is the old one or the new one."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.repair import plans

from statemend.errors import Refused, StatemendError
from statemend.repair import bounds, preflight
from statemend.repair.apply import apply
from statemend.repair.perform import perform
from statemend.repair.run import RunFolder, State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

PAGE = 4096


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may grow beyond ``size`` bytes meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def grown(tmp_path: Path, release: Path) -> tuple[Path, Path]:
    """A store that has to grow when its plan is carried out."""
    store = plans.home_with(tmp_path, release)
    rows = [
        plans.insert("state_meta", "key", {"key": f"k{number}", "value": "x" * 3000}) for number in range(40)
    ]
    return store, plans.write(plans.plan(store, plans.step(*rows)), tmp_path / "plan.json")


def test_a_change_that_finds_no_room_is_taken_back(stores: Mapping[str, Path], tmp_path: Path) -> None:
    store, file = grown(tmp_path, stores["0.22.2"])
    made, old, pristine = bounds.read(file), plans.digest(store), store.read_bytes()
    outcomes = set()
    sizes = [0, 1, 100, 1000, *range(PAGE, len(pristine) + 60 * PAGE, 5 * PAGE)]
    for size in sizes:
        store.write_bytes(pristine)
        folder = RunFolder.create(tmp_path / f"run-{size}", made)
        done = None
        with suppress(StatemendError), room_for(size):
            done = perform(made, store, folder, folder.log(), now=plans.NOW)
        if done is None:
            assert plans.digest(store) == old, size
            assert verify(folder.path, now=plans.NOW).state in (State.NOT_APPLIED, State.BEFORE_COMMIT)
        else:
            assert plans.digest(store) == done.undo.digest_after
        outcomes.add((done is not None, (folder.path / "snapshot.db").exists()))
        assert [path.name for path in store.parent.iterdir()] == ["state.db"]
    assert outcomes == {(False, False), (False, True), (True, True)}


def test_an_undo_that_finds_no_room_is_taken_back(stores: Mapping[str, Path], tmp_path: Path) -> None:
    store, file = grown(tmp_path, stores["0.22.2"])
    old = plans.digest(store)
    run = apply(file, run_dir=tmp_path / "run", now=plans.NOW)
    new = plans.digest(store)
    for size in range(0, store.stat().st_size, 8 * PAGE):
        with pytest.raises(StatemendError), room_for(size):
            undo(Path(run.folder), now=plans.NOW)
        assert plans.digest(store) == new
        assert verify(Path(run.folder), now=plans.NOW).state is State.APPLIED
    assert undo(Path(run.folder), now=plans.NOW).state is State.UNDONE
    assert plans.digest(store) == old


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
