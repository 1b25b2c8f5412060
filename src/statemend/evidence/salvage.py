"""What survives of one session in the store and in everything that names it: the union of all of it.

Each message stands in it once, from the source that keeps most of it, in the order in which the sources show
it. What the union cannot hold is said as well: where sources contradict each other, and where it is known
that something is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from statemend.evidence.gaps import gaps_of
from statemend.evidence.inventory import Inventory
from statemend.evidence.nameless import Nameless
from statemend.evidence.rows import Fidelity
from statemend.evidence.saved import Conflict, Gap, Lack, Place, Salvage, Saved, Used
from statemend.evidence.shown import Source, as_message, shown_by, sources_of, state_of, text_of_prompt
from statemend.evidence.union import Entry, Sighting, Union
from statemend.evidence.wording import MARKDOWN, looks_redacted, structured
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.store.connection import Store
from statemend.store.history import RowState

__all__ = ["Conflict", "Fidelity", "Gap", "Lack", "Place", "Salvage", "Salvager", "Saved", "Used", "salvage"]


def salvage(store: Store, inventory: Inventory, session_id: str) -> Salvage:
    """The union of what the store and the artifacts beside it hold of a session.

    Sources are read one after the other; the messages of this one session are held in memory. The same store
    and files give the same answer, in whatever order they were found. Raises ``StoreUnreadable``, and
    ``Undetermined`` when an artifact cannot be read.
    """
    return Salvager(store, inventory).session(session_id)


class Salvager:
    """Puts one session after the other together; what names which session is looked up once."""

    def __init__(self, store: Store, inventory: Inventory) -> None:
        self._store = store
        self._named = inventory.by_session()
        self._copied = inventory.stores_by_session()
        self._nameless = Nameless(store, inventory)
        self._sections: dict[str, list[tuple[Artifact, Section]]] = {}

    def session(self, session_id: str) -> Salvage:
        """:func:`salvage` of one session."""
        sources = sources_of(self._store, session_id, self.sections(session_id))
        return _put_together(self._store, session_id, sources)

    def sections(self, session_id: str) -> list[tuple[Artifact, Section]]:
        """The parts of artifacts, and of other stores, that are of one session: those that name it, and those
        that name none and are certainly its."""
        if session_id not in self._sections:
            named = [*self._named.get(session_id, ()), *self._copied.get(session_id, ())]
            self._sections[session_id] = [*named, *self._nameless.of(session_id, named)] if named else named
        return self._sections[session_id]


def _put_together(store: Store, session_id: str, sources: Sequence[Source]) -> Salvage:
    starts = {each.number: each.section.started_at for each in sources if each.section.started_at is not None}
    union = Union(starts)
    for source in sources:
        known = {entry.number: as_message(entry.best.record, entry.number) for entry in _written(union)}
        union.add(source, shown_by(source, store, session_id, known, _prompts(union)))
    return _summarised(union, sources, session_id)


def _written(union: Union) -> Iterator[Entry]:
    """The messages of which the whole text is known as Markdown would render it."""
    for entry in union.entries:
        best = entry.best
        if not best.cut and (best.fidelity is Fidelity.EXACT or best.source.kind in MARKDOWN):
            yield entry


def _prompts(union: Union) -> dict[int, str]:
    """What an export of prompts shows, by row id."""
    found: dict[int, str] = {}
    for entry in union.entries:
        for seen in entry.sightings:
            text = text_of_prompt(seen.record, seen.source.kind)
            if seen.record.row_id is not None and text is not None:
                found.setdefault(seen.record.row_id, text)
    return found


def _summarised(union: Union, sources: Sequence[Source], session_id: str) -> Salvage:
    age = _ages(union, sources)
    messages = tuple(_saved(union.entries[number], age) for number in union.order)
    placed = {number: place for place, number in enumerate(union.order)}
    conflicts = [
        Conflict((placed[entry.number],), tuple(map(_place, entry.variants)))
        for entry in union.entries
        if entry.variants
    ]
    conflicts += [Conflict((placed[doubt.one], placed[doubt.other])) for doubt in union.doubts]
    shared = Counter(number for entry in union.entries for number in _sharing(entry))
    alike = {number for entries in union.alike() for number in _sharing(*entries)}
    return Salvage(
        session_id=session_id,
        messages=messages,
        sources=tuple(
            Used(
                artifact=source.artifact,
                kind=source.kind,
                records=union.records[source.number],
                shared=shared[source.number],
                best=sum(entry.best.source.number == source.number for entry in union.entries),
                alike=source.number in alike,
                dated=source.kind is not Kind.HTML or bool(union.zones[source.number].offsets),
            )
            for source in sources
        ),
        conflicts=tuple(sorted(conflicts, key=lambda each: each.messages)),
        gaps=tuple(gaps_of(union, sources, messages)),
    )


def _sharing(*entries: Entry) -> frozenset[int]:
    """The sources of a message, or of several with the same words, if they are more than one."""
    found = frozenset(each.source.number for entry in entries for each in (*entry.sightings, *entry.variants))
    return found if len(found) > 1 else frozenset()


def _ages(union: Union, sources: Sequence[Source]) -> Mapping[int, tuple[int, float]]:
    """What tells of each source how new it is: the highest row id and the latest time that it shows."""
    ages = {source.number: (0, 0.0) for source in sources}
    for entry in union.entries:
        for seen in (*entry.sightings, *entry.variants):
            row_id, at = ages[seen.source.number]
            ages[seen.source.number] = max(row_id, seen.record.row_id or 0), max(at, seen.at or 0.0)
    return ages


def _saved(entry: Entry, ages: Mapping[int, tuple[int, float]]) -> Saved:
    best = entry.best
    record = best.record
    if best.source.kind in MARKDOWN:
        record = msgspec.structs.replace(record, content=structured(record.content))
    alone = best.fidelity is not Fidelity.MASKED and len({each.source for each in entry.sightings}) == 1
    return Saved(
        record=record,
        fidelity=best.fidelity,
        at=entry.at,
        state=_state(entry, ages),
        place=_place(best),
        others=tuple(_place(each) for each in entry.sightings if each is not best),
        cut=best.cut,
        suspect=alone and looks_redacted(record),
    )


def _place(seen: Sighting) -> Place:
    source, record = seen.source, seen.record
    where = source.artifact, source.kind, source.section.offset, record.position
    return Place(*where, seen.fidelity, record.row_id)


#: A message is what the most visible of its rows is.
_VISIBILITY = (RowState.LIVE, RowState.UNSET, RowState.ARCHIVED, RowState.REWOUND)


def _state(entry: Entry, ages: Mapping[int, tuple[int, float]]) -> RowState | None:
    flagged = [
        (each.source, state)
        for each in (*entry.sightings, *entry.variants)
        if (state := state_of(each.record)) is not None
    ]
    if not flagged:
        return None
    newest = max(
        (source for source, _ in flagged),
        key=lambda source: (ages[source.number], -source.number),
    )
    return min((state for source, state in flagged if source == newest), key=_VISIBILITY.index)
