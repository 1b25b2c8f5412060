"""``statemend plan``: turn findings into a repair that can be reviewed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from statemend.cli.options import (
    Config,
    Deep,
    Exports,
    Format,
    Home,
    Ignore,
    PlanFormat,
    ReplacePlan,
)

HELP = """Plan the repair of a Hermes home, or a single store. Nothing is changed.

HOME is audited as `statemend scan` does, by the same configuration. The plan names each row to be changed,
what it was and will be, the finding it serves, and where each value comes from. Review it, then rehearse and
apply it.

Steps that evidence decides are in the plan. Where it does not decide, the plan lists every option, and
nothing of it happens until you write the id of one into the plan file: "chosen": null becomes
"chosen": "ID". The output names the line. Findings that no recipe mends are listed with the reason.

The file is readable by you alone. It may hold titles, ids, paths and a system prompt, never the text of a
message: what is to be restored is named by its digest, and read from the files when the plan is carried out.
Write it outside the home. It fits this store until the rows that it names change.

\b
Examples:
  statemend plan ~/.hermes -o plan.json
  statemend plan ~/.hermes --exports ~/exports --recipe rebuild-session -o plan.json
  statemend plan ~/.hermes --restore 20260801_090000_aaaaaa -o plan.json
  statemend plan ~/.hermes --sql | less
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("plan", help=HELP, short_help="Plan a repair that can be reviewed.")(plan)


def plan(
    home: Home,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PLAN", help="Write the plan here, readable by you alone."),
    ] = None,
    recipes: Annotated[
        list[str] | None,
        typer.Option("--recipe", metavar="NAMES", help="Use these recipes only, by comma. Repeatable."),
    ] = None,
    exports: Exports = None,
    ignore: Ignore = None,
    config: Config = None,
    restore: Annotated[
        list[str] | None,
        typer.Option(
            "--restore", metavar="SESSION", help="Plan the return of a deleted session. Repeatable."
        ),
    ] = None,
    sql: Annotated[bool, typer.Option("--sql", help="Show the statements instead of the summary.")] = False,
    format_: PlanFormat = Format.TABLE,
    deep: Deep = None,
    force: ReplacePlan = False,
) -> int:
    """Plan, write the plan, show it, and return the exit code."""
    from statemend.cli import output as out
    from statemend.cli.terminal import progress
    from statemend.evidence.inventory import find_home

    if output is not None:
        place = find_home(home)
        if output.is_file() and output.stat().st_size and not force:
            from statemend.errors import Refused

            raise Refused(
                f"{output}: exists, and may hold choices you made; choose another name, or say --force"
            )
        out.check_target(output, Path(place.root), Path(place.store), force=force)
    from statemend.cli.config import names, settle
    from statemend.cli.profiles import say_alone

    asked = settle(home, config, exports=exports, ignore=ignore, deep=deep)
    with progress() as tell:
        from statemend.repair.planner import draft

        made = draft(
            home,
            exports=asked.exports,
            recipes=names(recipes),
            ignore=asked.ignore,
            deep=asked.deep,
            restore=restore or (),
            progress=tell,
        )
    from statemend.report.json import dump

    written = dump(made.plan)
    if output is not None:
        out.write(output, written)
    if sql:
        from statemend.report.plan_sql import render

        out.emit(render(made.plan))
    elif format_ is Format.JSON:
        out.emit(written)
    else:
        from statemend.cli.terminal import show
        from statemend.report.plan_table import answer_lines, renderable

        file = None if output is None else str(output)
        show(renderable(made.plan, file=file, lines=answer_lines(written)))
    say_alone(home)
    if made.ignored:
        out.complain(f"not planned for: {'; '.join(_together(made.ignored))}", 0)
    for reason in _together(made.undetermined):
        out.complain(f"not determined: {reason}", 3)
    return 3 if made.undetermined else 0


_OF_A_RULE = re.compile(r"([A-Z]{3}\d{3}) \S+ (could not run: .*|was .*)", re.DOTALL)


def _together(sentences: Iterable[str]) -> list[str]:
    """The sentences; what is said of several rules alike is said once."""
    from statemend.report.text import listed

    rules: dict[str, list[str]] = {}
    told: dict[str, str] = {}
    for sentence in sentences:
        of_rule = _OF_A_RULE.fullmatch(sentence)
        said = of_rule[2] if of_rule else sentence
        told.setdefault(said, sentence)
        rules.setdefault(said, []).extend([of_rule[1]] if of_rule else [])
    return [
        f"{listed(sorted(rules[said]))} {re.sub('^was ', 'were ', said)}"
        if len(rules[said]) > 1
        else sentence
        for said, sentence in told.items()
    ]
