"""The row of a session that is restored: made anew, or, where its tail made one in passing, completed."""

from __future__ import annotations

from collections.abc import Sequence

from statemend.repair import restored_rows
from statemend.repair.cells import SqlValue, decode
from statemend.repair.recipe import RecipeContext, row_of, update_of
from statemend.repair.salvaged import SalvagedRow
from statemend.repair.session_row import NAMELESS, Rebuilt, SessionRow
from statemend.repair.substring_index import MACHINES

_COUNTED = frozenset({"message_count", "tool_call_count"})
#: What a row that is there keeps: it is open, whatever an export said of an earlier end.
_KEPT = frozenset({"id", "ended_at", "end_reason", "last_activity_at"})


def session_row(context: RecipeContext, mark: str, session_id: str, rows: Sequence[SalvagedRow]) -> Rebuilt:
    """What makes the row of a session that is to hold ``rows`` besides those that it has. It waits for a
    choice, so it relies on no other step: not on a parent that would be made.

    Raises ``CannotChangeError`` where the row cannot be made without damage to a search index.
    """
    titles: dict[str, str] = context.once("titles restored", dict)
    given: set[str] = context.once("titles given", set)
    rebuilt = SessionRow(
        context,
        session_id,
        mark,
        is_planned=lambda _: False,
        is_free=lambda title: title not in given and titles.get(title, session_id) == session_id,
        rows=restored_rows.facts(context, session_id, rows),
    ).rebuild()
    if rebuilt.title is not None:
        titles.setdefault(rebuilt.title, session_id)
    existing = row_of(context.store, "sessions", {"id": session_id})
    return rebuilt if existing is None else _completed(context, session_id, rebuilt, existing)


def _completed(
    context: RecipeContext, session_id: str, rebuilt: Rebuilt, existing: dict[str, SqlValue]
) -> Rebuilt:
    """The same for a row that is there: it gets what it lacks, its counters, and its true beginning."""
    *before, made = rebuilt.operations
    values = {name: decode(cell) for name, cell in made.after.items()}
    after = {name: value for name, value in values.items() if _completes(name, value, existing[name])}
    hidden = {values["source"], existing["source"]} & MACHINES
    if after:
        before.append(update_of(context.store, "sessions", {"id": session_id}, after))
    return Rebuilt(
        operations=tuple(before),
        reindex=rebuilt.reindex if hidden else (),
        sources=tuple(each for each in rebuilt.sources if each.column.partition(".")[2] in after),
        parent=rebuilt.parent,
        title=rebuilt.title,
    )


def _completes(name: str, value: SqlValue, existing: SqlValue) -> bool:
    if name in _KEPT or value == existing:
        return False
    if name in _COUNTED:
        return True
    if name == "source":
        return existing in NAMELESS and value not in NAMELESS
    if name == "started_at":
        return isinstance(value, float) and (not isinstance(existing, float) or value < existing)
    return existing is None
