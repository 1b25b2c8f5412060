"""How rules word what they measured: times in UTC, long lists cut short."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

#: No list in a finding's evidence is longer; the count beside it says how many there are.
MOST_LISTED = 20

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_time(value: object) -> bool:
    """Whether a cell holds epoch seconds that can be compared with others."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def moment(value: object) -> str:
    """Epoch seconds as ISO 8601 in UTC, to the second; ``unknown`` for a cell that holds no time."""
    if not isinstance(value, int | float) or not is_time(value):
        return "unknown"
    try:
        return (_EPOCH + timedelta(seconds=value)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        return "unknown"


def words(value: object, limit: int = 200) -> str | None:
    """A title, a source or another short text as evidence, cut after ``limit`` characters. A cell that holds
    no text may hold anything, so only its type is named."""
    if value is None:
        return None
    return value[:limit] if isinstance(value, str) else f"a cell of type {type(value).__name__}"


def listed(items: Iterable[str]) -> list[str]:
    """The first items, at most ``MOST_LISTED``."""
    kept: list[str] = []
    for item in items:
        if len(kept) == MOST_LISTED:
            break
        kept.append(item)
    return kept


def rows(number: int) -> str:
    """``1 row``, ``12 rows``."""
    return f"{number:,} row{'' if number == 1 else 's'}"
