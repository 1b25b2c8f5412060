"""``statemend scan``: audit a home and report."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from statemend.report.model import Report

HELP = """Audit a Hermes home, or a single store, and report what was found.

HOME is a folder with a state.db in it, or the file itself. Exports, transcripts and logs of the home are
read too; name other folders with exports with --exports. Nothing is written beside the store.

\b
Examples:
  statemend scan ~/.hermes
  statemend scan ~/.hermes --exports ~/exports -o report.html
  statemend scan ~/.hermes --format json | jq '.findings[].id'
  statemend scan state.db --rules EXP --rules messages-without-session --fail-on risk
"""


class Format(StrEnum):
    """How a report is written."""

    TABLE = "table"
    JSON = "json"
    MD = "md"
    HTML = "html"


class FailOn(StrEnum):
    """Which verdicts make the exit code 1."""

    FAULT = "fault"
    RISK = "risk"
    NEVER = "never"


_BY_SUFFIX = {
    ".json": Format.JSON,
    ".md": Format.MD,
    ".markdown": Format.MD,
    ".html": Format.HTML,
    ".htm": Format.HTML,
}


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("scan", help=HELP, short_help="Audit a home or a store, and report.")(scan)


def scan(
    home: Annotated[
        Path, typer.Argument(metavar="HOME", readable=False, help="A Hermes home, or a store file.")
    ],
    exports: Annotated[
        list[Path] | None,
        typer.Option(
            "--exports",
            metavar="DIR",
            readable=False,
            help="Another folder or file with exports. Repeatable.",
        ),
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            "--rules", metavar="NAMES", help="Run these only: ids, names or families, by comma. Repeatable."
        ),
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="How to report. Told from the name after -o, else a table."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            readable=False,
            help="Write the report here, readable by you alone.",
        ),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Exit with 1 for findings of this verdict or a worse one.")
    ] = FailOn.FAULT,
    deep: Annotated[
        bool, typer.Option("--deep", help="Check the whole file and its search indexes too. Slower.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Take a consistent copy when a process holds the store.")
    ] = False,
    with_content: Annotated[
        bool, typer.Option("--with-content", help="Show the texts of the messages that findings name.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Let -o replace a file that is not a report.")
    ] = False,
) -> int:
    """Audit, write the report, and return the exit code."""
    from statemend.cli import output as out
    from statemend.cli.terminal import progress
    from statemend.evidence.inventory import find_home

    if output is not None:
        place = find_home(home)
        out.check_target(output, Path(place.root), Path(place.store), force=force)
    with progress() as tell:
        from statemend.audit.outcome import FailOn as Verdicts
        from statemend.report.produce import produce

        report = produce(
            home,
            exports=exports or (),
            rules=[name for given in rules for name in given.split(",")] if rules else None,
            live=live,
            deep=deep,
            with_content=with_content,
            fail_on=Verdicts(fail_on.value),
            progress=tell,
        )
    chosen = format_ or (_BY_SUFFIX.get(output.suffix.lower(), Format.TABLE) if output else Format.TABLE)
    if output is not None:
        from statemend.report.text import visible

        out.write(output, _render(report, chosen))
        out.emit(f"{visible(report.verdict)}\nReport: {visible(str(output))}\n")
    elif chosen is Format.TABLE:
        from statemend.cli.terminal import show
        from statemend.report.table import renderable

        show(renderable(report))
    else:
        out.emit(_render(report, chosen))
    return report.exit_code


def _render(report: Report, chosen: Format) -> str:
    if chosen is Format.HTML:
        from statemend.report import html

        return html.render(report)
    if chosen is Format.MD:
        from statemend.report import markdown

        return markdown.render(report)
    if chosen is Format.JSON:
        from statemend.report import json

        return json.render(report)
    from statemend.report import table

    return table.render(report)
