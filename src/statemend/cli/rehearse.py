"""``statemend rehearse``: try a plan on a private copy."""

from __future__ import annotations

import typer

from statemend.cli.options import Format, OutcomeFormat, PlanFile

HELP = """Try a plan on a private copy of its store. The store itself is only read.

The whole plan is applied to the copy and verified, the copy is audited again, and then everything is taken
back: the copy must be as it was, row by row. `statemend apply` does the same first, by itself.

Exit codes: 0 it passed, 4 the plan does not fit the store any more, 5 it did not pass.

\b
Example:
  statemend rehearse plan.json
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("rehearse", help=HELP, short_help="Try a plan on a private copy.")(rehearse)


def rehearse(
    plan: PlanFile,
    format_: OutcomeFormat = Format.TABLE,
) -> int:
    """Rehearse, show the outcome, and return the exit code."""
    from statemend.cli import terminal
    from statemend.cli.output import check_plan
    from statemend.errors import RolledBack
    from statemend.repair.rehearse import rehearse as job
    from statemend.report.run_table import of_rehearsal

    check_plan(plan, "plan")
    with terminal.progress() as tell:
        outcome = job(plan, progress=tell)
    terminal.answer(outcome, format_, lambda: of_rehearsal(outcome, str(plan)))
    return 0 if outcome.passed else RolledBack.exit_code
