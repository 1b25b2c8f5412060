"""``statemend apply``: carry out a plan, or change nothing."""

from __future__ import annotations

from pathlib import Path

import typer

from statemend.cli.options import Format, NewRun, OutcomeFormat, PlanFile

HELP = """Carry out a plan, whole, or change nothing.

Stop Hermes first: a store in use is refused. The plan is rehearsed on a private copy, a verified snapshot of
the store is taken, and then one transaction checks that every row is as the plan says, changes it, and checks
the result before it is kept. Afterwards the store is audited again. `statemend undo` takes it all back.

Everything about the run is kept in a folder beside the home (HOME.statemend/…), or in the one that --run-dir
names: plan, snapshot, undo record, journal, findings before and after. It is never deleted by statemend, and
it holds your messages: keep it as safe as the home.

Applying a plan that was applied already changes nothing. After a crash, say `statemend verify` first.

Exit codes: 0 done, 4 refused (the store is in use, or not as the plan says), 5 taken back whole, 6 committed
but not as promised (undo is offered).

\b
Examples:
  statemend apply plan.json
  statemend apply plan.json --run-dir ~/repairs/first
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("apply", help=HELP, short_help="Carry out a plan, or change nothing.")(apply)


def apply(
    plan: PlanFile,
    run_dir: NewRun = None,
    format_: OutcomeFormat = Format.TABLE,
) -> int:
    """Apply, show the outcome, and return the exit code."""
    from statemend.cli import terminal
    from statemend.cli.output import check_plan, check_run_folder
    from statemend.cli.runs import finish, following
    from statemend.repair.apply import apply as job
    from statemend.repair.plan import load

    check_plan(plan, "plan")
    read = load(plan)
    check_run_folder(run_dir, Path(read.home), Path(read.store.path))
    with following(read, run_dir), terminal.progress() as tell:
        run = job(plan, run_dir=run_dir, progress=tell)
    return finish(run, format_, unanswered=sum(choice.chosen is None for choice in read.choices))
