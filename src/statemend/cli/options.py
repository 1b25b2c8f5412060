"""Options that several verbs take, each with one meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Exports = Annotated[
    list[Path] | None,
    typer.Option(
        "--exports",
        metavar="DIR",
        readable=False,
        help="Another folder or file with exports. Repeatable.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        readable=False,
        help="Follow this configuration, not that of the current directory.",
    ),
]
Live = Annotated[bool, typer.Option("--live", help="Take a consistent copy when a process holds the store.")]
