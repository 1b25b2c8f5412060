"""The rows that a lost session had, as far as anything still shows them: one by one, with state and order.

A union of sources says which messages survive. Here they become rows again. A row that a source names by its
id is that row; a message that a compaction kept was two rows, one archived and one live, and becomes both
where both are known of. Which rows are live is what the newest transcript shows: what it lacks had been
archived, if it shows the summary of it, or taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from statemend import formats
from statemend.evidence.inventory import Inventory
from statemend.evidence.rows import Fidelity
from statemend.evidence.salvage import Place, Salvage, Saved, salvage
from statemend.evidence.shown import state_of
from statemend.evidence.wording import WHOLE
from statemend.formats.artifact import FILTERED, IN_MEMORY, Artifact, Kind, Record, Section
from statemend.repair.cells import SqlValue
from statemend.repair.salvaged_values import row_values
from statemend.store.connection import Store
from statemend.store.content import is_summary_text
from statemend.store.message import RowState
from statemend.store.records import table_columns

#: One section of one artifact.
_Key = tuple[str, int]
_LIVE = frozenset({RowState.LIVE, RowState.UNSET, None})


class Way(NamedTuple):
    """How contradicting sources are settled: as ``artifact`` has it, or each message kept."""

    artifact: str | None = None


class SalvagedRow(msgspec.Struct, frozen=True):
    """One row to be written. ``row_id`` is the one it had, where that is known. ``values`` are its columns
    but for id, session and state; ``place`` is where they come from. ``message`` is its number in the union.
    ``timed`` is whether a source tells its time."""

    message: int
    place: Place
    state: RowState
    row_id: int | None
    values: dict[str, SqlValue]
    fidelity: Fidelity
    timed: bool = True


class _Shown(NamedTuple):
    """One source, and the places in which it shows messages, by their number."""

    artifact: Artifact
    section: Section
    places: dict[int, list[Place]]
    age: tuple[float, int, float]
    summarises: bool

    @property
    def lasts(self) -> tuple[float, int]:
        return self.age[:2]


class Salvaged:
    """What survives of one session, as rows."""

    def __init__(self, store: Store, inventory: Inventory, union: Salvage) -> None:
        self.union = union
        self._store = store
        self._columns = table_columns(store, "messages")
        named = inventory.by_session().get(union.session_id, [])
        named = named + inventory.stores_by_session().get(union.session_id, [])
        self._named = {(artifact.path, section.offset): (artifact, section) for artifact, section in named}
        self._records: dict[_Key, dict[int, Record]] = {}
        self._sources = self._by_source()
        self.newest = self._newest()

    @property
    def ways(self) -> tuple[Way, ...]:
        """Every way to settle what sources contradict each other in; one where they do not."""
        if not self.union.conflicts:
            return (Way(),)
        artifacts: dict[str, None] = {}
        for conflict in self.union.conflicts:
            for number in conflict.messages:
                artifacts |= dict.fromkeys(each.artifact for each in self._places(number))
            artifacts |= dict.fromkeys(each.artifact for each in conflict.variants)
        both = (Way(),) if any(len(each.messages) > 1 for each in self.union.conflicts) else ()
        return (*both, *map(Way, artifacts))

    def every_row(self) -> Iterator[dict[str, SqlValue]]:
        """The values of each row, of every way to settle contradictions."""
        for way in self.ways:
            for row in self.rows(way):
                yield row.values

    def stored(self, number: int) -> bool:
        """Whether the store has the message."""
        return any(each.artifact == self._store.path for each in self._places(number))

    def rows(self, way: Way = Way()) -> tuple[SalvagedRow, ...]:  # noqa: B008
        """The rows that the store lacks, in the order of their ids: the archived ones first where none is
        known."""
        dropped, preferred = self._settled(way)
        live = [each for each in self._live() if each not in dropped]
        places = {number: place for place, number in enumerate(live)}
        found: list[SalvagedRow] = []
        for number in range(len(self.union.messages)):
            if number not in dropped and not self.stored(number):
                found += self._rows_of(number, number in places, preferred.get(number))
        if all(row.row_id is not None for row in found):
            found.sort(key=lambda row: row.row_id or 0)
        else:
            now = [row for row in found if row.state is RowState.LIVE]
            found = [row for row in found if row.state is not RowState.LIVE]
            found += sorted(now, key=lambda row: places[row.message])
        return tuple(self._timed(found))

    def _places(self, number: int) -> tuple[Place, ...]:
        message = self.union.messages[number]
        return (message.place, *message.others)

    def _by_source(self) -> dict[_Key, _Shown]:
        places: dict[_Key, dict[int, list[Place]]] = {}
        variants: dict[int, list[Place]] = {}
        for conflict in self.union.conflicts:
            variants.setdefault(conflict.messages[0], []).extend(conflict.variants)
        for number in range(len(self.union.messages)):
            for place in (*self._places(number), *variants.get(number, ())):
                key = (place.artifact, place.offset)
                places.setdefault(key, {}).setdefault(number, []).append(place)
        here = Artifact(self._store.path, Kind.STORE, size=0, modified_at=0.0, sha256="")
        mine = (here, Section(session_id=self.union.session_id, offset=0, length=0))
        found = {}
        for key, shown in places.items():
            artifact, section = self._named.get(key, mine)
            times = [at for number in shown if (at := self.union.messages[number].at) is not None]
            ids = [each.row_id or 0 for many in shown.values() for each in many]
            written = section.exported_at or artifact.modified_at
            age = (max(times, default=0.0), max(ids, default=0), written)
            summarises = any(self._is_summary(number) for number in shown)
            found[key] = _Shown(artifact, section, shown, age, summarises)
        return found

    def _is_summary(self, number: int) -> bool:
        record = self.union.messages[number].record
        return record.summary or is_summary_text(record.content)

    def _newest(self) -> _Shown | None:
        """The newest transcript. What was written from memory, or appended since the session was lost, says
        what is live only once it shows a summary."""
        able = [
            each
            for each in self._sources.values()
            if each.artifact.kind not in FILTERED
            and each.section.damage is None
            and each.artifact.damage is None
            and (each.section.declared or 0) <= sum(map(len, each.places.values()))
            and (
                each.summarises
                or (each.artifact.kind not in IN_MEMORY and each.artifact.path != self._store.path)
            )
        ]
        return max(able, key=lambda each: (each.age, each.artifact.path), default=None)

    def _record(self, place: Place) -> Record | None:
        """The record at a place of a format that has whole rows."""
        if place.kind not in WHOLE or place.artifact == self._store.path:
            return None
        key = (place.artifact, place.offset)
        if key not in self._records:
            artifact, section = self._named[key]
            records = formats.records(Path(artifact.path), artifact, section)
            self._records[key] = {each.position: each for each in records}
        return self._records[key].get(place.position)

    def _state_at(self, place: Place) -> RowState | None:
        record = self._record(place)
        return None if record is None else state_of(record)

    def _live(self) -> list[int]:
        """The messages that were live at the end, in their order then."""
        messages, newest = self.union.messages, self.newest
        if newest is None:
            return [number for number, each in enumerate(messages) if each.state in _LIVE]
        seen = [
            (place.row_id if place.kind in WHOLE and place.row_id is not None else place.position, number)
            for number, places in newest.places.items()
            for place in places
            if self._state_at(place) in _LIVE
        ]
        last = {number: order for order, number in sorted(seen)}
        live = sorted(last, key=lambda number: last[number])
        summary = next((each for each in reversed(live) if self._is_summary(each)), None)
        for number, message in enumerate(messages):
            if number in last or number in newest.places or message.state not in _LIVE:
                continue
            if not self._is_replaced(number, summary):
                later = next((place for place, each in enumerate(live) if each > number), len(live))
                live.insert(later, number)
        return live

    def _is_replaced(self, number: int, summary: int | None) -> bool:
        """Whether the newest transcript lacks a message because it had been archived or taken back."""
        newest, message = self.newest, self.union.messages[number]
        if newest is None or self._is_later(message, newest.lasts):
            return False
        if summary is not None:
            at, then = message.at, self.union.messages[summary].at
            return number < summary if at is None or then is None else at <= then
        return newest.artifact.kind in WHOLE

    def _is_later(self, message: Saved, than: tuple[float, int]) -> bool:
        at, highest = than
        ids = [each.row_id for each in (message.place, *message.others) if each.row_id is not None]
        if ids and highest:
            return min(ids) > highest
        return message.at is not None and message.at > at

    def _rows_of(self, number: int, is_live: bool, preferred: Place | None) -> Iterator[SalvagedRow]:
        """The rows that one message was."""
        by_id: dict[int, list[Place]] = {}
        for key, source in self._sources.items():
            if key[0] != self._store.path and source.artifact.kind in WHOLE:
                for place in source.places.get(number, ()):
                    if place.row_id is not None:
                        by_id.setdefault(place.row_id, []).append(place)
        ids: list[int | None] = [*sorted(by_id)] or [None]
        if is_live and self._was_archived(number) and not self._names_both(number, by_id):
            if self._names_the_live(number):
                ids.insert(0, None)
            else:
                ids.append(None)
        last = RowState.LIVE if is_live else self._state_of_lost(number)
        for row_id, state in zip(ids, [*[self._replaced] * (len(ids) - 1), last], strict=True):
            yield self._row(number, by_id.get(row_id or 0, ()), row_id, state, preferred)

    @property
    def _replaced(self) -> RowState:
        """The state of a row whose place another took."""
        summarised = self.newest is not None and self.newest.summarises
        return RowState.ARCHIVED if summarised else RowState.REWOUND

    def _state_of_lost(self, number: int) -> RowState:
        state = self.union.messages[number].state
        return self._replaced if state is None or state in _LIVE else state

    def _names_both(self, number: int, ids: Collection[int]) -> bool:
        """Whether the live row that a compaction made of the message is known beside the archived one."""
        return len(ids) > 1 and self._names_the_live(number)

    def _names_the_live(self, number: int) -> bool:
        """Whether the newest transcript names the live row of the message by its id."""
        newest = self.newest
        return (
            newest is not None
            and newest.artifact.kind in WHOLE
            and any(each.row_id is not None for each in newest.places.get(number, ()))
        )

    def _was_archived(self, number: int) -> bool:
        """Whether a message that the newest transcript shows live had been there before its summary too."""
        newest = self.newest
        if newest is None or not newest.summarises or number not in newest.places:
            return False
        if self._is_summary(number):
            return False
        if any(
            number in each.places and not each.summarises and each.artifact.path != self._store.path
            for each in self._sources.values()
            if each.artifact.kind not in FILTERED
        ):
            return True
        return self._stood_before(number, newest)

    def _stood_before(self, number: int, newest: _Shown) -> bool:
        """Whether a display shows it before rows that are archived, or before the summary that it follows."""
        archived = [
            each
            for each, places in newest.places.items()
            if all(self._state_at(place) is RowState.ARCHIVED for place in places)
        ]
        if not archived:
            return False
        summaries = [each for each in newest.places if self._is_summary(each) and each not in archived]
        last = max([*archived, *summaries])
        return number < last

    def _row(
        self,
        number: int,
        places: Sequence[Place],
        row_id: int | None,
        state: RowState,
        preferred: Place | None,
    ) -> SalvagedRow:
        message = self.union.messages[number]
        best = max(places, key=lambda each: self._sources[each.artifact, each.offset].age, default=None)
        place = preferred or best or message.place
        record = self._record(place) or message.record
        values = row_values(record, self._columns)
        if "timestamp" in values and not isinstance(values["timestamp"], int | float):
            del values["timestamp"]
        if "timestamp" not in values and message.at is not None:
            values["timestamp"] = message.at
        if row_id is None and state is not RowState.LIVE:
            values.pop("message_uid", None)  # it is that of the row that took its place
        fidelity = message.fidelity if record is message.record else Fidelity.EXACT
        return SalvagedRow(number, place, state, row_id, values, fidelity, "timestamp" in values)

    def _timed(self, rows: Sequence[SalvagedRow]) -> Iterator[SalvagedRow]:
        """The rows, those of which no source tells the time with that of the row before."""
        times = [row.values["timestamp"] for row in rows if row.timed]
        at = times[0] if times else 0.0
        for row in rows:
            at = row.values.get("timestamp", at)
            yield msgspec.structs.replace(row, values=row.values | {"timestamp": at})

    def _settled(self, way: Way) -> tuple[set[int], Mapping[int, Place]]:
        """The messages that a way leaves out, and the places from which it takes others."""
        dropped: set[int] = set()
        preferred: dict[int, Place] = {}
        for conflict in self.union.conflicts if way.artifact is not None else ():
            if len(conflict.messages) == 1:
                (number,) = conflict.messages
                for place in (*self._places(number), *conflict.variants):
                    if place.artifact == way.artifact:
                        preferred[number] = place
                continue
            shown = [
                number
                for number in conflict.messages
                if any(each.artifact == way.artifact for each in self._places(number))
            ]
            if shown:
                dropped |= set(conflict.messages) - set(shown)
        return dropped, preferred


def salvaged(store: Store, inventory: Inventory, session_id: str) -> Salvaged:
    """What survives of a session. Raises ``StoreUnreadable``, and ``Undetermined`` when an artifact cannot be
    read."""
    return Salvaged(store, inventory, salvage(store, inventory, session_id))
