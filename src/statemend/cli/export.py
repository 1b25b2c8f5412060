"""``statemend export``: write sessions again, whole, and prove it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from statemend.cli import options
from statemend.cli.options import Live, Store
from statemend.errors import StatemendError

HELP = """Write sessions into files that Hermes reads, the archived turns included, and prove each file.

STORE is a Hermes home or a store file; it is only read. SESSION is an id, or a beginning that no other
session shares. Each session becomes one file in DIR, and a line in the manifest.jsonl there. Every file is
read back and compared with the store, row by row, before it counts as complete.

jsonl keeps every row with its flags. Import it with 0.22.2: older releases ignore the flags, and make
archived and undone turns live again. md, qmd and html are for people, and lack some fields.

\b
Examples:
  statemend export ~/.hermes 20260812_091500_4f1d2c -o ~/exports
  statemend export ~/.hermes --at-risk --exports ~/exports -o ~/exports
  statemend export state.db 20260812 --format md -o ~/exports --report json
"""


class InterruptedExportError(StatemendError):
    """Ctrl-C in the middle: some files may be written, each of them whole. The code is the one that a shell
    reports for it."""

    exit_code: ClassVar[int] = 130


class Format(StrEnum):
    """The format of the files."""

    JSONL = "jsonl"
    MD = "md"
    QMD = "qmd"
    HTML = "html"


class View(StrEnum):
    """Which messages are written."""

    RAW = "raw"
    ACTIVE = "active"
    DISPLAY = "display"


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("export", help=HELP, short_help="Write sessions again, whole, and prove it.")(export)


def export(
    store: Store,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", help="The folder to write into, outside the home."),
    ],
    sessions: Annotated[
        list[str] | None, typer.Argument(metavar="SESSION", help="Session ids, or beginnings of ids.")
    ] = None,
    at_risk: Annotated[
        bool,
        typer.Option("--at-risk", "--all-at-risk", help="Every session whose archived turns no file holds."),
    ] = False,
    format_: Annotated[Format, typer.Option("--format", help="The format of the files.")] = Format.JSONL,
    view: Annotated[
        View | None,
        typer.Option("--view", help="Which messages: raw (every row; jsonl), display (else), active."),
    ] = None,
    exports: Annotated[
        list[Path] | None,
        typer.Option("--exports", metavar="DIR", help="With --at-risk: where else exports are. Repeatable."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an export of the session that shows nothing more.")
    ] = False,
    live: Live = False,
    report: Annotated[
        options.Format, typer.Option("--report", help="How to show what was done.")
    ] = options.Format.TABLE,
) -> int:
    """Export, prove, show, and return the exit code."""
    from statemend.cli import terminal
    from statemend.cli.profiles import say_alone
    from statemend.repair import reexport as job
    from statemend.report.export_table import renderable

    try:
        with terminal.progress() as tell:
            done = job.reexport(
                store,
                sessions or (),
                output,
                form=job.Format(format_.value),
                view=None if view is None else job.View(view.value),
                at_risk=at_risk,
                exports=exports or (),
                force=force,
                live=live,
                progress=tell,
            )
    except KeyboardInterrupt as error:
        raise InterruptedExportError("interrupted; files that have their name are whole, and stay") from error
    terminal.answer(done, report, lambda: renderable(done))
    if at_risk:
        say_alone(store)
    return done.exit_code
