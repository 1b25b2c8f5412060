"""Cuts the power at each operation in turn: ``apply|undo RELEASE FOLDER``. One line of JSON for each cut.

A child of this process kills itself right before its n-th write, sync, truncate, open, lock or delete.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from tests.repair import plans
from tests.repair.faults import ALL, Faults, faults

from statemend.repair import bounds
from statemend.repair.perform import perform
from statemend.repair.run import RunFolder
from statemend.repair.undo import undo
from statemend.repair.verify import verify


def cut(made: Faults) -> None:
    """Have the process die instead of seeing an error."""
    due = made.due

    def die(what: str, path: object) -> bool:
        if due(what, path):
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    made.due = die  # type: ignore[method-assign]


def in_child(folder: Path, at: int, work: Any) -> bool:
    """Do the work in a child that dies at its ``at``-th operation; whether it came through."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) == 0
    with faults(folder, at) as made:
        cut(made)
        work()
    os._exit(0)


def main(verb: str, release: str, place: str) -> None:
    """Cut at 1, 4, 7 … (all of them: 1, 2, 3 …) until nothing is cut any more."""
    folder = Path(place)
    store, file = plans.mixed(folder, Path(release))
    made, old = bounds.read(file), plans.digest(store)
    kept = RunFolder.create(folder / "kept", made)
    if verb == "undo":
        log = kept.log()
        perform(made, store, kept, log, now=plans.NOW)
        log.step("committed")
    pristine = store.read_bytes()
    for number in itertools.count(1, 1 if ALL else 3):
        store.with_name("state.db-journal").unlink(missing_ok=True)
        store.write_bytes(pristine)
        run = RunFolder(folder / f"run-{number}")
        shutil.copytree(kept.path, run.path)

        def work(run: RunFolder = run) -> None:
            if verb == "undo":
                undo(run.path, now=plans.NOW)
            else:
                perform(made, store, run, run.log(), now=plans.NOW)

        through = in_child(folder, number, work)
        digest = plans.digest(store)
        state = verify(run.path, now=plans.NOW).state if verb == "apply" or digest == old else None
        plans.query(store, "SELECT 1 FROM sessions")  # rolls back what waits for it
        told = {
            "through": through,
            "digest": digest,
            "old": old,
            "state": state,
            "after": plans.digest(store),
        }
        told["broken"] = len(plans.query(store, "PRAGMA foreign_key_check"))
        told["check"] = plans.query(store, "PRAGMA main.quick_check(messages)")[0][0]
        print(json.dumps(told), flush=True)
        shutil.rmtree(run.path)
        if through:
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
