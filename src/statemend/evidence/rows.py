"""A session's rows, arranged for comparison with what artifacts show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from statemend.evidence.carried import carried_copies
from statemend.store.connection import Store
from statemend.store.history import Message, RowState, View, display, messages


class Fidelity(IntEnum):
    """How well an artifact holds a message, worst first."""

    MASKED = 1
    LOSSY = 2
    EXACT = 3


class Logical(NamedTuple):
    """One logical message: the row a display shows, all rows it folds (ascending), and whether none is
    live."""

    shown: int
    rows: tuple[int, ...]
    archived: bool


class SessionRows:
    """All rows of one session, and how a display folds them."""

    def __init__(self, session_id: str, rows: Sequence[Message], logical: Sequence[Logical]) -> None:
        self.session_id = session_id
        self.rows = rows
        self.logical = logical
        self.by_id = {row.id: row for row in rows}
        self.place = {row_id: place for place, each in enumerate(logical) for row_id in each.rows}

    @classmethod
    def load(cls, store: Store, session_id: str) -> SessionRows:
        """Raises ``StoreUnreadable``."""
        rows = list(messages(store, session_id, View.RAW))
        logical = [
            Logical(each.shown.id, each.row_ids, each.state is RowState.ARCHIVED)
            for each in (display(store, session_id) if rows else ())
        ]
        return cls(session_id, rows, logical)

    @cached_property
    def copies(self) -> dict[int, tuple[int, ...]]:
        """Row id → the other rows with the same words under another time, where compaction copied them."""
        pairs = carried_copies(self.rows)
        alike: dict[int, list[int]] = {}
        for copy, original in sorted(pairs.items()):
            alike.setdefault(original, [original]).append(copy)
            alike[copy] = alike[original]
        return {row_id: tuple(each for each in family if each != row_id) for row_id, family in alike.items()}


class Tally:
    """What one artifact was found to hold of one session, filled in while it is compared.

    A row id is given out once. ``held`` maps row ids to their fidelity, ``changed`` are rows that the
    artifact shows with another text, ``extra`` counts records that match no row, ``repeated`` records
    that match only rows already found. ``cut`` says that the artifact ends in the middle of a message,
    ``inactive`` that it shows rows as no longer live, ``absent`` that it has no place for this session.
    """

    def __init__(self, rows: SessionRows) -> None:
        self.held: dict[int, Fidelity] = {}
        self.changed: list[int] = []
        self.records = 0
        self.extra = 0
        self.repeated = 0
        self.cut = False
        self.inactive = False
        self.absent = False
        self._rows = rows
        self._last = 0
        self._shown: set[int] = set()

    def take(self, candidates: Sequence[int], fidelity: Fidelity, hint: int | None = None) -> bool:
        """Give one of ``candidates`` to the record at hand: the row ``hint`` if it is among them, else
        one whose message has not been seen yet, in the order of the rows. ``False`` when all are
        taken."""
        free = [row_id for row_id in candidates if row_id not in self.held]
        if not free:
            return False
        chosen = hint if hint in free else (free[0] if len(free) == 1 else min(free, key=self._rank))
        assert chosen is not None
        self.held[chosen] = fidelity
        self._last = chosen
        place = self._rows.place.get(chosen)
        if place is not None:
            self._shown.add(place)
        return True

    def free(self, candidates: Iterable[int]) -> list[int]:
        """The candidates that no record has been matched with."""
        return [row_id for row_id in candidates if row_id not in self.held and row_id not in self.changed]

    def _rank(self, row_id: int) -> tuple[bool, bool, bool, int]:
        place = self._rows.place.get(row_id)
        return place is None, place in self._shown, row_id < self._last, row_id
