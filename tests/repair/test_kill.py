"""A process that is killed at any step leaves a whole store, and a run that can be told and finished."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.repair import plans

from statemend.repair.apply import apply
from statemend.repair.run import State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

APPLY = (
    "rehearsal passed",
    "preflight passed",
    "snapshot verified",
    "fence entered",
    "plan fresh",
    "statements carried out",
    "changed and proven",
    "undo record written",
    "committed",
    "verified",
)
UNDO = (
    "undo begun",
    "undo snapshot verified",
    "undo fence entered",
    "undo proven",
    "undone",
)


def killed(verb: str, path: Path, step: str, run: Path) -> tuple[str, ...]:
    """The steps that were reached before the process died at ``step``."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.repair.killed", verb, str(path), step, str(run)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return tuple(done.stdout.splitlines())


def journal_mode(store: Path, mode: str) -> None:
    with closing(apsw.Connection(str(store))) as plain:
        plain.pragma("journal_mode", mode)


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("step", APPLY)
def test_killed_in_apply(stores: Mapping[str, Path], tmp_path: Path, step: str, mode: str) -> None:
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    journal_mode(store, mode)
    old, run = plans.digest(store), tmp_path / "run"
    assert killed("apply", file, step, run) == APPLY[: APPLY.index(step)]

    told = verify(run, now=plans.NOW)
    in_store = APPLY.index(step) >= APPLY.index("committed")
    assert (plans.digest(store) == old) is not in_store
    expected = {
        "rehearsal passed": State.NOT_APPLIED,
        "preflight passed": State.NOT_APPLIED,
        "snapshot verified": State.NOT_APPLIED,
        "committed": State.AFTER_COMMIT,
        "verified": State.APPLIED,
    }
    assert told.state is expected.get(step, State.BEFORE_COMMIT)
    assert "statemend " in told.advice

    again = apply(file, run_dir=run if in_store else tmp_path / "again", now=plans.NOW + 1)
    assert again.state is State.APPLIED
    assert verify(Path(again.folder), now=plans.NOW).state is State.APPLIED
    assert undo(Path(again.folder), now=plans.NOW).state is State.UNDONE
    assert plans.digest(store) == old
    assert plans.query(store, "PRAGMA journal_mode") == [(mode,)]


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("step", UNDO)
def test_killed_in_undo(stores: Mapping[str, Path], tmp_path: Path, step: str, mode: str) -> None:
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    journal_mode(store, mode)
    old, run = plans.digest(store), tmp_path / "run"
    apply(file, run_dir=run, now=plans.NOW)
    new = plans.digest(store)
    assert killed("undo", file, step, run) == UNDO[: UNDO.index(step)]

    told = verify(run, now=plans.NOW)
    if step == "undone":
        assert plans.digest(store) == old
        assert told.state is State.UNDONE
    else:
        assert plans.digest(store) == new
        assert told.state is State.APPLIED
    assert undo(run, now=plans.NOW).state is State.UNDONE
    assert plans.digest(store) == old
    assert shutil.rmtree(run) is None


def test_killed_between_commit_and_its_line(stores: Mapping[str, Path], tmp_path: Path) -> None:
    store, file = plans.mixed(tmp_path, stores["0.22.2"])
    old, run = plans.digest(store), tmp_path / "run"
    killed("apply", file, "committed", run)
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (run / "journal.jsonl").write_bytes(b"".join(lines[:-1]) + lines[-1][:9])
    assert verify(run, now=plans.NOW).state is State.AFTER_COMMIT
    assert undo(run, now=plans.NOW).state is State.UNDONE
    assert plans.digest(store) == old
    assert verify(run, now=plans.NOW).state is State.UNDONE
