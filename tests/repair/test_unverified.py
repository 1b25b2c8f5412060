"""What fails before the change leaves no change, and what fails behind its commit never loses it: it is told
as committed and not verified, and the next call completes it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.repair import cleanups, plans
from tests.repair.cleanups import at, cleaned
from tests.repair.faults import ALL, Faults, faults, undisturbed
from tests.repair.whole import restore, sound

from statemend.errors import StatemendError, VerificationFailed
from statemend.repair import cleanup
from statemend.repair.apply import apply
from statemend.repair.run import State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

OLD = {State.NOT_APPLIED, State.BEFORE_COMMIT}


def around(injected: Faults) -> Callable[[str], None]:
    """A hook that leaves out the change itself, which other tests disturb, and has the reads behind its
    commit fail too: those of the audit that verifies it."""

    def reached(step: str) -> None:
        injected.reached(step)
        if step == "preflight passed":
            injected.armed = False
        if step == "committed":
            injected.armed = injected.reads = True

    return reached


def disturb(
    store: Path, places: Path, mode: str, *, dead: bool, carry_out: Callable[[Path, Any], State], now: float
) -> int:
    """Have each file operation around the change fail; how many failures the commit had behind it.
    ``carry_out`` does the whole verb, with a run folder and a hook for its steps."""
    old, pristine = plans.digest(store), store.read_bytes()
    chosen = undisturbed(places, lambda counted: carry_out(places / "run", around(counted)), ends=True)
    new, behind = plans.digest(store), 0
    for number in chosen:
        restore(store, pristine)
        run = places / f"run-{number}"
        error: StatemendError | None = None
        with faults(places, number, dead=dead) as injected:
            try:
                assert carry_out(run, around(injected)) is State.APPLIED
            except StatemendError as caught:
                error = caught
        digest = plans.digest(store)
        sound(store, mode)
        if digest == old:
            assert error is not None
            assert not isinstance(error, VerificationFailed)
            if (run / "plan.json").exists():
                assert verify(run, now=now).state in OLD
            run = run.with_name(f"{run.name}-again")
        else:
            assert digest == new
            behind += bool(injected.happened)
            if error is not None:
                assert isinstance(error, VerificationFailed), (injected.happened, error)
                assert "is committed and could not be verified" in str(error), (injected.happened, error)
            assert verify(run, now=now).state in (State.AFTER_COMMIT, State.APPLIED), injected.happened
        assert carry_out(run, None) is State.APPLIED, injected.happened
        assert plans.digest(store) == new
        assert undo(run, now=now).state is State.UNDONE
        assert plans.digest(store) == old
        shutil.rmtree(run)
    assert error is None
    assert not injected.happened
    print(f"{len(chosen) - 1} failures, {behind} of them behind the commit")
    return behind


@pytest.mark.parametrize("dead", [False, True] if ALL else [False])
def test_a_repair_is_told_and_completed(
    stores: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dead: bool
) -> None:
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    plans.query(store, "PRAGMA journal_mode = wal")
    once(monkeypatch, "statemend.repair.apply.rehearse_plan")

    def carry_out(run: Path, steps: Any) -> State:
        return apply(file, run_dir=run, now=plans.NOW, steps=steps).state

    assert disturb(store, tmp_path, "wal", dead=dead, carry_out=carry_out, now=plans.NOW) > 10


@pytest.mark.parametrize("dead", [False, True] if ALL else [True])
def test_a_cleanup_is_told_and_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dead: bool) -> None:
    scene = cleaned(tmp_path, "0.22.2")
    plans.query(scene.store, "PRAGMA journal_mode = wal")
    file = scene.file("alpha")
    once(monkeypatch, "statemend.repair.cleanup._rehearse")

    def carry_out(run: Path, steps: Any) -> State:
        done = cleanup.apply(file, run_dir=run, now=cleanups.NOW, steps=steps)
        assert done.run is not None
        assert done.receipt is not None
        assert (run / "receipt.json").is_file()
        return done.run.state

    assert disturb(scene.store, tmp_path, "wal", dead=dead, carry_out=carry_out, now=cleanups.NOW) > 10


def once(patch: pytest.MonkeyPatch, name: str) -> None:
    """Rehearse once: the store is the same each time, and so is what comes of it."""
    module, _, function = name.rpartition(".")
    real, found = getattr(__import__(module, fromlist=[function]), function), []

    def rehearse(*arguments: Any, **named: Any) -> Any:
        if not found:
            found.append(real(*arguments, **named))
        return found[0]

    patch.setattr(name, rehearse)


ORPHAN = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('elsewhere', 'user', 'x', 1.5)"


def fail_at(step: str) -> Callable[[str], None]:
    """A hook that finds the disk failing once the step is reached."""

    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    return at(step, fail)


def test_a_repair_is_completed_from_its_folder(stores: Mapping[str, Path], tmp_path: Path) -> None:
    _, file = plans.mixed(tmp_path, stores["0.22.2"])
    run = tmp_path / "elsewhere" / "run"
    with pytest.raises(VerificationFailed, match=f"could not be verified.*statemend apply {run}/plan.json`"):
        apply(file, run_dir=run, now=plans.NOW, steps=fail_at("committed"))
    done = apply(run / "plan.json", now=plans.NOW)
    assert (done.state, done.folder) == (State.APPLIED, str(run))
    assert verify(run, now=plans.NOW).state is State.APPLIED


def test_a_cleanup_is_completed_from_its_folder(tmp_path: Path) -> None:
    scene = cleaned(tmp_path, "0.22.2")
    run = tmp_path / "elsewhere" / "run"
    with pytest.raises(VerificationFailed, match=f"could not be verified.*cleanup apply {run}/cleanup.json`"):
        cleanup.apply(scene.file("beta"), run_dir=run, now=cleanups.NOW, steps=fail_at("committed"))
    done = cleanup.apply(run / "cleanup.json", now=cleanups.NOW)
    assert done.run is not None
    assert (done.run.state, done.run.folder) == (State.APPLIED, str(run))
    assert verify(run, now=cleanups.NOW).state is State.APPLIED


def test_a_repair_is_not_blamed_for_what_came_before_its_fence(
    stores: Mapping[str, Path], tmp_path: Path
) -> None:
    """Another process writes after the rehearsal looked at the store, and is gone before the snapshot."""
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    hook = at("rehearsal passed", lambda: plans.change(store, ORPHAN))
    run = apply(file, run_dir=tmp_path / "run", now=plans.NOW, steps=hook)
    assert (run.state, run.new) == (State.APPLIED, ())
    assert verify(tmp_path / "run", now=plans.NOW).state is State.APPLIED


def test_a_cleanup_is_not_blamed_for_what_came_before_its_fence(tmp_path: Path) -> None:
    scene = cleaned(tmp_path, "0.22.2")
    hook = at("rehearsal passed", lambda: plans.change(scene.store, ORPHAN))
    done = cleanup.apply(scene.file("beta"), run_dir=tmp_path / "run", now=cleanups.NOW, steps=hook)
    assert done.run is not None
    assert (done.run.state, done.run.new) == (State.APPLIED, ())
    assert verify(tmp_path / "run", now=cleanups.NOW).state is State.APPLIED


def test_a_failed_verification_is_made_again(stores: Mapping[str, Path], tmp_path: Path) -> None:
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    run, gone = tmp_path / "run", "DELETE FROM messages WHERE session_id = 'elsewhere'"
    with pytest.raises(VerificationFailed, match="is new"):
        apply(file, run_dir=run, now=plans.NOW, steps=at("committed", lambda: plans.change(store, ORPHAN)))
    with pytest.raises(VerificationFailed, match="is new"):
        apply(file, run_dir=run, now=plans.NOW)
    plans.change(store, gone)
    assert apply(file, run_dir=run, now=plans.NOW).state is State.APPLIED
    assert verify(run, now=plans.NOW).state is State.APPLIED
