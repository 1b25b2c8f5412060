"""How the verbs that act on a run show it, and which exit code its state gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from statemend.cli.options import Format
from statemend.errors import StatemendError

if TYPE_CHECKING:
    from statemend.repair.run import Run


class InterruptedRunError(StatemendError):
    """A change was interrupted; what became of it is in the folder of its run."""

    exit_code: ClassVar[int] = 130

    def __init__(self) -> None:
        super().__init__("interrupted; `statemend verify` with the folder of the run tells what became of it")


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
