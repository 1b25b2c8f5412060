"""The ids under which the rows of a lost session come back.

A row gets the id that it had where this store gave that id and nothing has it now. What else there is gets
new ids, in their order, behind everything. Only where rows must stand before some that the store still has,
and no source tells their ids, they get numbers that this store once gave to rows that are gone: the first
free ones from the time of the first of them, which is as near to the truth as anything tells. They say so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from statemend.repair import digests
from statemend.repair.marks import CannotChangeError
from statemend.repair.recipe import RecipeContext
from statemend.repair.salvaged import Salvaged, SalvagedRow
from statemend.store.connection import Store

_TAKEN = "SELECT 1 FROM main.messages WHERE id = ?"
_HIGHEST = "SELECT COALESCE(MAX(id), 0) FROM main.messages"
#: The last row before another that is older than a time.
_OLDER = "SELECT id FROM main.messages WHERE id < ? AND timestamp < ? ORDER BY id DESC LIMIT 1"
_BETWEEN = "SELECT id FROM main.messages WHERE id > ? AND id < ? ORDER BY id"

_MADE_UP = "its id is made up: a free number from before the rows that are there"


class Numbered(NamedTuple):
    """A row and the id that it gets; ``how``, where that needs saying."""

    row_id: int
    row: SalvagedRow
    how: str | None = None


def numbered(context: RecipeContext, lost: Salvaged, rows: Sequence[SalvagedRow]) -> list[Numbered]:
    """The rows with the ids that they get. Raises ``CannotChangeError`` where the tail of the session is in
    the store, and there are not enough numbers in front of it."""
    store, given = context.store, _highest(context)
    if _may_keep(store, rows, given):
        return [Numbered(row.row_id or 0, row) for row in rows]
    used: dict[str, set[int]] = context.once("numbers given again", dict)
    mine: set[int] = set()
    found: list[Numbered] = []
    behind: list[SalvagedRow] = []
    for after, bound, group in _groups(lost, rows):
        if bound is None:
            behind = group
            continue
        others = mine.union(*(each for key, each in used.items() if key != lost.union.session_id))
        found += _in_front(store, group, max([after, *mine]), bound, others)
        mine.update(each.row_id for each in found)
    used.setdefault(lost.union.session_id, set()).update(mine)
    known = _known_in_front(store, behind, given) if not found else 0
    following: list[int] = context.once("next message", lambda: [given + 1])
    first = following[0]
    following[0] += len(behind) - known
    found += [Numbered(row.row_id or 0, row) for row in behind[:known]]
    found += [Numbered(number, row) for number, row in enumerate(behind[known:], first)]
    return found


def _groups(
    lost: Salvaged, rows: Sequence[SalvagedRow]
) -> Iterator[tuple[int, int | None, list[SalvagedRow]]]:
    """The rows that stand between the same rows of the store: the id behind which, the id before which
    (``None`` where nothing in the store follows), and the rows."""
    stored = [
        (number, row_id) for number in range(len(lost.union.messages)) if (row_id := lost.stored(number))
    ]
    rest = list(rows)
    after = 0
    for number, row_id in stored:
        group = [row for row in rest if row.message <= number]  # the row from which a stored one was made
        rest = [row for row in rest if row.message > number]
        if group:
            yield after, row_id, group
        after = max(after, row_id)
    yield after, None, rest


def _may_keep(store: Store, rows: Sequence[SalvagedRow], given: int) -> bool:
    """Whether every row may have the id that it had."""
    own = [row.row_id for row in rows if row.row_id is not None]
    return len(set(own)) == len(rows) and all(
        1 <= each <= given and store.value(_TAKEN, (each,)) is None for each in own
    )


def _known_in_front(store: Store, rows: Sequence[SalvagedRow], given: int) -> int:
    """How many rows at the beginning may have the ids that they had; the others are of no known one."""
    known = next((place for place, row in enumerate(rows) if row.row_id is None), len(rows))
    ids = [row.row_id or 0 for row in rows[:known]]
    ordered = ids == sorted(set(ids)) and all(row.row_id is None for row in rows[known:])
    return known if ordered and _may_keep(store, rows[:known], given) else 0


def _in_front(
    store: Store, rows: Sequence[SalvagedRow], after: int, bound: int, used: Collection[int]
) -> Iterator[Numbered]:
    """The rows under numbers between two: those that they had where these are in order, and free ones beside
    them; else free ones that none of them had."""
    own = [row.row_id for row in rows if row.row_id is not None]
    may_keep = own == sorted(set(own)) and all(
        after < each < bound and each not in used and store.value(_TAKEN, (each,)) is None for each in own
    )
    begun = store.value(_OLDER, (bound, rows[0].values["timestamp"])) or 0
    known = [row.row_id for row in rows] if may_keep else [None] * len(rows)
    numbers = _numbers(store, known, after, bound, begun, {*used, *own})
    if numbers is None and any(known):
        numbers = _numbers(store, [None] * len(rows), after, bound, begun, {*used, *own})
    if numbers is None:
        raise CannotChangeError(
            "its last messages are in the store, and there are not enough free numbers for those before them"
        )
    for number, row in zip(numbers, rows, strict=True):
        yield Numbered(number, row, None if row.row_id == number else _MADE_UP)


def _numbers(
    store: Store, known: Sequence[int | None], after: int, bound: int, begun: int, used: Collection[int]
) -> list[int] | None:
    """Numbers in order, those that are known among them; ``None`` where there is not enough room."""
    found: list[int] = []
    for number in (*known, bound):
        if number is None:
            continue
        missing = known.index(number) - len(found) if number != bound else len(known) - len(found)
        last = found[-1] if found else after
        free = list(islice(_free(store, max(last, begun), number, used), missing))
        if len(free) < missing:
            free = list(deque(_free(store, last, number, used), maxlen=missing))
        if len(free) < missing:
            return None
        found += free if number == bound else [*free, number]
    return found


def _free(store: Store, after: int, before: int, used: Collection[int]) -> Iterator[int]:
    """The numbers between two that no row has, and none is to get."""
    last = after
    taken_ids = (number for (number,) in store.rows(_BETWEEN, (after, before)))
    for taken in chain(taken_ids, (before,)):
        yield from (number for number in range(last + 1, taken) if number not in used)
        last = taken


def _highest(context: RecipeContext) -> int:
    """The highest id that the store ever gave to a message."""
    given = digests.sequence(context.store).get("messages", 0)
    return max(given, int(context.store.value(_HIGHEST)))
