"""Which messages of a lost session were live at its end, and which of them had another row before.

What the newest transcript lacks had been archived, if it shows the summary of it, or taken back. One without
flags that shows more than a model was sent does not tell which of it was live; where the number of live
messages that it bears decides that, it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from statemend.evidence.saved import Saved
from statemend.evidence.wording import WHOLE, text_of
from statemend.formats.artifact import FILTERED, Kind
from statemend.repair.salvaged_sources import LIVE, Shown, Sources
from statemend.store.message import RowState

#: Compaction keeps so many first messages before its summary.
_KEPT_HEAD = 3
#: Rows of one insert that lack a time are stamped a microsecond apart, or all alike (seconds, with room for
#: the rounding of floats).
_STEP = 2e-6


class States:
    """The states of the messages of one union."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._messages = sources.union.messages

    @cached_property
    def live(self) -> list[int]:
        """The messages that were live at the end, in their order then."""
        newest = self._sources.newest
        if newest is None:
            return [number for number, each in enumerate(self._messages) if each.state in LIVE]
        shown = self._in_order(newest)
        head = self._kept_head or {}
        live = sorted(head, key=head.__getitem__)
        live += [number for number in shown if number not in self._archived and number not in head]
        summary = next((each for each in reversed(live) if self._sources.is_summary(each)), None)
        for number, message in enumerate(self._messages):
            if number in newest.places or message.state not in LIVE:
                continue
            if not self._is_replaced(number, newest, summary):
                later = next((place for place, each in enumerate(live) if each > number), len(live))
                live.insert(later, number)
        return live

    @cached_property
    def undecided(self) -> tuple[int, ...]:
        """Messages that are taken for live although a compaction had archived some of them: nothing tells
        which."""
        newest = self._sources.newest
        if newest is None or self._kept_head is not None or self._has_flags(newest):
            return ()
        shown = self._in_order(newest)
        before = self._before_summary(shown)
        left = tuple(each for each in shown[:before] if each not in self._archived)
        if self._tells_more_than_live(newest):
            return () if len(left) + len(shown) - before == newest.section.source_count else left
        return left if len(left) > _KEPT_HEAD else ()

    @property
    def replaced(self) -> RowState:
        """The state of a row whose place another took."""
        newest = self._sources.newest
        return RowState.ARCHIVED if newest is not None and newest.summarises else RowState.REWOUND

    def of_lost(self, number: int) -> RowState:
        """The state of a message that was not live at the end."""
        state = self._messages[number].state
        return self.replaced if state is None or state in LIVE else state

    def was_archived(self, number: int) -> bool:
        """Whether a message that the newest transcript shows live had been there before its summary too, as a
        row of its own that no source names."""
        newest = self._sources.newest
        if newest is None or not newest.summarises or number not in newest.places:
            return False
        if self._shows_every_row(newest) or self._sources.is_summary(number):
            return False
        if self._has_original(number, newest):
            return False
        if any(
            number in each.places and not each.summarises and not self._sources.is_own(each)
            for each in self._sources
            if each.artifact.kind not in FILTERED
        ):
            return True
        return self._stood_before(number, newest)

    @cached_property
    def _archived(self) -> set[int]:
        """The messages that the newest transcript shows, and that were not live."""
        newest = self._sources.newest
        if newest is None:
            return set()
        if self._has_flags(newest):
            return newest.places.keys() - set(self._in_order(newest))
        known = {number for number in newest.places if self._messages[number].state is RowState.ARCHIVED}
        if self._kept_head is None:
            return known
        shown = self._in_order(newest)
        return known | (set(shown[: self._before_summary(shown)]) - self._kept_head.keys())

    @cached_property
    def _kept_head(self) -> dict[int, int] | None:
        """The live messages before the summary, and the place of each, where the number of live ones decides
        it: they are the summary, what follows it, and at most a short head. ``None`` where it does not."""
        newest = self._sources.newest
        if newest is None or not self._tells_more_than_live(newest):
            return None
        shown = self._in_order(newest)
        before = self._before_summary(shown)
        head = (newest.section.source_count or 0) - (len(shown) - before)
        if not before or len(shown) != newest.section.declared or not 0 <= head <= min(_KEPT_HEAD, before):
            return None
        return {
            self._in_other_form(number, shown[head:before]): place
            for place, number in enumerate(shown[:head])
        }

    def _tells_more_than_live(self, source: Shown) -> bool:
        """Whether a source without flags says that it shows more messages than were live."""
        declared, live = source.section.declared, source.section.source_count
        return declared is not None and live is not None and declared > live and not self._has_flags(source)

    def _in_other_form(self, number: int, among: list[int]) -> int:
        """The row that a compaction wrote of a message, where that had parts and the first one was text, so
        that a display shows both; else the message itself."""
        at, words = self._messages[number].at, self._words(number)
        alike = (each for each in among if self._messages[each].at == at and self._words(each) == words)
        return next(alike, number)

    def _before_summary(self, shown: list[int]) -> int:
        """How many of these stand before the last summary among them."""
        places = [place for place, each in enumerate(shown) if self._sources.is_summary(each)]
        return max(places, default=0)

    def _has_flags(self, source: Shown) -> bool:
        return any(
            self._sources.state_at(place) is not None for places in source.places.values() for place in places
        )

    def _in_order(self, source: Shown) -> list[int]:
        """The messages that a source shows as live, or without a state, in its order; one with several rows
        where the last of them stands."""
        seen = [
            (place.row_id if place.kind in WHOLE and place.row_id is not None else place.position, number)
            for number, places in source.places.items()
            for place in places
            if self._sources.state_at(place) in LIVE
        ]
        last = {number: order for order, number in sorted(seen)}
        return sorted(last, key=lambda number: last[number])

    def _is_replaced(self, number: int, newest: Shown, summary: int | None) -> bool:
        """Whether the newest transcript lacks a message because it had been archived or taken back."""
        message = self._messages[number]
        if _is_later(message, newest.lasts):
            return False
        if summary is not None:
            at, then = message.at, self._messages[summary].at
            return number < summary if at is None or then is None else at <= then
        return newest.artifact.kind in WHOLE

    def _has_original(self, number: int, newest: Shown) -> bool:
        """Whether it is the copy, under the time of the compaction or in another form, of a message that is
        known."""
        at = self._messages[number].at
        originals = [
            each
            for each in self._by_words[self._words(number)]
            if each < number and each not in self.live_set
        ]
        if any(self._messages[each].at == at for each in originals):
            return True
        stamps = {each: self._messages[each].at for each in newest.places if self._sources.is_summary(each)}
        return bool(originals) and any(
            at is not None and then is not None and abs(at - then) <= _STEP * (abs(each - number) + 1)
            for each, then in stamps.items()
        )

    def _shows_every_row(self, source: Shown) -> bool:
        """Whether a source leaves no row out: a store, or one with rows that a display hides."""
        return source.artifact.kind is Kind.STORE or any(
            self._sources.state_at(place) is RowState.REWOUND
            for places in source.places.values()
            for place in places
        )

    @cached_property
    def live_set(self) -> frozenset[int]:
        """The same, without their order."""
        return frozenset(self.live)

    @cached_property
    def _by_words(self) -> Mapping[tuple[str, str], list[int]]:
        found: dict[tuple[str, str], list[int]] = {}
        for number in range(len(self._messages)):
            found.setdefault(self._words(number), []).append(number)
        return found

    def _words(self, number: int) -> tuple[str, str]:
        record = self._messages[number].record
        return record.role, text_of(record)

    def _stood_before(self, number: int, newest: Shown) -> bool:
        """Whether a display shows it before rows that are archived, or before the summary that it follows."""
        archived = self._archived & newest.places.keys()
        if not archived:
            return False
        summaries = [
            each for each in newest.places if self._sources.is_summary(each) and each not in archived
        ]
        return number < max([*archived, *summaries])


def _is_later(message: Saved, than: tuple[float, int]) -> bool:
    at, highest = than
    ids = [each.row_id for each in (message.place, *message.others) if each.row_id is not None]
    if ids and highest:
        return min(ids) > highest
    return message.at is not None and message.at > at
