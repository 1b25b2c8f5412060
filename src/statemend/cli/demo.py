"""``statemend demo``: a damaged home to try everything on, audited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

HELP = """Build a damaged Hermes home, audit it, and write the reports.

The home goes into DIR, which must be new or empty; the reports go beside it, into DIR-reports. No Hermes is
needed, and nothing of your own is touched.

\b
Examples:
  statemend demo
  statemend demo /tmp/try && statemend scan /tmp/try
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("demo", help=HELP, short_help="Build a damaged home and audit it.")(demo)


def demo(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the home goes.")] = Path("demo-home"),
) -> int:
    """Build, audit, write and say where."""
    from statemend.cli import output
    from statemend.demo.build import AUDITED_AT, build
    from statemend.errors import UsageError
    from statemend.report import html, json, markdown, table
    from statemend.report.produce import produce

    if not folder.name:
        raise UsageError(f"{folder}: not a name for a new folder; name one for the demo home")
    reports = folder.with_name(f"{folder.name}-reports")
    try:
        if reports.exists() and (not reports.is_dir() or any(reports.iterdir())):
            raise UsageError(f"{reports}: already holds something; name another folder for the demo home")
        build(folder)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror or error}; name another folder for the demo") from error
    report = produce(folder, now=AUDITED_AT)
    reports.mkdir(mode=0o700, exist_ok=True)
    written = {
        reports / "audit.html": html.render(report),
        reports / "audit.md": markdown.render(report),
        reports / "audit.json": json.render(report),
    }
    for path, text in written.items():
        output.write(path, text)
    output.emit(table.render(report))
    output.emit(f"\nThe demo home: {folder}\nThe reports:   {'  '.join(map(str, written))}\n")
    output.emit(f"Try it:        statemend scan {folder}\n")
    return 0
