"""Cleans up in a process that kills itself at a named step: ``PLAN STEP RUN``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.repair.cleanups import NOW

from statemend.repair.cleanup import apply


def main(path: str, step: str, run: str) -> None:
    """Kill this process as soon as ``step`` is reached; print every step before."""

    def reached(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)
        print(name, flush=True)

    apply(Path(path), run_dir=Path(run), now=NOW, steps=reached)


if __name__ == "__main__":
    main(*sys.argv[1:])
