"""The rules as data, for programs that show or choose them: ``statemend/rules/v1``."""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from statemend.audit import registry
from statemend.audit.finding import Severity, Verdict
from statemend.audit.rule import Rule


class RulebookEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. ``severity`` and ``verdict`` are those of its usual finding; ``recipe`` names the repair
    that mends it; ``sections`` are the parts of its explanation, heading to text."""

    id: str
    slug: str
    family: str
    severity: Severity
    verdict: Verdict
    title: str
    recipe: str | None
    sections: dict[str, str]


class Rulebook(msgspec.Struct, frozen=True, kw_only=True):
    """Rules in the order in which they run."""

    schema: Literal["statemend/rules/v1"] = "statemend/rules/v1"
    rules: tuple[RulebookEntry, ...]


def entry(rule: Rule) -> RulebookEntry:
    """What a program needs to know of ``rule``."""
    return RulebookEntry(
        id=rule.id,
        slug=rule.slug,
        family=rule.family.value,
        severity=rule.severity,
        verdict=rule.verdict,
        title=rule.title,
        recipe=rule.recipe,
        sections=rule.sections,
    )


@cache
def _known() -> dict[str, Rule]:
    return {rule.id: rule for rule in registry.all_rules()}


@cache
def _families() -> dict[str, str]:
    return {rule.id[:3]: rule.family.value for rule in registry.all_rules()}


def known(rule_id: str) -> Rule | None:
    """The rule with this id; ``None`` for one of another version, which a report may name."""
    return _known().get(rule_id)


def family(rule_id: str) -> str:
    """What a rule is about, told from the first letters of its id."""
    return _families().get(rule_id[:3], rule_id[:3].lower())
