"""How the verbs that act on a run show it, and which exit code its state gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statemend.cli.output import complain
from statemend.cli.rules import Format

if TYPE_CHECKING:
    from statemend.repair.run import Run


def finish(run: Run, format_: Format) -> int:
    """Show a run, and return the exit code of its state."""
    if format_ is Format.JSON:
        from statemend.cli.output import emit
        from statemend.report.json import dump

        emit(dump(run))
    else:
        from statemend.cli.terminal import show
        from statemend.report.run_table import of_run

        show(of_run(run))
    return exit_code(run)


def interrupted() -> int:
    """Say that a change was interrupted, and how to learn what became of it; returns the exit code."""
    return complain("interrupted; `statemend verify` with the folder of the run tells what became of it", 130)


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
