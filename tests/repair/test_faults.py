"""Whatever fails underneath, the store is the old one or the new one, and verify says which."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.repair import plans
from tests.repair.faults import faults

from statemend.errors import RolledBack, StatemendError, Undetermined
from statemend.repair import bounds
from statemend.repair.perform import perform
from statemend.repair.run import RunFolder, State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

#: Every operation fails once with the newest release, and each seventh with older ones.
RELEASES = [("0.22.2", 1), ("0.19.0", 7), ("0.13.0", 7)]
OLD = {State.NOT_APPLIED, State.BEFORE_COMMIT, State.UNDONE}


def sound(store: Path) -> None:
    """What any program that opens the store next must find."""
    with closing(apsw.Connection(str(store))) as plain:
        for table in ("sessions", "messages", "state_meta"):
            assert plain.execute(f"PRAGMA main.quick_check({table})").get == "ok"
        plain.execute("INSERT INTO messages_fts(messages_fts, rank) VALUES ('integrity-check', 1)")
    left = {path.name for path in store.parent.iterdir()}
    assert left <= {"state.db", "state.db.statemend-lock", "state.db-journal"}
    journal = store.with_name("state.db-journal")
    assert not journal.exists() or not journal.read_bytes()[:1].strip(
        b"\0"
    )  # nothing waits to be rolled back


@pytest.mark.parametrize("dead", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(("release", "stride"), RELEASES)
def test_apply_is_whole_whatever_fails(
    stores: Mapping[str, Path], tmp_path: Path, release: str, stride: int, dead: bool
) -> None:
    origin, file = plans.mixed(tmp_path, stores[release])
    made, old = bounds.read(file), plans.digest(origin)
    pristine = origin.read_bytes()
    seen, new = set(), None
    for number in itertools.count(1, stride):
        origin.write_bytes(pristine)
        folder = RunFolder.create(tmp_path / f"run-{number}", made)
        error: StatemendError | None = None
        with faults(tmp_path, number, dead=dead) as injected:
            try:
                done = perform(made, origin, folder, folder.log(), now=plans.NOW)
                new = done.undo.digest_after
            except StatemendError as caught:
                error = caught
        seen.update(injected.happened[:1])
        digest = plans.digest(origin)
        if error is None:
            assert digest == new
        elif not isinstance(error, Undetermined):
            assert digest == old, injected.happened
        sound(origin)
        state = verify(folder.path, now=plans.NOW).state
        assert (digest == old) is (state in OLD), (injected.happened, error)
        assert digest == old or state is State.AFTER_COMMIT
        if not injected.happened:
            break
    assert error is None
    if stride == 1:
        assert {"write state.db", "sync state.db", "write state.db-journal", "open state.db"} <= seen
        assert {"half a write undo.json.new", "half a write undo.changeset", "write snapshot.db"} <= seen


@pytest.mark.parametrize("dead", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(("release", "stride"), RELEASES)
def test_undo_is_whole_whatever_fails(
    stores: Mapping[str, Path], tmp_path: Path, release: str, stride: int, dead: bool
) -> None:
    store, file = plans.mixed(tmp_path, stores[release])
    made, old = bounds.read(file), plans.digest(store)
    kept = RunFolder.create(tmp_path / "kept", made)
    log = kept.log()
    new = perform(made, store, kept, log, now=plans.NOW).undo.digest_after
    log.step("committed")
    applied, seen = store.read_bytes(), set()
    for number in itertools.count(1, stride):
        store.write_bytes(applied)
        place = tmp_path / f"run-{number}"
        shutil.copytree(kept.path, place)
        error: StatemendError | None = None
        with faults(tmp_path, number, dead=dead) as injected:
            try:
                run = undo(place, now=plans.NOW)
            except StatemendError as caught:
                error = caught
        seen.update(injected.happened[:1])
        digest = plans.digest(store)
        assert digest in (old, new)
        if error is None:
            assert run.state is State.UNDONE
            assert digest == old
        elif isinstance(error, RolledBack):
            assert digest == new, injected.happened
        sound(store)
        assert verify(place, now=plans.NOW).state is (State.UNDONE if digest == old else State.AFTER_COMMIT)
        if digest == new:
            assert undo(place, now=plans.NOW).state is State.UNDONE
            assert plans.digest(store) == old
        if not injected.happened:
            break
    assert error is None
    if stride == 1:
        assert {"write state.db", "sync state.db", "delete state.db-journal"} <= seen
