"""``statemend cleanup``: delete sessions that a file preserves whole, and collapse multiplied copies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from statemend.cli.options import Format, Home, NewRun, OutcomeFormat, PlanFormat, ReplacePlan
from statemend.cli.output import only_help

HELP = """Delete sessions that a file preserves whole, or copies of rows. Separate from repairs, and last.

`cleanup plan` says what would go: each session with the subagents that go with it, the children that lose
their parent link, and the file that holds every row. `cleanup apply` deletes them, in one transaction that
compares each session with its file once more. `statemend undo` takes it back. With --collapse no session
goes, only archived rows that repeat others of their session.

\b
Examples:
  statemend cleanup plan ~/.hermes --session 20260801_090000_aaaaaa --artifact ~/exports -o cleanup.json
  statemend cleanup apply cleanup.json
"""

PLAN_HELP = """Plan to delete sessions, or with --collapse copies of rows. Nothing is changed.

Only a JSONL export of every row licenses a deletion, one file for each session, as `statemend export` writes
it. It is compared with the store row by row, column by column, now and again when the plan is applied.
Markdown, HTML, prompts, masked or combined files never license anything.

A session is kept, and the reason given, when it was never ended or went on after its end, when a chat is
still routed to it, when a turn lease or compression lock on its conversation or a subagent of it is live, or
when a file is missing or incomplete for it or for a subagent that would go with it. --older-than also keeps
what is pinned, and what goes on in a session that stays. The others are planned.

--collapse plans for the archived rows that compaction multiplied (rule MSG003), in the sessions named or
else in all that the rule finds. A row goes only while one that holds the same in every column stays in the
session, and what a person sees and what the model reads stay row for row. So no file is asked for, and a
session that goes on may be among them; one with a live lease is kept as it is.

Exit codes: 0 every session is planned, 4 some are kept.

\b
Examples:
  statemend export ~/.hermes 20260801_090000_aaaaaa -o ~/exports
  statemend cleanup plan ~/.hermes --session 20260801_090000_aaaaaa --artifact ~/exports -o cleanup.json
  statemend cleanup plan ~/.hermes --older-than 180 --artifact ~/exports -o cleanup.json
  statemend cleanup plan ~/.hermes --collapse -o cleanup.json
"""

APPLY_HELP = """Delete what a cleanup plan names, or change nothing.

PLAN is a file that `statemend cleanup plan` wrote, or the folder of a cleanup that broke off. Stop Hermes
first: a store in use is refused, and so is one with a repair that is not verified. The deletion is rehearsed
on a private copy and undone there; a verified snapshot is taken; then one transaction checks everything
again, deletes, and proves that nothing else changed. A session that changed since it was planned is kept, and
the others go.

Plan, snapshot, undo record and receipt.json are kept in a folder beside the home (HOME.statemend/…), or in
the one that --run-dir names. It holds your messages: keep it as safe as the home. The files that license the
deletion are not copied there: keep them.

Exit codes: 0 all deleted, 4 some or all are kept (or the store is in use), 5 taken back whole, 6 committed
but not as promised (undo is offered).

\b
Example:
  statemend cleanup apply cleanup.json
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    group = typer.Typer(help=HELP, callback=only_help, invoke_without_command=True, rich_markup_mode=None)
    group.command("plan", help=PLAN_HELP, short_help="Plan to delete sessions, or copies.")(plan)
    group.command("apply", help=APPLY_HELP, short_help="Delete what a cleanup plan names.")(apply)
    app.add_typer(group, name="cleanup", short_help="Delete sessions that a file preserves whole.")


def plan(
    home: Home,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="PLAN", help="Write the plan here, for you alone.")
    ],
    sessions: Annotated[
        list[str] | None,
        typer.Option("--session", metavar="ID", help="A session, or a beginning of its id. Repeatable."),
    ] = None,
    older_than: Annotated[
        float | None,
        typer.Option("--older-than", metavar="DAYS", help="Every session that ended longer ago."),
    ] = None,
    artifacts: Annotated[
        list[Path] | None,
        typer.Option("--artifact", metavar="DIR", help="A folder or file with exports. Repeatable."),
    ] = None,
    collapse: Annotated[
        bool, typer.Option("--collapse", help="Delete no session, only rows that repeat others.")
    ] = False,
    after: Annotated[
        list[Path] | None,
        typer.Option("--after", metavar="RUN", help="A repair elsewhere, to be verified first. Repeatable."),
    ] = None,
    format_: PlanFormat = Format.TABLE,
    force: ReplacePlan = False,
) -> int:
    """Plan, write the plan, show it, and return the exit code."""
    from statemend.cli import output as out
    from statemend.cli import terminal
    from statemend.cli.profiles import say_alone
    from statemend.errors import UsageError
    from statemend.evidence.inventory import find_home
    from statemend.repair.cleanup_planner import make_cleanup_plan
    from statemend.repair.collapse_planner import make_collapse_plan
    from statemend.report.json import dump

    if collapse and (older_than is not None or artifacts):
        raise UsageError("--collapse takes sessions by --session, or all, and needs no --artifact")
    if not (collapse or artifacts):
        raise UsageError("name the exports that hold the sessions with --artifact DIR")
    place = find_home(home)
    out.check_target(output, Path(place.root), Path(place.store), force=force)
    with terminal.progress() as tell:
        made = (
            make_collapse_plan(home, sessions=sessions or (), runs=after or (), progress=tell)
            if collapse
            else make_cleanup_plan(
                home,
                sessions=sessions or (),
                older_than=older_than,
                artifacts=artifacts or (),
                runs=after or (),
                progress=tell,
            )
        )
    written = dump(made)
    out.write(output, written)
    say_alone(home)
    if format_ is Format.JSON:
        out.emit(written)
    else:
        from statemend.report.cleanup_table import of_plan

        terminal.show(of_plan(made, str(output)))
    return 4 if made.kept else 0


def apply(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN", readable=False, help="A cleanup plan, or the folder of a cleanup that broke off."
        ),
    ],
    run_dir: NewRun = None,
    format_: OutcomeFormat = Format.TABLE,
) -> int:
    """Delete, show the outcome, and return the exit code."""
    from statemend.cli import terminal
    from statemend.cli.output import check_plan, check_run_folder
    from statemend.cli.runs import following, telling
    from statemend.repair.cleanup import apply as job
    from statemend.repair.cleanup_plan import load
    from statemend.report.cleanup_table import of_cleanup

    if plan.is_dir():
        watched = telling(plan)
    else:
        check_plan(plan, "cleanup plan")
        read = load(plan)
        check_run_folder(run_dir, Path(read.home), Path(read.store.path))
        watched = following(read.envelope(), run_dir)
    with watched, terminal.progress() as tell:
        done = job(plan, run_dir=run_dir, progress=tell)
    terminal.answer(done, format_, lambda: of_cleanup(done))
    return done.exit_code
