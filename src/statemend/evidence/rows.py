"""A session's rows, arranged for comparison with what artifacts show."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import filterfalse, islice
from typing import NamedTuple

from statemend.evidence.carried import carried_copies, text_key
from statemend.store.connection import Store
from statemend.store.display import fold
from statemend.store.history import Message, RowState, View, messages

#: Of so many rows that look the same the best is chosen; of more, the first.
_MOST_WEIGHED = 64
#: A record that equals no row is compared with so many rows of its place; with all it could take for ever.
_MOST_NEAR = 128


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
        states = {row.id: row.state for row in rows}
        logical = [
            Logical(shown[0], row_ids, states.get(shown[0]) is RowState.ARCHIVED)
            for shown, row_ids in (fold(store, session_id) if rows else ())
        ]
        return cls(session_id, rows, logical)

    @cached_property
    def copies(self) -> dict[int, tuple[int, ...]]:
        """Row id → the other rows that have its words under another time, where compaction copied them. A
        summary that absorbed a row has its words, and the row has not those of the summary."""
        alike: dict[int, list[int]] = {}
        absorbing: dict[int, list[int]] = {}
        for copy, original in sorted(carried_copies(self.rows).items()):
            family = alike.setdefault(original, [original])
            if text_key(self.by_id[copy]) == text_key(self.by_id[original]):
                family.append(copy)
                alike[copy] = family
            else:
                absorbing.setdefault(family[0], []).append(copy)
        return {
            row_id: (*(each for each in family if each != row_id), *absorbing.get(family[0], ()))
            for row_id, family in alike.items()
        }

    @cached_property
    def twins(self) -> dict[int, int]:
        """Row id of a copy that kept its time → the first row with the same words and time, where compaction
        may have written it again."""
        if not any(row.summary for row in self.rows):
            return {}
        first: dict[Hashable, int] = {}
        found = {row.id: first.setdefault((row.timestamp, text_key(row)), row.id) for row in self.rows}
        return {row_id: original for row_id, original in found.items() if original != row_id}


class _Passed:
    """How far each of many sequences of rows was gone through. They are known by their ids, so each is kept:
    another that came to lie in its place would be taken for it."""

    def __init__(self) -> None:
        self._starts: dict[int, tuple[int, Sequence[int]]] = {}

    def behind(self, candidates: Sequence[int], is_done: Callable[[int], bool]) -> int:
        """The place of the first candidate that is not done with. Done ones stay so."""
        start, _ = self._starts.get(id(candidates), (0, candidates))
        while start < len(candidates) and is_done(candidates[start]):
            start += 1
        if start:
            self._starts[id(candidates)] = start, candidates
        return start


class Tally:
    """What one artifact was found to hold of one session, filled in while it is compared.

    A row id is given out once. ``held`` maps row ids to their fidelity, ``changed`` are rows that the
    artifact shows with another text, ``extra`` counts records that match no row, ``repeated`` records
    that match only rows already found. ``cut`` says that the artifact ends in the middle of a message,
    ``inactive`` that it shows rows as no longer live, ``absent`` that it has no place for this session.
    ``named`` is the highest row id that its records say themselves, of rows that say the same.
    """

    def __init__(self, rows: SessionRows) -> None:
        self.held: dict[int, Fidelity] = {}
        self.changed: dict[int, None] = {}
        self.records = 0
        self.extra = 0
        self.repeated = 0
        self.cut = False
        self.inactive = False
        self.absent = False
        self.named = 0
        self._rows = rows
        self._last = 0
        self._shown: set[int] = set()
        self._taken = _Passed()
        self._passed = _Passed()

    @property
    def foreign(self) -> bool:
        """Whether the artifact shows messages, and none of them is one of the session's."""
        return self.extra > 0 and not self.held and not self.changed

    def take(self, candidates: Sequence[int], fidelity: Fidelity, hint: int | None = None) -> bool:
        """Give one of ``candidates`` to the record at hand: the row ``hint`` if it is among them, else
        one whose message has not been seen yet, in the order of the rows. One that a display hides is given
        only where it shows none of them. ``False`` when all are taken."""
        if hint is not None and hint in candidates:
            self.named = max(self.named, hint)
        hinted = hint in candidates and hint not in self.held
        chosen = hint if hinted and hint in self._rows.place else self._next(candidates)
        if hinted and chosen not in self._rows.place:
            chosen = hint
        if chosen is not None:
            self.give(chosen, fidelity)
        return chosen is not None

    def give(self, row_id: int, fidelity: Fidelity) -> None:
        """The record at hand is this row."""
        self.held[row_id] = fidelity
        self._last = row_id
        place = self._rows.place.get(row_id)
        if place is not None:
            self._shown.add(place)

    def _next(self, candidates: Sequence[int]) -> int | None:
        """The candidate to give out. Taken ones are passed over once, not again for each record."""
        start = self._taken.behind(candidates, self.held.__contains__)
        best: int | None = None
        for row_id in candidates[start : start + _MOST_WEIGHED]:
            if row_id not in self.held and (best is None or self._rank(row_id) < self._rank(best)):
                best = row_id
        return best

    def near(self, candidates: Sequence[int]) -> list[int]:
        """The first candidates that no record has been matched with. Those before them are passed over once,
        not again for each record."""
        start = self._passed.behind(candidates, self._is_matched)
        rest = (candidates[place] for place in range(start, len(candidates)))
        return list(islice(filterfalse(self._is_matched, rest), _MOST_NEAR))

    def _is_matched(self, row_id: int) -> bool:
        return row_id in self.held or row_id in self.changed

    def _rank(self, row_id: int) -> tuple[bool, bool, bool, int]:
        place = self._rows.place.get(row_id)
        return place is None, place in self._shown, row_id < self._last, row_id
