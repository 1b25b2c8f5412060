"""``statemend report``: the story of an incident."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

HELP = """Tell the story of an incident, from reports and runs.

Name the JSON reports of `statemend scan`, and the folders of repairs, cleanups and playbooks; all of them
make one story: what happened when, what was lost, what was had back from where, what remains unknown, what
statemend changed, and what was decided. Each statement names its evidence and the command that shows it
again. Message text is not shown.

\b
Examples:
  statemend report monday.json friday.json -o story.html
  statemend report ~/.hermes.statemend/playbooks/20261130T110312Z-append-failures --format md
  statemend report before.json ~/.hermes.statemend/20261130T110312Z-1f2e3d4c after.json -o story.html
"""


class Format(StrEnum):
    """How a story is written."""

    MD = "md"
    HTML = "html"
    JSON = "json"


_BY_SUFFIX = {".html": Format.HTML, ".htm": Format.HTML, ".json": Format.JSON}


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("report", help=HELP, short_help="Tell the story of an incident.")(report)


def report(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RUN|REPORT", readable=False, help="Folders of runs, and JSON reports."),
    ],
    format_: Annotated[
        Format | None, typer.Option("--format", help="How to tell it. Told from the name after -o, else md.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write it here, readable by you alone."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Let -o replace a file that is not a report.")
    ] = False,
) -> None:
    """Read, tell, write."""
    from statemend.cli import output as out
    from statemend.report.story.render import render
    from statemend.report.story.tell import gather
    from statemend.report.text import visible

    chosen = format_ or (_BY_SUFFIX.get(output.suffix.lower(), Format.MD) if output else Format.MD)
    story = gather(sources)
    if output is None:
        out.emit(render(story, chosen.value))
        return
    for home in story.homes:
        out.check_target(output, Path(home), Path(home) / "state.db", force=force)
    out.write(output, render(story, chosen.value))
    out.emit(f"{visible(story.headline)}\nStory: {visible(str(output))}\n")
