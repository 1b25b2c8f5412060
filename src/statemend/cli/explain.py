"""``statemend explain``: what one rule means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from statemend.cli.options import Format
from statemend.errors import UsageError

if TYPE_CHECKING:
    from statemend.audit.rule import Rule

HELP = """Explain a rule: what it means, how it happens, how we know, what to do, when it is a false alarm.

\b
Examples:
  statemend explain EXP001
  statemend explain EXP001-37d5ac0a3e
  statemend explain messages-without-session
"""


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    app.command("explain", help=HELP, short_help="Explain a rule.")(explain)


def explain(
    rule: Annotated[
        str, typer.Argument(metavar="RULE", help="The id or the name of a rule, or the id of a finding.")
    ],
    format_: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TABLE,
) -> int:
    """Explain one rule."""
    found = _find(rule)
    if format_ is Format.JSON:
        from statemend.cli.output import emit
        from statemend.report.json import dump
        from statemend.report.rulebook import Rulebook, entry

        emit(dump(Rulebook(rules=(entry(found),))))
        return 0
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    from statemend.cli.terminal import show
    from statemend.report.table import severity_text

    parts: list[Text | Padding] = [
        Text(f"{found.id} {found.slug}", style="bold"),
        Text(found.title),
        severity_text(found.severity)
        + Text(f", {found.verdict.value}; repair: {found.recipe or 'see What to do'}"),
    ]
    for heading, body in found.sections.items():
        parts += [Text(), Text(heading, style="bold")]
        parts += [
            Padding(Text(paragraph.replace("\n", " ")), (0, 0, 0, 2)) for paragraph in body.split("\n\n")
        ]
    show(Group(*parts))
    return 0


#: The id of a finding begins with that of its rule.
_FINDING = re.compile(r"([a-z]{3}\d{3})-[0-9a-f]+", re.IGNORECASE)


def _find(name: str) -> Rule:
    from statemend.audit.registry import select

    finding = _FINDING.fullmatch(name.strip())
    found, *more = select([finding[1] if finding else name])
    if more:
        named = ", ".join(rule.id for rule in (found, *more))
        raise UsageError(f"{name!r} is a family of rules; explain one of them: {named}")
    return found
