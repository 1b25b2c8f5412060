"""Which rows a store may have held that are gone: row ids are given in order, and none is given twice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from statemend.audit.context import Context
from statemend.audit.facts import is_time
from statemend.store.connection import Store

#: The rows whose next id is missing, and the times before and after it; the last row of all is one of them.
GAPS = """
SELECT id, at, next_at
FROM (
  SELECT id, timestamp AS at, LEAD(id) OVER by_id AS next_id, LEAD(timestamp) OVER by_id AS next_at
  FROM messages
  WINDOW by_id AS (ORDER BY id)
)
WHERE next_id IS NULL OR next_id > id + 1
ORDER BY id
"""
FIRST_ROW = "SELECT id, timestamp FROM messages ORDER BY id LIMIT 1"
HIGHEST_EVER = "SELECT seq FROM sqlite_sequence WHERE name = 'messages'"
#: What a rule that uses this module reads.
READS = (GAPS, FIRST_ROW)


def gaps(store: Store) -> list[tuple[int, Any, Any]]:
    """Behind which row ids some are missing, in order, each with the times before and after these. The last
    stands for what may have followed the highest."""
    return store.fact("missing row ids", lambda: list(store.rows(GAPS)))


def may_have_held(context: Context, at: float, within: float) -> bool:
    """Whether the store may have held a row that was written at a time (epoch seconds, give or take
    ``within``) and is gone. Where it cannot, every row of that time is still there."""
    holes = context.once("times of missing rows", lambda: list(_holes(context)))
    return any(before - within <= at <= after + within for before, after in holes)


def highest_ever(store: Store) -> int | None:
    """The highest row id that ``messages`` ever gave; ``None`` where the store does not tell."""
    if not store.schema.has("sqlite_sequence"):
        return None
    highest = store.value(HIGHEST_EVER)
    return highest if isinstance(highest, int) else None


def _holes(context: Context) -> Iterator[tuple[float, float]]:
    """From when to when the rows of each stretch of missing ids may have been written."""
    store = context.store
    highest, first = highest_ever(store), store.one(FIRST_ROW)
    if first is None:
        if highest or not store.schema.has("sqlite_sequence"):
            yield -math.inf, math.inf
        return
    if first[0] > 1:
        yield -math.inf, _time(first[1], math.inf)
    *between, last = gaps(store)
    for _, at, next_at in between:
        before, after = _time(at, -math.inf), _time(next_at, math.inf)
        yield before, after if after >= before else math.inf  # an import brought older rows in there
    if highest is None or highest > last[0]:
        yield _time(last[1], -math.inf), math.inf


def _time(value: object, otherwise: float) -> float:
    return value if is_time(value) else otherwise  # type: ignore[return-value]
