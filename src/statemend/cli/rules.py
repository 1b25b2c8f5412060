"""``statemend rules``: every rule there is."""

from __future__ import annotations

from typing import Annotated

import typer

from statemend.cli.options import Format

HELP = """List every rule, in the order in which they run.

`statemend explain RULE` tells more of one.

\b
Examples:
  statemend rules
  statemend rules --format json | jq '.rules[].id'
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("rules", help=HELP, short_help="List every rule.")(rules)


def rules(
    format_: Annotated[Format, typer.Option("--format", help="How to write the list.")] = Format.TABLE,
) -> int:
    """List the rules."""
    from statemend.audit.registry import all_rules

    if format_ is Format.JSON:
        from statemend.cli.output import emit
        from statemend.report.json import dump
        from statemend.report.rulebook import Rulebook, entry

        emit(dump(Rulebook(rules=tuple(entry(rule) for rule in all_rules()))))
        return 0
    from rich.text import Text

    from statemend.cli.terminal import show
    from statemend.report.blocks import Rows
    from statemend.report.table import severity_text

    rows = [
        (
            Text(rule.id),
            severity_text(rule.severity),
            Text(rule.verdict.value),
            Text(rule.recipe or "by hand"),
            Text(f"{rule.title} ({rule.slug})"),
        )
        for rule in all_rules()
    ]
    show(Rows(rows, head=("Rule", "Severity", "Verdict", "Repair", "What it finds")))
    return 0
