"""What survives of one session in the store and in everything that names it: the union of all of it.

Each message stands in it once, from the source that keeps most of it, in the order in which the sources show
it. What the union cannot hold is said as well: where sources contradict each other, and where it is known
that something is missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from statemend.evidence.inventory import Inventory
from statemend.evidence.rows import Fidelity
from statemend.evidence.shown import Source, as_message, shown_by, sources_of, state_of, text_of_prompt
from statemend.evidence.union import Entry, Sighting, Union
from statemend.evidence.wording import MARKDOWN, structured, text_of
from statemend.formats.artifact import AUTOMATIC, FILTERED, Kind, Record
from statemend.store.connection import Store
from statemend.store.content import is_summary_text
from statemend.store.history import RowState

__all__ = ["Conflict", "Fidelity", "Gap", "Lack", "Place", "Salvage", "Saved", "Used", "salvage"]

#: Compaction keeps so many first messages before its summary.
_KEPT_HEAD = 3
#: A session that is not older than its summary by more (seconds) was begun with it.
_BEGUN_WITH = 60.0
#: What redaction leaves of a secret: marks, or its two ends.
_MARK = re.compile(r"\*{3}|\[REDACTED|«redacted|\[redaction-|\b[\w-]{6}\.\.\.[\w-]{4}\b")


class Place(msgspec.Struct, frozen=True):
    """Where a record stands: the artifact, the section by its first byte, the record by its place in the
    section (from 0); ``row_id`` where the format names the row; and how well it holds the message."""

    artifact: str
    kind: Kind
    offset: int
    position: int
    fidelity: Fidelity
    row_id: int | None = None


class Saved(msgspec.Struct, frozen=True):
    """One message that survives.

    ``record`` is it, from the source that keeps most of it; ``place`` says where that stands, ``others``
    where else the message is shown. ``at`` is epoch seconds, to the second where only such sources show it,
    ``None`` where no source tells. ``state`` is that of its row in the newest source that has the flags.
    ``cut``: every source that shows it ends inside it. ``suspect``: its text looks redacted, and no source
    tells whether it is.
    """

    record: Record
    fidelity: Fidelity
    at: float | None
    state: RowState | None
    place: Place
    others: tuple[Place, ...] = ()
    cut: bool = False
    suspect: bool = False


class Conflict(msgspec.Struct, frozen=True):
    """Sources that do not agree. ``messages`` are numbers of messages in the union. With one number, the row
    that it is has another text in ``variants``; with two, both are of one role and one moment and no source
    shows both, so that they are one message with two texts, or two."""

    messages: tuple[int, ...]
    variants: tuple[Place, ...] = ()


class Lack(StrEnum):
    """How it is known that something is missing."""

    CUT = "cut"  # an artifact ends before its end
    COMPACTED = "compacted"  # a summary stands for turns that nothing shows
    FILTERED = "filtered"  # only the user's messages are left


class Gap(msgspec.Struct, frozen=True):
    """Messages that the session had and that no source holds. ``count`` is how many there are at least,
    ``None`` where nothing tells; ``first_at`` and ``last_at`` (epoch seconds) enclose them, as far as that is
    known. ``artifact`` tells of it."""

    lack: Lack
    artifact: str
    count: int | None = None
    first_at: float | None = None
    last_at: float | None = None


class Used(msgspec.Struct, frozen=True):
    """A source of the union: how many records it shows, how many of them another source shows too,
    and how many it is the best source of. A page whose clock is of no known zone is not ``dated``."""

    artifact: str
    kind: Kind
    records: int
    shared: int
    best: int
    dated: bool = True


class Salvage(msgspec.Struct, frozen=True):
    """What survives of one session: ``messages`` in their order, and what is to be known about them."""

    session_id: str
    messages: tuple[Saved, ...]
    sources: tuple[Used, ...]
    conflicts: tuple[Conflict, ...]
    gaps: tuple[Gap, ...]

    def count(self, fidelity: Fidelity) -> int:
        """How many messages survive so well."""
        return sum(each.fidelity is fidelity for each in self.messages)

    @property
    def lost(self) -> int:
        """How many messages are surely lost, at least."""
        return sum(gap.count or 0 for gap in self.gaps)

    @property
    def strangers(self) -> tuple[Used, ...]:
        """The sources that share no message with any other: they may be of another store, or of another
        stretch of the session."""
        shown = [each for each in self.sources if each.records]
        return tuple(each for each in shown if not each.shared and len(shown) > 1)


def salvage(store: Store, inventory: Inventory, session_id: str) -> Salvage:
    """The union of what the store and the artifacts beside it hold of a session.

    Sources are read one after the other; the messages of this one session are held in memory. The same store
    and files give the same answer, in whatever order they were found. Raises ``StoreUnreadable``, and
    ``Undetermined`` when an artifact cannot be read.
    """
    named = inventory.by_session().get(session_id, []) + inventory.stores_by_session().get(session_id, [])
    sources = sources_of(store, session_id, named)
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
                dated=source.kind is not Kind.HTML or bool(union.zones[source.number].offsets),
            )
            for source in sources
        ),
        conflicts=tuple(sorted(conflicts, key=lambda each: each.messages)),
        gaps=tuple(_gaps(union, sources, messages)),
    )


def _sharing(entry: Entry) -> frozenset[int]:
    """The sources of a message that is shown by more than one."""
    found = frozenset(each.source.number for each in (*entry.sightings, *entry.variants))
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
        suspect=alone and _MARK.search(text_of(record)) is not None,
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


def _gaps(union: Union, sources: Sequence[Source], messages: Sequence[Saved]) -> Iterator[Gap]:
    """Where it is known that messages are missing."""
    shown: dict[int, list[int]] = {source.number: [] for source in sources}
    for place, number in enumerate(union.order):
        entry = union.entries[number]
        for source in {each.source.number for each in (*entry.sightings, *entry.variants)}:
            shown[source].append(place)
    transcripts = [each for each in sources if each.kind not in FILTERED and shown[each.number]]
    if messages and not transcripts:
        yield _filtered(sources, shown, messages)
    yield from _cut(sources, shown, messages)
    yield from _compacted(transcripts, shown, messages)


def _filtered(
    sources: Sequence[Source], shown: Mapping[int, Sequence[int]], messages: Sequence[Saved]
) -> Gap:
    fullest = max(sources, key=lambda each: (len(shown[each.number]), -each.number))
    times = [each.at for each in messages if each.at is not None]
    return Gap(Lack.FILTERED, fullest.artifact, None, min(times, default=None), max(times, default=None))


def _cut(
    sources: Sequence[Source], shown: Mapping[int, Sequence[int]], messages: Sequence[Saved]
) -> Iterator[Gap]:
    """The end of an artifact that is cut off, where no other source goes on from there. What the artifact
    says it holds and the whole union does not is surely lost."""
    worst: Gap | None = None
    for source in sources:
        places, section = shown[source.number], source.section
        declared = section.declared or 0
        if source.kind in FILTERED or source.kind is Kind.STORE:
            continue
        if section.damage is None and declared <= len(places):
            continue
        last = max(places, default=-1)
        goes_on = any(
            other.number != source.number
            and other.section.damage is None
            and other.kind not in FILTERED
            and last in shown[other.number]
            and len(shown[other.number]) >= (other.section.declared or 0)
            for other in sources
        )
        count = max(declared - len(messages), 0)
        if count or not (goes_on or declared):
            at = messages[last].at if places else section.started_at
            gap = Gap(Lack.CUT, source.artifact, count or None, at, section.exported_at)
            worst = gap if worst is None or (gap.count or 0) > (worst.count or 0) else worst
    if worst is not None:
        yield worst


def _compacted(
    transcripts: Sequence[Source], shown: Mapping[int, Sequence[int]], messages: Sequence[Saved]
) -> Iterator[Gap]:
    """A summary with which every transcript that shows it begins, and that stands for turns of this very
    session that no other transcript leads up to."""
    summaries = [place for place, each in enumerate(messages) if _is_summary(each.record)]
    if not summaries:
        return
    first = summaries[0]
    after = [each for each in transcripts if first in shown[each.number] and each.kind not in AUTOMATIC]
    if not after or any(_leads_up(shown[each.number], first) for each in after):
        return
    before = [each for each in transcripts if first not in shown[each.number] and each.kind not in AUTOMATIC]
    # One that was made before the compaction, and reaches as far as the turns that it kept. Compaction may
    # have given these another time, so that they are other messages with the same words.
    kept = {_words(messages[place].record) for each in after for place in shown[each.number] if place > first}
    if any(_words(messages[place].record) in kept for each in before for place in shown[each.number]):
        return
    section = after[0].section
    started_at = next((each.section.started_at for each in after if each.section.started_at), None)
    at = messages[first].at
    begun = started_at is not None and at is not None and at - started_at < _BEGUN_WITH
    follows = any(each.section.parent_id is not None for each in after) or (
        section.session_id in section.lineage[1:]
    )
    if not (begun or follows):
        last = max((each.at for each in messages[:first] if each.at is not None), default=started_at)
        yield Gap(Lack.COMPACTED, after[0].artifact, None, last, at)


def _words(record: Record) -> tuple[str, str]:
    return record.role, text_of(record)


def _leads_up(places: Sequence[int], summary: int) -> bool:
    """Whether a transcript shows more before the summary than compaction keeps there."""
    return sum(place < summary for place in places) > _KEPT_HEAD


def _is_summary(record: Record) -> bool:
    return record.summary or is_summary_text(record.content)
