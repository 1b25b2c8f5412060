"""Putting together what several sources show of one session: each message once, in their order.

A message is known by what makes it one (role, content, time, ids of tools and calls). Sources that have all
of it are put together by that alone. A source that drops some is compared by what it has, one record with one
message, in order; what equals none is a message that only it shows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from statemend.evidence import lenses
from statemend.evidence.masks import hides, tells
from statemend.evidence.rows import Fidelity
from statemend.evidence.shown import Shown, Source, state_of
from statemend.evidence.wording import (
    SECONDS,
    WHOLE,
    Phrase,
    agrees,
    known_by,
    phrases,
    same_moment,
    texts_of,
)
from statemend.evidence.zones import Zone, epoch_second, solve
from statemend.formats.artifact import Kind, Record
from statemend.store.history import RowState

#: Of so many messages with the same words the right one is looked for.
_MOST_WEIGHED = 64
#: So many characters are words of their own.
_TELLING = 20
#: Where a display shows a row.
_VISIBLE = frozenset({RowState.LIVE, RowState.ARCHIVED, RowState.UNSET, None})


class Sighting(NamedTuple):
    """One record of a source, and the time (epoch seconds) that it means, if it tells one."""

    source: Source
    record: Record
    at: float | None
    fidelity: Fidelity
    cut: bool = False


class Entry:
    """One message under construction. ``rows`` is how often one source shows it as a row of its own."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.sightings: list[Sighting] = []
        self.variants: list[Sighting] = []
        self.rows = 1

    @property
    def best(self) -> Sighting:
        """The sighting that keeps most: the first source of the best fidelity."""
        return max(self.sightings, key=lambda each: (each.fidelity, not each.cut, -each.source.number))

    @property
    def at(self) -> float | None:
        """The time that the finest clock gives it."""
        return next((each.at for each in self.sightings if each.at is not None), None)

    def mask(self, record: Record, kind: Kind) -> None:
        """Of what stands in this message masked, ``record`` has the text."""
        self.sightings = [
            each._replace(fidelity=Fidelity.MASKED)
            if hides(*texts_of(each.record, each.source.kind, record, kind))
            else each
            for each in self.sightings
        ]


class Doubt(NamedTuple):
    """Two messages of one role and one moment that no source shows both: one that was changed, or two."""

    one: int
    other: int


class Union:
    """Every message of one session that its sources show. Sources are added one by one, the best first."""

    def __init__(self, starts: Mapping[int, float]) -> None:
        """``starts`` are the times (epoch seconds) at which sources say that the session began."""
        self.entries: list[Entry] = []
        self.order: list[int] = []
        self._position: dict[int, int] = {}
        self.doubts: list[Doubt] = []
        self.zones: dict[int, Zone] = {}
        self.records: Counter[int] = Counter()
        self._starts = starts
        self._identities: dict[Hashable, int] = {}
        self._spoken: dict[Phrase, list[int]] = defaultdict(list)
        self._spoken_at: dict[tuple[Phrase, int | None], list[int]] = defaultdict(list)
        self._moments: dict[tuple[str, int | None], list[int]] = defaultdict(list)

    def add(self, source: Source, shown: Iterable[Shown]) -> None:
        """Put in what one source shows."""
        first_new = len(self.entries)
        places: dict[int, bool] = {}
        taken: Counter[int] = Counter()
        cursors: dict[int, int] = {}
        behind = 0
        for item in self._timed(source, shown):
            self.records[source.number] += 1
            number = self._known(source, *item, taken, cursors)
            if number is None:
                number = self._unclocked(source, *item, taken, behind)
            if number is None:
                number = self._new(source, *item, taken, cursors)
            behind = self._position.get(number, behind - 1) + 1
            taken[number] += 1
            visible = state_of(item[0].record) in _VISIBLE
            if visible and places.get(number) is False:
                del places[number]  # a display shows it where its first visible row stands
            places.setdefault(number, visible)
        if source.kind in WHOLE:
            for number, count in taken.items():
                self.entries[number].rows = max(self.entries[number].rows, count)
        self.order = list(self._merged(list(places), first_new))
        self._position = {number: place for place, number in enumerate(self.order)}

    def alike(self) -> Iterator[list[Entry]]:
        """Messages that say the same at different times, where they say enough not to be anybody's."""
        for phrase, numbers in self._spoken.items():
            if len(numbers) > 1 and (phrase.calls or len(phrase.words) >= _TELLING):
                yield [self.entries[number] for number in numbers]

    def _timed(
        self, source: Source, shown: Iterable[Shown]
    ) -> Iterator[tuple[Shown, Sequence[float | None]]]:
        """The records with the times that each may mean."""
        if source.kind is not Kind.HTML:
            for item in shown:
                yield item, (item.record.timestamp,)
            return
        items = list(shown)
        zone = self._zone(source, items)
        self.zones[source.number] = zone
        for item in items:
            seconds = zone.seconds(item.record.clock)
            yield item, [None if second is None else float(second) for second in seconds] or (None,)

    def _zone(self, source: Source, items: Sequence[Shown]) -> Zone:
        """The zone of a page's clock, from the messages and the start that it shares with others."""
        stored: dict[Hashable, list[int]] = {
            key: [second for each in numbers if (second := epoch_second(self.entries[each].at)) is not None]
            for key, numbers in self._spoken.items()
        }
        shown: list[tuple[Hashable, str | None]] = [
            (key, item.record.clock) for item in items for key in phrases(item.record, source.kind)
        ]
        others = [int(at) for number, at in self._starts.items() if number != source.number]
        if source.section.clock is not None and others:
            stored["started"] = others
            shown.append(("started", source.section.clock))
        return solve(shown, stored)

    def _known(
        self,
        source: Source,
        item: Shown,
        times: Sequence[float | None],
        taken: Counter[int],
        cursors: dict[int, int],
    ) -> int | None:
        """The message that a record shows, if another source showed it before, or this one did."""
        record, known, cut = item
        if known is not None:
            return self._see(known, source, record, self.entries[known].at, cut=cut)
        if source.kind in WHOLE:
            for identity in lenses.JSONL.record_keys(record):
                found = self._identities.get(identity)
                if found is not None:
                    return self._see(found, source, record, times[0], cut=cut)
        for time in times:
            found = self._alike(source, record, time, taken, cursors)
            if found is not None:
                return self._see(found, source, record, time, cut=cut)
        for time in times:
            found = self._disguised(source, item, time, taken, cursors)
            if found is not None:
                return found
        return None

    def _alike(
        self,
        source: Source,
        record: Record,
        time: float | None,
        taken: Counter[int],
        cursors: dict[int, int],
    ) -> int | None:
        """A message with the same words that this source has not shown yet."""
        if source.kind in WHOLE:
            return None
        free: list[int] = []
        for key in phrases(record, source.kind):
            for numbers in self._with_words(key, time):
                start = cursors.get(id(numbers), 0)
                while start < len(numbers) and taken[numbers[start]] >= self.entries[numbers[start]].rows:
                    start += 1
                cursors[id(numbers)] = start
                for number in numbers[start : start + _MOST_WEIGHED]:
                    entry = self.entries[number]
                    if taken[number] < entry.rows and self._may_be(entry, source, record, time):
                        free.append(number)
        rows = {self.entries[each].best.record.row_id: each for each in sorted(free, reverse=True)}
        same_row = None if record.row_id is None else rows.get(record.row_id)
        return min(free, default=None) if same_row is None else same_row

    def _with_words(self, key: Phrase, time: float | None) -> list[list[int]]:
        """The messages with these words that may be of this time."""
        if time is None:
            return [self._spoken[key]]
        return [self._spoken_at[key, epoch_second(time)], self._spoken_at[key, None]]

    def _may_be(self, entry: Entry, source: Source, record: Record, time: float | None) -> bool:
        best = entry.best
        if not agrees(record, source.kind, best.record, best.source.kind):
            return False
        if time is None or best.at is None:
            clocks = {each.clock for each in (record, best.record)}
            return len(clocks) == 1 or None in clocks or time is not None or best.at is not None
        return same_moment(time, source.kind, best.at, best.source.kind)

    def _disguised(
        self,
        source: Source,
        item: Shown,
        time: float | None,
        taken: Counter[int],
        cursors: dict[int, int],
    ) -> int | None:
        """A message of the same moment that the record shows masked, cut off or changed; or that was masked,
        and the record shows plainly."""
        record = item.record
        for number in self._near(source, record, time, taken, cursors):
            best = self.entries[number].best
            text, plain = texts_of(record, source.kind, best.record, best.source.kind)
            if hides(text, plain):
                return self._see(number, source, record, time, fidelity=Fidelity.MASKED)
            if hides(plain, text):
                self.entries[number].mask(record, source.kind)
                self._index(number, source, record, time)
                return self._see(number, source, record, time)
            if (item.cut and plain.startswith(text)) or (best.cut and text.startswith(plain)):
                self._index(number, source, record, time)
                return self._see(number, source, record, time, cut=item.cut)
            if source.kind in WHOLE and record.row_id is not None and record.row_id == best.record.row_id:
                self.entries[number].variants.append(Sighting(source, record, time, source.fidelity))
                return number
        return None

    def _unclocked(
        self, source: Source, item: Shown, times: Sequence[float | None], taken: Counter[int], behind: int
    ) -> int | None:
        """A message that the record shows masked, or plainly where others show it masked, and of which one
        of the two tells no time: among those that stand next behind what its source showed before."""
        record = item.record
        for number in self.order[behind : behind + _MOST_WEIGHED]:
            entry = self.entries[number]
            best, time = entry.best, times[0]
            if taken[number] or (time is not None and entry.at is not None):
                continue
            if record.role.lower() != best.record.role.lower():
                continue
            text, plain = texts_of(record, source.kind, best.record, best.source.kind)
            named = record.tool_call_id is not None and record.tool_call_id == best.record.tool_call_id
            if (named or tells(text)) and hides(text, plain):
                return self._see(number, source, record, time, fidelity=Fidelity.MASKED)
            if (named or tells(plain)) and hides(plain, text):
                entry.mask(record, source.kind)
                self._index(number, source, record, time)
                return self._see(number, source, record, time)
        return None

    def _near(
        self,
        source: Source,
        record: Record,
        time: float | None,
        taken: Counter[int],
        cursors: dict[int, int],
    ) -> list[int]:
        """The first messages of the same role and moment that this source has not shown yet."""
        if time is None:
            return []
        numbers = self._moments.get((record.role.lower(), epoch_second(time)), [])
        start = cursors.get(id(numbers), 0)
        while start < len(numbers) and taken[numbers[start]]:
            start += 1
        cursors[id(numbers)] = start
        near = (
            numbers[place]
            for place in range(start, len(numbers))
            if not taken[numbers[place]] and self._is_of(numbers[place], source, time)
        )
        return list(islice(near, _MOST_WEIGHED))

    def _is_of(self, number: int, source: Source, time: float) -> bool:
        """Whether a message is of this time."""
        entry = self.entries[number]
        return entry.at is not None and same_moment(time, source.kind, entry.at, entry.best.source.kind)

    def _new(
        self,
        source: Source,
        item: Shown,
        times: Sequence[float | None],
        taken: Counter[int],
        cursors: dict[int, int],
    ) -> int:
        """A message that no source before this one shows."""
        entry = Entry(len(self.entries))
        time = times[0]
        for number in self._near(source, item.record, time, taken, cursors):
            if not {source.kind, self.entries[number].best.source.kind} & SECONDS:
                self.doubts.append(Doubt(number, entry.number))
        self.entries.append(entry)
        self._index(entry.number, source, item.record, time)
        if source.kind in WHOLE:
            for identity in lenses.JSONL.record_keys(item.record):
                self._identities[identity] = entry.number
        return self._see(entry.number, source, item.record, time, cut=item.cut)

    def _index(self, number: int, source: Source, record: Record, time: float | None) -> None:
        for key in known_by(record, source.kind):
            for numbers in (self._spoken[key], self._spoken_at[key, epoch_second(time)]):
                if number not in numbers[-1:]:
                    numbers.append(number)
        moment = (record.role.lower(), epoch_second(time))
        if number not in self._moments[moment][-1:]:
            self._moments[moment].append(number)

    def _see(
        self,
        number: int,
        source: Source,
        record: Record,
        time: float | None,
        *,
        cut: bool = False,
        fidelity: Fidelity | None = None,
    ) -> int:
        self.entries[number].sightings.append(
            Sighting(source, record, time, source.fidelity if fidelity is None else fidelity, cut)
        )
        return number

    def _merged(self, sequence: Sequence[int], first_new: int) -> Iterator[int]:
        """The order so far, with the new messages of a source where it shows them: between the same
        neighbours, and among what others have there by their times."""
        old, position = self.order, self._position
        done = 0
        for run, until in _runs(sequence, first_new):
            ahead = len(old) if until is None else position[until]
            for number in run:
                while done < ahead and not self._is_later(old[done], number):
                    yield old[done]
                    done += 1
                yield number
            while until is not None and done <= ahead:
                yield old[done]
                done += 1
        yield from old[done:]

    def _is_later(self, one: int, other: int) -> bool:
        """Whether the first of two messages, of which no source says it, came later."""
        first, second = self.entries[one], self.entries[other]
        if first.at is None or second.at is None:
            clocks = first.best.record.clock, second.best.record.clock
            if first.at is None and second.at is None and clocks[0] and clocks[1]:
                return clocks[0] > clocks[1]
            return second.at is None
        if same_moment(first.at, first.best.source.kind, second.at, second.best.source.kind):
            ids = first.best.record.row_id, second.best.record.row_id
            return ids[0] is not None and ids[1] is not None and ids[0] > ids[1]
        return first.at > second.at


def _runs(sequence: Sequence[int], first_new: int) -> Iterator[tuple[list[int], int | None]]:
    """The new messages of a sequence, run by run, each with the known one that follows it, if one does."""
    run: list[int] = []
    for number in sequence:
        if number < first_new:
            yield run, number
            run = []
        else:
            run.append(number)
    yield run, None
