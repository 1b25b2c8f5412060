"""Finds the rules: every module under ``audit/rules`` that holds a ``RULE``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
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
    near = ", ".join(_nearest(wanted))
    raise UsageError(
        f"there is no rule {name!r}: {f'nearest are {near}; ' if near else ''}`statemend rules` lists them"
    )


def select(names: Sequence[str] | None) -> tuple[Rule, ...]:
    """The rules that ``names`` asks for: ids, slugs, or a family by name or letters (``lineage``, ``LIN``).

    ``None`` means all. Raises ``UsageError`` for a name that matches nothing, or when ``names`` is empty.
    """
    if names is None:
        return all_rules()
    if not names:
        raise UsageError("no rule is named: leave the choice out to run them all")
    chosen = frozenset[str]().union(*(_named(name) for name in names))
    return tuple(rule for rule in all_rules() if rule.id in chosen)


def without(
    chosen: Sequence[Rule], ignore: Sequence[str] | Mapping[str, str]
) -> tuple[tuple[Rule, ...], dict[str, str]]:
    """Those of ``chosen`` that ``ignore`` does not name, and of the others who left each out, by id.

    ``ignore`` holds names as ``select`` takes them; a mapping says for each who asked for it. Raises
    ``UsageError`` for a name that matches nothing, or when no rule is left.
    """
    asked = ignore if isinstance(ignore, Mapping) else dict.fromkeys(ignore, "the request")
    left_out = {id_: by for name, by in asked.items() for id_ in _named(name)}
    kept = tuple(rule for rule in chosen if rule.id not in left_out)
    if not kept:
        raise UsageError("every chosen rule is ignored: nothing is left to look for")
    return kept, {rule.id: left_out[rule.id] for rule in chosen if rule.id in left_out}


def _named(name: str) -> frozenset[str]:
    """The ids that a name stands for: a family's, or the one of a rule."""
    wanted = name.strip().lower()
    family = [rule for rule in all_rules() if wanted in (rule.family.value, rule.id[:3].lower())]
    return frozenset(rule.id for rule in family or (get(name),))


def _nearest(wanted: str) -> Iterator[str]:
    """The names that come closest, each once."""
    names = {rule.id.lower(): rule.id for rule in all_rules()}
    names |= {rule.id[:3].lower(): rule.id[:3] for rule in all_rules()}
    names |= {name: name for rule in all_rules() for name in (rule.slug, rule.family.value)}
    yield from (names[near] for near in get_close_matches(wanted, names, n=3, cutoff=0.6))
