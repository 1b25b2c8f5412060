"""Arguments and options that several verbs take, each with one meaning."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How an answer is shown."""

    TABLE = "table"
    JSON = "json"


Home = Annotated[Path, typer.Argument(metavar="HOME", readable=False, help="A Hermes home, or a store file.")]
Store = Annotated[
    Path, typer.Argument(metavar="STORE", readable=False, help="A Hermes home, or a store file.")
]
PlanFile = Annotated[
    Path,
    typer.Argument(metavar="PLAN", readable=False, help="A plan that `statemend plan` wrote."),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", readable=False, help="The folder of a run.")]
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
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="NAMES",
        help="Leave these rules out: ids, names or families, by comma. Repeatable.",
    ),
]
Deep = Annotated[
    bool | None,
    typer.Option("--deep/--no-deep", help="Check the whole file and its search indexes too. Slower."),
]
Live = Annotated[bool, typer.Option("--live", help="Take a consistent copy when a process holds the store.")]
OwnTexts = Annotated[
    bool, typer.Option("--with-content", help="Show the texts that the store's own tables kept.")
]
NewRun = Annotated[
    Path | None,
    typer.Option("--run-dir", metavar="DIR", help="The folder of the run; it must not exist yet."),
]
ReplacePlan = Annotated[bool, typer.Option("--force", help="Let -o replace a file that is there.")]
PlanFormat = Annotated[Format, typer.Option("--format", help="How to show the plan; the file is JSON.")]
OutcomeFormat = Annotated[Format, typer.Option("--format", help="How to show the outcome.")]
