"""Applies or undoes in a process that kills itself at a named step: ``apply|undo PLAN STEP RUN``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.repair.plans import NOW

from statemend.repair.apply import apply
from statemend.repair.undo import undo


def main(verb: str, path: str, step: str, run: str) -> None:
    """Kill this process as soon as ``step`` is reached; print every step before."""

    def reached(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)
        print(name, flush=True)

    if verb == "apply":
        apply(Path(path), run_dir=Path(run), now=NOW, steps=reached)
    else:
        undo(Path(run), now=NOW, steps=reached)


if __name__ == "__main__":
    main(*sys.argv[1:])
