"""``statemend diff``: what changed between two reports."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from statemend.cli.scan import FailOn

HELP = """Compare two reports: which findings are new, which are gone, and which say something else.

OLD and NEW are reports that `statemend scan` wrote as JSON. Findings are told by their ids, which stay the
same from scan to scan. One that NEW lacks is gone only where NEW could have seen it: if its rule could not
run, or a folder was not looked at, it is listed as not looked for.

Exit codes: 0 nothing new, 1 a finding at or above --fail-on that is new or has become one, 3 NEW could not
determine something, or could not look for what OLD had found.

\b
Examples:
  statemend diff monday.json today.json
  statemend diff monday.json today.json --format md > changes.md
  statemend diff monday.json today.json --format json | jq '.gone[].finding.id'
"""


class Format(StrEnum):
    """How the comparison is written."""

    TABLE = "table"
    JSON = "json"
    MD = "md"


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("diff", help=HELP, short_help="Compare two reports.")(diff)


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", readable=False, help="The earlier report, JSON.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", readable=False, help="The later report, JSON.")],
    format_: Annotated[Format, typer.Option("--format", help="How to write the comparison.")] = Format.TABLE,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Exit with 1 for new findings of this verdict or a worse one.")
    ] = FailOn.FAULT,
) -> int:
    """Compare, show what changed, and return the exit code."""
    from statemend.audit.outcome import FailOn as Verdicts
    from statemend.report.diff import diff as compare
    from statemend.report.diff import exit_code
    from statemend.report.load import load_report

    found = compare(load_report(old), load_report(new))
    if format_ is Format.TABLE:
        from statemend.cli.terminal import show
        from statemend.report.diff_table import renderable

        show(renderable(found))
    elif format_ is Format.MD:
        from statemend.cli.output import emit
        from statemend.report.diff_markdown import render

        emit(render(found))
    else:
        from statemend.cli.output import emit
        from statemend.report.json import dump

        emit(dump(found))
    return exit_code(found, Verdicts(fail_on.value))
