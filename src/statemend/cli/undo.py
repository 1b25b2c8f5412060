"""``statemend undo``: take a run back."""

from __future__ import annotations

import typer

from statemend.cli.options import Format, OutcomeFormat, RunFolder

HELP = """Take a run back: every row that it changed becomes what it was, proved by digest.

RUN is the folder that `statemend apply` made. Stop Hermes first: a store in use is refused. If Hermes changed
one of these rows since, nothing is undone, for that would lose its change. Rows that the run did not change,
messages written since among them, stay.

Exit codes: 0 done, 4 refused (rows changed since, or the store is in use), 5 taken back whole.

\b
Example:
  statemend undo ~/.hermes.statemend/20261130T110312Z-1f2e3d4c
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("undo", help=HELP, short_help="Take a run back.")(undo)


def undo(
    run_dir: RunFolder,
    format_: OutcomeFormat = Format.TABLE,
) -> int:
    """Undo, show the outcome, and return the exit code."""
    from statemend.cli.runs import finish, telling
    from statemend.repair.undo import undo as job

    with telling(run_dir):
        run = job(run_dir)
    return finish(run, format_)
