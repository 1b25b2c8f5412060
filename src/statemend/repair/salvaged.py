"""The rows that a lost session had, as far as anything still shows them: one by one, with state and order.

A union of sources says which messages survive. Here they become rows again. A row that a source names by its
id is that row; a message that a compaction kept was two rows, one archived and one live, and becomes both
where both are known of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from statemend.audit.zone import LocalClocks
from statemend.evidence.rows import Fidelity
from statemend.evidence.salvage import Place, Salvage, Salvager
from statemend.evidence.wording import WHOLE
from statemend.repair.cells import SqlValue
from statemend.repair.salvaged_calls import Calls, paired
from statemend.repair.salvaged_fields import Fields
from statemend.repair.salvaged_rows import Filled, SalvagedRow
from statemend.repair.salvaged_sources import LIVE, Sources
from statemend.repair.salvaged_states import States
from statemend.repair.salvaged_times import timed
from statemend.repair.salvaged_values import as_stored, row_values
from statemend.store.connection import Store
from statemend.store.message import RowState
from statemend.store.records import table_columns

__all__ = ["Calls", "Filled", "Salvaged", "SalvagedRow", "Way", "salvaged"]

#: The tool calls and the results that the store still has.
_CALLS = "SELECT role, tool_calls, tool_call_id FROM messages WHERE session_id = ? ORDER BY id"
#: What of it was archived.
_ARCHIVED = "SELECT id FROM messages WHERE session_id = ? AND active = 0 AND compacted = 1"


class Way(NamedTuple):
    """How contradicting sources are settled: as ``artifact`` has it, or each message kept."""

    artifact: str | None = None


class Salvaged:
    """What survives of one session, as rows."""

    def __init__(self, store: Store, salvager: Salvager, union: Salvage) -> None:
        self.union = union
        self._store = store
        self._columns = table_columns(store, "messages")
        self._sources = Sources(store, salvager.sections(union.session_id), union)
        self.states = States(self._sources)
        self._fields = Fields(self._sources, self.states, self._columns)

    @property
    def store(self) -> str:
        """The path of the store itself, as places name it."""
        return self._store.path

    @property
    def unnamed(self) -> tuple[str, ...]:
        """The files that name no session, and are known for this one's by their texts."""
        return self._sources.unnamed

    @property
    def ways(self) -> tuple[Way, ...]:
        """Every way to settle what sources contradict each other in; one where they do not."""
        if not self.union.conflicts:
            return (Way(),)
        artifacts: dict[str, None] = {}
        for conflict in self.union.conflicts:
            for number in conflict.messages:
                artifacts |= dict.fromkeys(each.artifact for each in self._sources.places(number))
            artifacts |= dict.fromkeys(each.artifact for each in conflict.variants)
        both = (Way(),) if any(len(each.messages) > 1 for each in self.union.conflicts) else ()
        return (*both, *map(Way, artifacts))

    def every_row(self) -> Iterator[dict[str, SqlValue]]:
        """The values of each row, of every way to settle contradictions."""
        for way in self.ways:
            for row in self.rows(way):
                yield row.values

    def stored(self, number: int) -> int | None:
        """The lowest id under which the store has the message."""
        ids = [each.row_id for each in self._sources.places(number) if self._is_here(each)]
        return min((each for each in ids if each is not None), default=None)

    def rows(self, way: Way = Way()) -> tuple[SalvagedRow, ...]:  # noqa: B008
        """The rows that the store lacks, in the order of their ids: the archived ones first where none is
        known."""
        return self.put_together(way)[0]

    def put_together(self, way: Way = Way()) -> tuple[tuple[SalvagedRow, ...], Calls]:  # noqa: B008
        """``rows``, and which tool calls among them are not answered by any."""
        dropped, preferred = self._settled(way)
        live = [each for each in self.states.live if each not in dropped]
        places = {number: place for place, number in enumerate(live)}
        found: list[SalvagedRow] = []
        for number in range(len(self.union.messages)):
            if number in dropped:
                continue
            if self._sources.stored(number):
                found += self._originals_of(number)
            else:
                found += self._rows_of(number, number in places, preferred.get(number))
        if all(row.row_id is not None for row in found):
            found.sort(key=lambda row: row.row_id or 0)
        else:
            now = [row for row in found if row.state is RowState.LIVE]
            found = [row for row in found if row.state is not RowState.LIVE]
            found += sorted(now, key=lambda row: places[row.message])
        stored = self._store.rows(_CALLS, (self.union.session_id,))
        rows, calls = paired(self.union.session_id, found, stored)
        return tuple(timed(rows, self.union.messages, self._clocks, self._begun)), calls

    @cached_property
    def _clocks(self) -> LocalClocks:
        return LocalClocks.load(self._store)

    @property
    def _begun(self) -> float | None:
        starts = (each.section.started_at for each in self._sources)
        return min((each for each in starts if each is not None), default=None)

    def _rows_of(self, number: int, is_live: bool, preferred: Place | None) -> Iterator[SalvagedRow]:
        """The rows that one message was."""
        by_id = self._by_id(number)
        ids: list[int | None] = [*sorted(by_id)] or [None]
        named = self._newest_names(number)
        if is_live and self.states.was_archived(number) and not (named and len(by_id) > 1):
            ids.insert(0 if named else len(ids), None)
        last = RowState.LIVE if is_live else self.states.of_lost(number)
        states = [*[self.states.replaced] * (len(ids) - 1), last]
        for row_id, state in zip(ids, states, strict=True):
            places = by_id.get(row_id or 0, [])
            told = self._state_told(places) if state is not RowState.LIVE else None
            yield self._row(number, places, row_id, told or state, preferred)

    def _originals_of(self, number: int) -> Iterator[SalvagedRow]:
        """The archived rows that a compaction left of a message, where the store has only the live one."""
        if any(each.row_id in self._archived for each in self._sources.places(number) if self._is_here(each)):
            return
        for row_id, places in sorted(self._by_id(number).items()):
            if self._state_told(places) is RowState.ARCHIVED:
                yield self._row(number, places, row_id, RowState.ARCHIVED, None)

    @cached_property
    def _archived(self) -> frozenset[int]:
        """The ids of the archived rows that the store still has."""
        return frozenset(row_id for (row_id,) in self._store.rows(_ARCHIVED, (self.union.session_id,)))

    def _is_here(self, place: Place) -> bool:
        return place.artifact == self._store.path

    def _by_id(self, number: int) -> dict[int, list[Place]]:
        """Where the rows that one message was are shown, by their ids."""
        by_id: dict[int, list[Place]] = {}
        for place in self._shown_as_rows(number):
            if place.row_id is not None:
                by_id.setdefault(place.row_id, []).append(place)
        return by_id

    def _shown_as_rows(self, number: int) -> Iterator[Place]:
        for source in self._sources:
            if source.artifact.kind in WHOLE and not self._sources.is_own(source):
                yield from source.places.get(number, ())

    def _state_told(self, places: Sequence[Place]) -> RowState | None:
        """The state that the newest of these gives to a row that was not live any more, if it does."""
        newest = max(places, key=lambda each: self._sources.at(each).age, default=None)
        state = None if newest is None else self._sources.state_at(newest)
        return None if state in LIVE else state

    def _newest_names(self, number: int) -> bool:
        """Whether the newest transcript names the live row of the message by its id."""
        newest = self._sources.newest
        return (
            newest is not None
            and newest.artifact.kind in WHOLE
            and any(each.row_id is not None for each in newest.places.get(number, ()))
        )

    def _row(
        self,
        number: int,
        places: Sequence[Place],
        row_id: int | None,
        state: RowState,
        preferred: Place | None,
    ) -> SalvagedRow:
        message = self.union.messages[number]
        best = max(places, key=lambda each: self._sources.at(each).age, default=None)
        place = preferred or best or message.place
        record = self._sources.row_at(place) or message.record
        values = row_values(as_stored(record, place.kind), self._columns)
        if "timestamp" in values and not isinstance(values["timestamp"], int | float):
            del values["timestamp"]
        if "timestamp" not in values and message.at is not None:
            values["timestamp"] = message.at
        fidelity = message.fidelity if record is message.record else Fidelity.EXACT
        filled = () if fidelity is Fidelity.EXACT else tuple(self._fields.missing(number, values))
        values |= {each.column: each.value for each in filled}
        if row_id is None and state is not RowState.LIVE:
            values.pop("message_uid", None)  # it is that of the row that took its place
        return SalvagedRow(
            message=number,
            place=place,
            state=state,
            row_id=row_id,
            values=values,
            fidelity=fidelity,
            timed="timestamp" in values,
            filled=tuple(each for each in filled if each.column in values),
        )

    def _settled(self, way: Way) -> tuple[set[int], Mapping[int, Place]]:
        """The messages that a way leaves out, and the places from which it takes others."""
        dropped: set[int] = set()
        preferred: dict[int, Place] = {}
        for conflict in self.union.conflicts if way.artifact is not None else ():
            if len(conflict.messages) == 1:
                (number,) = conflict.messages
                for place in (*self._sources.places(number), *conflict.variants):
                    if place.artifact == way.artifact:
                        preferred[number] = place
                continue
            shown = [
                number
                for number in conflict.messages
                if any(each.artifact == way.artifact for each in self._sources.places(number))
            ]
            if shown:
                dropped |= set(conflict.messages) - set(shown)
        return dropped, preferred


def salvaged(store: Store, salvager: Salvager, session_id: str) -> Salvaged:
    """What survives of a session. Raises ``StoreUnreadable``, and ``Undetermined`` when an artifact cannot be
    read."""
    return Salvaged(store, salvager, salvager.session(session_id))
