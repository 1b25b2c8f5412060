"""Keeps the steps of a plan apart: no two of them change one cell, and a parent is made before its child."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from statemend.repair.cells import Cell
from statemend.repair.plan import Choice, Kind, Left, Step

#: A row, and the columns of it that an operation sets; ``None`` where it is made or removed as a whole.
_Claim = tuple[tuple[str, str], frozenset[str] | None]


class Claims:
    """What the steps of a plan change so far, those of options that may be chosen included."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], list[tuple[frozenset[str] | None, str]]] = {}

    def held_by_another(self, proposals: Iterable[Step | Choice | Left]) -> str | None:
        """The step in the plan that changes what one of ``proposals`` would change, or ``None``."""
        for step in steps_of(proposals):
            for row, columns in _claims(step):
                for others, holder in self._held.get(row, ()):
                    if columns is None or others is None or columns & others:
                        return holder
        return None

    def add(self, proposals: Iterable[Step | Choice | Left]) -> None:
        """Take the proposals into the plan."""
        for step in steps_of(proposals):
            for row, columns in _claims(step):
                self._held.setdefault(row, []).append((columns, step.id))


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps with each one behind those that make the session it names as parent; otherwise as given.

    Steps that name each other in a circle stay as given.
    """
    waiting = {step.id: step for step in steps}
    makers = {
        json.dumps(operation.key["id"]): step.id
        for step in waiting.values()
        for operation in step.operations
        if operation.kind is Kind.INSERT and operation.table == "sessions" and "id" in operation.key
    }
    done: list[Step] = []
    for step in list(waiting.values()):
        chain: list[Step] = []
        behind: Step | None = step
        while behind is not None and waiting.pop(behind.id, None) is not None:
            chain.append(behind)
            behind = next((waiting.get(makers.get(json.dumps(p), "")) for p in _parents(behind)), None)
        done += reversed(chain)
    return tuple(done)


def _parents(step: Step) -> Iterator[Cell]:
    for operation in step.operations:
        parent = operation.after.get("parent_session_id")
        if operation.table == "sessions" and parent is not None:
            yield parent


def steps_of(proposals: Iterable[Step | Choice | Left]) -> Iterator[Step]:
    """The steps among proposals, those of options included."""
    for one in proposals:
        if isinstance(one, Step):
            yield one
        elif isinstance(one, Choice):
            for option in one.options:
                yield from option.steps


def _claims(step: Step) -> Iterator[_Claim]:
    """What a step changes for itself. A search index is built anew for all that ask for it."""
    for operation in step.operations:
        row = (operation.table, json.dumps(operation.key, sort_keys=True))
        yield row, frozenset(operation.after) if operation.kind is Kind.UPDATE else None
