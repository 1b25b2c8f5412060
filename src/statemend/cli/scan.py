"""``statemend scan``: audit a home and report."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statemend.cli.options import Config, Deep, Exports, Home, Ignore, Live

if TYPE_CHECKING:
    from statemend.report.baseline import BaselineFile

HELP = """Audit a Hermes home, or a single store, and report what was found.

HOME is a folder with a state.db in it, or the file itself. The stores of its profiles are audited with it
and compared; name HOME/profiles/NAME to audit one of them alone. Exports, transcripts and logs of the home
are read too; name other folders with exports with --exports. Nothing is written beside the stores.

For machines: json (the whole report), jsonl (a line for each thing in it), sarif (code scanning), junit (the
test view of a CI server), summary (Markdown for the page of a job). Message texts are in none of sarif, junit
and summary.

A baseline hides the findings that were known before, by their ids: they do not count for the exit code, and
every output says how many there are, which are gone, and which could not be looked for. What a known finding
says may have changed meanwhile: `statemend diff` tells.

What should hold for every scan can stand in statemend.toml of the current directory, or under
[tool.statemend] of its pyproject.toml: rules, ignore, exports, fail-on, baseline, deep. The command line
goes before it. The report names each rule that was left out, and who left it out.

\b
Examples:
  statemend scan ~/.hermes
  statemend scan ~/.hermes --exports ~/exports -o report.html
  statemend scan ~/.hermes/profiles/work
  statemend scan ~/.hermes --format json | jq '.findings[].id'
  statemend scan state.db --rules EXP --rules messages-without-session --fail-on risk
  statemend scan ~/.hermes --ignore LIF,manifest-disagrees
  statemend scan ~/.hermes --format summary | tee -a "$GITHUB_STEP_SUMMARY"
  statemend scan ~/.hermes -o statemend.sarif
  statemend scan ~/.hermes --write-baseline known.json
  statemend scan ~/.hermes --baseline known.json
"""


class Format(StrEnum):
    """How a report is written."""

    TABLE = "table"
    JSON = "json"
    MD = "md"
    HTML = "html"
    SARIF = "sarif"
    JUNIT = "junit"
    JSONL = "jsonl"
    SUMMARY = "summary"


class FailOn(StrEnum):
    """Which verdicts make the exit code 1."""

    FAULT = "fault"
    RISK = "risk"
    NEVER = "never"


#: The first that a name ends with tells the format.
_BY_SUFFIX = {
    ".sarif": Format.SARIF,
    ".sarif.json": Format.SARIF,
    ".json": Format.JSON,
    ".jsonl": Format.JSONL,
    ".xml": Format.JUNIT,
    ".md": Format.MD,
    ".markdown": Format.MD,
    ".html": Format.HTML,
    ".htm": Format.HTML,
}


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("scan", help=HELP, short_help="Audit a home or a store, and report.")(scan)


def scan(
    home: Home,
    exports: Exports = None,
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
    ignore: Ignore = None,
    config: Config = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on", help="Exit with 1 for findings of this verdict or a worse one. By default fault."
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="FILE",
            readable=False,
            help="Hide the findings that this report (JSON) or baseline names.",
        ),
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option(
            "--write-baseline",
            metavar="FILE",
            readable=False,
            help="Write the ids of all findings here, for a later --baseline.",
        ),
    ] = None,
    deep: Deep = None,
    live: Live = False,
    with_content: Annotated[
        bool,
        typer.Option(
            "--with-content",
            help="Show the texts of the messages that findings name, and of the first of each candidate: "
            "html, md, json, jsonl.",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Let -o replace a file that is not a report, --write-baseline any."),
    ] = False,
) -> int:
    """Audit, write the report, and return the exit code."""
    from statemend.cli import output as out
    from statemend.cli.terminal import progress
    from statemend.evidence.profiles import find_homes

    if output is not None or write_baseline is not None:
        found = find_homes(home)
        beside = (Path(found.root), *(Path(each.store) for each in found.homes))
        if output is not None:
            out.check_target(output, *beside, force=force)
        if write_baseline is not None:
            out.check_target(write_baseline, *beside, force=force, own=out.BASELINE)
            _check_apart(write_baseline, output)
    from statemend.audit.outcome import FailOn as Verdicts
    from statemend.cli.config import settle

    asked = settle(
        home,
        config,
        exports=exports,
        rules=rules,
        ignore=ignore,
        fail_on=None if fail_on is None else Verdicts(fail_on.value),
        baseline=baseline,
        deep=deep,
    )
    known = _known(asked.baseline)
    with progress() as tell:
        from statemend.report.produce import produce

        report = produce(
            home,
            exports=asked.exports,
            rules=asked.rules,
            ignore=asked.ignore,
            live=live,
            deep=asked.deep,
            with_content=with_content,
            fail_on=asked.fail_on,
            progress=tell,
        )
    if known is not None:
        from statemend.report.baseline import apply_baseline

        report = apply_baseline(report, known)
    if write_baseline is not None:
        from statemend.report.baseline import baseline_of
        from statemend.report.json import dump

        out.write(write_baseline, dump(baseline_of(report)))
    chosen = format_ or _told_by(output)
    if output is not None:
        from statemend.report.render import render
        from statemend.report.text import visible

        out.write(output, render(report, chosen.value))
        out.emit(f"{visible(report.verdict)}\nReport: {visible(str(output))}\n")
    elif chosen is Format.TABLE:
        from statemend.cli.terminal import show
        from statemend.report.table import renderable

        show(renderable(report))
    else:
        from statemend.report.render import render

        out.emit(render(report, chosen.value))
    return report.exit_code


def _told_by(output: Path | None) -> Format:
    """The format that a file's name tells."""
    name = "" if output is None else output.name.lower()
    return next((chosen for suffix, chosen in _BY_SUFFIX.items() if name.endswith(suffix)), Format.TABLE)


def _known(baseline: Path | None) -> BaselineFile | None:
    if baseline is None:
        return None
    from statemend.report.baseline import load_baseline

    return load_baseline(baseline)


def _check_apart(baseline: Path, report: Path | None) -> None:
    if report is not None and os.path.realpath(baseline) == os.path.realpath(report):
        from statemend.errors import UsageError

        raise UsageError(f"{report}: cannot hold both report and baseline; name two files")
