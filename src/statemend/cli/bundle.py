"""``statemend bundle``: pack a run for a post-mortem."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from statemend.cli.options import Format, RunFolder

HELP = """Pack the folder of a run, of a playbook, a repair or a cleanup, for others to read.

Without --with-content the text of messages stays out: stores, rows as they were and exports are left out,
and what a plan holds of texts is replaced by digests. What is left out is listed, with the reason and its
sha256, on screen and in BUNDLE.json. Session titles, ids, times and paths are in it. The file is readable by
you alone.

\b
Examples:
  statemend bundle ~/.hermes.statemend/playbooks/20261130T110312Z-post-mortem
  statemend bundle ~/.hermes.statemend/20261130T110312Z-1f2e3d4c -o incident.tar.gz
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("bundle", help=HELP, short_help="Pack a run without message text.")(bundle)


def bundle(
    run: RunFolder,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The file; by default RUN.tar.gz, here."),
    ] = None,
    with_content: Annotated[
        bool, typer.Option("--with-content", help="Pack everything, texts of messages included.")
    ] = False,
    format_: Annotated[Format, typer.Option("--format", help="How to show what was packed.")] = Format.TABLE,
) -> None:
    """Pack, and show what was left out."""
    from statemend.cli import terminal
    from statemend.playbook.bundle import pack
    from statemend.report.bundle_table import of_bundle

    packed = pack(run, output or Path(f"{run.resolve().name}.tar.gz"), with_content=with_content)
    terminal.answer(
        packed, format_, lambda: of_bundle(packed.path, packed.size, packed.files, packed.left_out)
    )
