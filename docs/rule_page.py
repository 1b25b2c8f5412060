"""The rule book: every rule as its docstring explains it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from docs.pages import fill, prose, table
from statemend.audit.finding import Severity, Verdict
from statemend.audit.registry import all_rules
from statemend.audit.rule import Rule
from statemend.repair.recipe import all_recipes

_FAMILIES = {
    "store": "Store: the file itself",
    "exports": "Exports: what the files beside the store hold",
    "orphans": "Orphans: what points at nothing, and what never arrived",
    "lineage": "Lineage: which session continues which",
    "messages": "Messages: rows and their states",
    "counters": "Counters: numbers that Hermes keeps",
    "profiles": "Profiles: the stores of one home together",
}


def render() -> str:
    """The page."""
    return fill(
        "rules.md",
        {
            "list": lambda: "\n".join(_list()),
            "severities": lambda: ", ".join(Severity),
            "verdicts": lambda: ", ".join(Verdict),
            "rules": lambda: "\n".join(_rules()),
            "recipes": lambda: "\n".join(_recipes()),
        },
    )


def _list() -> Iterator[str]:
    yield from table(
        ["rule", "finds", "severity", "verdict", "repair"],
        (
            [
                f"[{rule.id}](#{_heading(rule).lower().replace(' ', '-')})",
                prose(rule.title),
                rule.severity,
                rule.verdict,
                _repair(rule),
            ]
            for rule in all_rules()
        ),
    )


def _rules() -> Iterator[str]:
    by_id = sorted(all_rules(), key=lambda rule: rule.id)
    for family, rules in groupby(by_id, key=lambda rule: rule.family.value):
        yield f"## {_FAMILIES.get(family, family.capitalize())}"
        yield ""
        for rule in rules:
            yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    yield f"### {_heading(rule)}"
    yield ""
    yield prose(rule.title)
    yield ""
    yield f"{rule.severity}, {rule.verdict}; repair: {_repair(rule)}"
    yield ""
    for heading, text in rule.sections.items():
        yield f"**{heading}.** {prose(text)}"
        yield ""


def _recipes() -> Iterator[str]:
    yield from table(
        ["recipe", "mends", "what it does"],
        ([f"`{recipe.name}`", ", ".join(recipe.serves), prose(recipe.title)] for recipe in all_recipes()),
    )


def _heading(rule: Rule) -> str:
    return f"{rule.id} {rule.slug}"


def _repair(rule: Rule) -> str:
    return f"`{rule.recipe}`" if rule.recipe else "by hand"
