"""How the verbs that act on a run show it, and which exit code its state gives."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from statemend.cli.options import Format
from statemend.errors import StatemendError

if TYPE_CHECKING:
    from statemend.repair.plan import Plan
    from statemend.repair.run import Run


class InterruptedRunError(StatemendError):
    """A change was interrupted; what became of it is in the folder of its run, if one was begun."""

    exit_code: ClassVar[int] = 130

    def __init__(self, folder: Path | None) -> None:
        super().__init__(
            "interrupted before anything was changed"
            if folder is None
            else f"interrupted; `{shlex.join(['statemend', 'verify', str(folder)])}` tells what became of it"
        )


@contextmanager
def telling(folder: Path) -> Iterator[None]:
    """An interrupt while a run is carried on tells where it can be asked for."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise InterruptedRunError(folder) from error


@contextmanager
def following(plan: Plan, run_dir: Path | None) -> Iterator[None]:
    """An interrupt while the plan is carried out tells which run it broke off."""
    from statemend.repair.run import known_folders

    before = {run_dir} if run_dir is not None and run_dir.exists() else set()
    before |= set(known_folders(plan))
    try:
        yield
    except KeyboardInterrupt as error:
        begun = [run_dir] if run_dir is not None and run_dir.exists() else []
        begun += known_folders(plan)
        raise InterruptedRunError(next((each for each in begun if each not in before), None)) from error


def finish(run: Run, format_: Format, *, unanswered: int = 0) -> int:
    """Show a run, and return the exit code of its state. ``unanswered`` counts the choices of its plan."""
    from statemend.cli.terminal import answer
    from statemend.report.run_table import of_run

    answer(run, format_, lambda: of_run(run, unanswered=unanswered))
    return exit_code(run)


def exit_code(run: Run) -> int:
    """0 when the store is as it should be; otherwise what holds of it."""
    from statemend.errors import RolledBack, Undetermined, VerificationFailed
    from statemend.repair.run import State

    return {
        State.BEFORE_COMMIT: RolledBack.exit_code,
        State.AFTER_COMMIT: VerificationFailed.exit_code,
        State.FAILED: VerificationFailed.exit_code,
        State.CHANGED: Undetermined.exit_code,
    }.get(run.state, 0)
