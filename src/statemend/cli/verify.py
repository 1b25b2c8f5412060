"""``statemend verify``: what became of a run."""

from __future__ import annotations

import typer

from statemend.cli.options import Format, OutcomeFormat, RunFolder

HELP = """Tell what became of a run: from the rows of the store, not from what was meant to happen.

RUN is the folder that `statemend apply` made. Say this after a crash, and whenever you are in doubt. Nothing
is changed. The answer says what to do next.

Exit codes: 0 as it should be, 3 the rows were changed since, so nothing can be told, 5 the run broke off and
the store is as it was before, 6 the change is there, and not as promised or not verified yet.

\b
Example:
  statemend verify ~/.hermes.statemend/20261130T110312Z-1f2e3d4c
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("verify", help=HELP, short_help="Tell what became of a run.")(verify)


def verify(
    run_dir: RunFolder,
    format_: OutcomeFormat = Format.TABLE,
) -> int:
    """Look, show what was found, and return the exit code."""
    from statemend.cli import terminal
    from statemend.cli.runs import finish
    from statemend.repair.verify import verify as job

    with terminal.progress() as tell:
        run = job(run_dir, progress=tell)
    return finish(run, format_)
