"""What a recipe is: it turns one finding into steps, a choice, or the reason why it is left alone.

A recipe module holds its docstring, one generator ``propose(context, finding)`` and one constant ``RECIPE``;
its name is the module's, with hyphens. Recipes only read: what they propose is data, and what it rests on is
named in it. A rule that a recipe serves names it in ``Rule.recipe``.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from statemend.audit.context import Context
from statemend.audit.finding import Finding
from statemend.errors import UsageError
from statemend.evidence.inventory import Home, Inventory
from statemend.formats.artifact import Artifact, Section
from statemend.repair import recipes as recipes_package
from statemend.repair.cells import SqlValue, encode, row_digest
from statemend.repair.digests import primary_key, row_of
from statemend.repair.plan import Choice, Kind, Left, Operation, Option, Source, Step, StepClass
from statemend.store.connection import Store
from statemend.store.history import Census
from statemend.store.lineage import Graph
from statemend.store.records import table_columns

__all__ = [
    "Proposal",
    "Recipe",
    "RecipeContext",
    "all_recipes",
    "discover",
    "insert_of",
    "leave",
    "row_of",
    "select",
    "update_of",
]

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

#: What a recipe yields for a finding.
Proposal = Step | Choice | Left


class RecipeContext:
    """What a recipe may ask: the audit whose findings it serves, with its store still open for reading."""

    def __init__(self, context: Context, findings: Sequence[Finding], wanted: Iterable[str] = ()) -> None:
        self.audit = context
        self.findings = tuple(findings)
        #: Ids of sessions that the operator wants back and no recipe has taken up yet.
        self.wanted = set(wanted)
        #: All of them.
        self.asked = frozenset(self.wanted)
        self._kept: dict[object, Any] = {}

    @property
    def store(self) -> Store:
        """The audited store, opened for reading: queries see canonical tables and columns (TEMP views)."""
        return self.audit.store

    @property
    def graph(self) -> Graph:
        """The lineage graph."""
        return self.audit.graph

    @property
    def census(self) -> Mapping[str, Census]:
        """Row counts by state and first and last time, for every session id that messages name."""
        return self.audit.census

    @property
    def inventory(self) -> Inventory:
        """What lies beside the store."""
        return self.audit.inventory

    def sections_of(self, session_id: str) -> Sequence[tuple[Artifact, Section]]:
        """The parts of artifacts that name a session."""
        by_session: Mapping[str, Sequence[tuple[Artifact, Section]]] = self.once(
            "sections by session", self.inventory.by_session
        )
        return by_session.get(session_id, ())

    @property
    def home(self) -> Home:
        return self.audit.home

    @property
    def now(self) -> float:
        """Epoch seconds."""
        return self.audit.now

    def of_rule(self, rule: str) -> tuple[Finding, ...]:
        """The findings of one rule, by id."""
        return tuple(finding for finding in self.findings if finding.rule == rule)

    def once(self, key: object, compute: Callable[[], Any]) -> Any:
        """What ``compute`` gives, computed at its first use and kept for the other findings."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """One recipe. ``serves`` are ids of rules. ``propose`` yields, for one finding of these rules, the steps,
    the choice or the reason for leaving it alone; nothing at all means that it does not know. Where it raises
    ``CannotChangeError``, the finding is left alone for that reason."""

    name: str
    serves: tuple[str, ...]
    doc: str
    propose: Callable[[RecipeContext, Finding], Iterator[Proposal]]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"recipe name {self.name!r} is not words joined by hyphens")

    @property
    def title(self) -> str:
        """The first line of the docstring."""
        return self.doc.strip().partition("\n")[0].strip()

    def step(
        self,
        finding: Finding,
        step_class: StepClass,
        number: int = 1,
        *,
        title: str,
        why: str,
        operations: tuple[Operation, ...],
        sources: tuple[Source, ...],
        sessions: tuple[str, ...] = (),
        reindex: tuple[str, ...] = (),
    ) -> Step:
        """A step of this recipe for one finding. Its id is the same whenever the plan is made; ``number``
        tells those apart that one finding gets."""
        return Step(
            id=f"{finding.id}/{self.name}/{number}",
            recipe=self.name,
            finding=finding.id,
            step_class=step_class,
            title=title,
            why=why,
            operations=operations,
            reindex=reindex,
            sessions=sessions,
            sources=sources,
        )

    def choice(self, finding: Finding, question: str, options: tuple[Option, ...]) -> Choice:
        """The choice that this recipe puts for one finding."""
        return Choice(id=f"{finding.id}/{self.name}", finding=finding.id, question=question, options=options)


def discover() -> list[Recipe]:
    """Import every recipe module and return its recipe, in the order of their names.

    Raises ``TypeError`` when a module under ``recipes/`` holds no ``RECIPE``, or one of another name.
    """
    found = []
    for module in pkgutil.iter_modules(recipes_package.__path__):
        recipe = getattr(importlib.import_module(f"{recipes_package.__name__}.{module.name}"), "RECIPE", None)
        if not isinstance(recipe, Recipe) or recipe.name != module.name.replace("_", "-"):
            raise TypeError(f"{module.name} holds no RECIPE of that name")
        found.append(recipe)
    return sorted(found, key=lambda recipe: recipe.name)


@cache
def all_recipes() -> tuple[Recipe, ...]:
    """Every recipe there is."""
    return tuple(discover())


def select(names: Iterable[str] | None) -> tuple[Recipe, ...]:
    """The recipes with these names; ``None`` means all. Raises ``UsageError`` for a name of none."""
    if names is None:
        return all_recipes()
    by_name = {recipe.name: recipe for recipe in all_recipes()}
    chosen: set[str] = set()
    for name in names:
        wanted = name.strip().lower().replace("_", "-")
        if wanted not in by_name:
            raise UsageError(f"there is no recipe {name!r}; there are {', '.join(by_name)}")
        chosen.add(wanted)
    return tuple(recipe for recipe in all_recipes() if recipe.name in chosen)


def leave(finding: Finding, reason: str) -> Left:
    """The answer that a finding is left alone, and why."""
    return Left(id=finding.id, rule=finding.rule, reason=reason)


def update_of(
    store: Store, table: str, key: Mapping[str, SqlValue], after: Mapping[str, SqlValue]
) -> Operation:
    """The update of one row to the columns ``after``, with what it was before.

    Raises ``LookupError`` when there is no such row or column.
    """
    row = row_of(store, table, key)
    if row is None:
        raise LookupError(f"{table} has no row {dict(key)}")
    return Operation(
        kind=Kind.UPDATE,
        table=table,
        key=_cells(key),
        before=_cells({name: row[name] for name in after}),
        before_digest=row_digest(row),
        after=_cells(after),
    )


def insert_of(store: Store, table: str, values: Mapping[str, SqlValue]) -> Operation:
    """The insert of one row, its key taken from the primary key of the table.

    Raises ``LookupError`` when the table lacks one of the columns or ``values`` lacks a part of the key.
    """
    columns = table_columns(store, table)
    if unknown := [name for name in values if name not in columns]:
        raise LookupError(f"{table} has no column {unknown[0]}")
    key = {name: values[name] for name in primary_key(store, table)}
    return Operation(kind=Kind.INSERT, table=table, key=_cells(key), after=_cells(values))


def _cells(values: Mapping[str, SqlValue]) -> dict[str, Any]:
    return {name: encode(value) for name, value in values.items()}
