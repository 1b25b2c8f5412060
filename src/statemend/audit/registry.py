"""Finds the rules: every module under ``audit/rules`` that holds a ``RULE``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from functools import cache

from statemend.audit import rules as rules_package
from statemend.audit.rule import Rule
from statemend.errors import UsageError


def discover() -> list[Rule]:
    """Import every rule module and return its rule, in no particular order.

    Raises ``TypeError`` when a module under ``rules/`` that is not a package holds no ``RULE``.
    """
    found = []
    for module in pkgutil.walk_packages(rules_package.__path__, rules_package.__name__ + "."):
        if module.ispkg:
            continue
        rule = getattr(importlib.import_module(module.name), "RULE", None)
        if not isinstance(rule, Rule):
            raise TypeError(f"{module.name} holds no RULE")
        found.append(rule)
    return found


def arrange(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules in the order the engine runs them: by level, then by id.

    Raises ``ValueError`` when two of them share an id or a slug.
    """
    ordered = sorted(rules, key=lambda rule: (rule.level, rule.id))
    seen: set[str] = set()
    for rule in ordered:
        for name in (rule.id, rule.slug):
            if name in seen:
                raise ValueError(f"two rules are named {name}")
            seen.add(name)
    return tuple(ordered)


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule there is, in running order."""
    return arrange(discover())


def get(name: str) -> Rule:
    """The rule with this id or slug, in any letter case. Raises ``UsageError`` when there is none."""
    wanted = name.strip().lower()
    for rule in all_rules():
        if wanted in (rule.id.lower(), rule.slug):
            return rule
    raise UsageError(f"there is no rule {name!r}: `statemend rules` lists them")


def select(names: Sequence[str] | None) -> tuple[Rule, ...]:
    """The rules that ``names`` asks for: ids, slugs, or a family by name or letters (``lineage``, ``LIN``).

    ``None`` means all. Raises ``UsageError`` for a name that matches nothing, or when ``names`` is empty.
    """
    if names is None:
        return all_rules()
    if not names:
        raise UsageError("no rule is named: leave the choice out to run them all")
    chosen: set[str] = set()
    for name in names:
        wanted = name.strip().lower()
        members = {
            rule.id for rule in all_rules() if wanted and wanted in (rule.family.value, rule.id[:3].lower())
        }
        chosen |= members or {get(name).id}
    return tuple(rule for rule in all_rules() if rule.id in chosen)
