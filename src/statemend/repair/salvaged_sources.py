"""What each source shows of a lost session, looked at from its messages: where each stands, and as what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from statemend import formats
from statemend.evidence.salvage import Place, Salvage
from statemend.evidence.shown import state_of
from statemend.evidence.wording import WHOLE
from statemend.formats.artifact import FILTERED, IN_MEMORY, Artifact, Kind, Record, Section
from statemend.store.connection import Store
from statemend.store.content import is_summary_text
from statemend.store.message import RowState

#: States of rows that a model is sent; formats without flags tell none.
LIVE = frozenset({RowState.LIVE, RowState.UNSET, None})

#: One section of one artifact.
_Key = tuple[str, int]


class Shown(NamedTuple):
    """One source, and the places in which it shows messages, by their number. ``age`` tells how new it is:
    its latest time, its highest row id, when it was written."""

    artifact: Artifact
    section: Section
    places: dict[int, list[Place]]
    age: tuple[float, int, float]
    summarises: bool

    @property
    def lasts(self) -> tuple[float, int]:
        return self.age[:2]


class Sources:
    """The sources of a union. The store itself is one where it still has rows of the session."""

    def __init__(self, store: Store, named: Iterable[tuple[Artifact, Section]], union: Salvage) -> None:
        self.union = union
        self._store = store
        self._named = {(artifact.path, section.offset): (artifact, section) for artifact, section in named}
        self._records: dict[_Key, Mapping[int, Record]] = {}
        self._shown = dict(self._by_source())

    def __iter__(self) -> Iterator[Shown]:
        return iter(self._shown.values())

    @property
    def unnamed(self) -> tuple[str, ...]:
        """The artifacts that do not name the session; their texts are certainly its."""
        return tuple(sorted({each.artifact.path for each in self if not each.section.session_id}))

    def at(self, place: Place) -> Shown:
        """The source that a place is in."""
        return self._shown[place.artifact, place.offset]

    def places(self, number: int) -> tuple[Place, ...]:
        """Where a message is shown, the best first."""
        message = self.union.messages[number]
        return (message.place, *message.others)

    def stored(self, number: int) -> bool:
        """Whether the store has the message."""
        return any(each.artifact == self._store.path for each in self.places(number))

    def is_own(self, source: Shown) -> bool:
        """Whether a source is the store itself."""
        return source.artifact.path == self._store.path

    def is_summary(self, number: int) -> bool:
        """Whether a message is the summary of a compaction."""
        record = self.union.messages[number].record
        return record.summary or is_summary_text(record.content)

    @cached_property
    def newest(self) -> Shown | None:
        """The newest transcript. What was written from memory, or appended since the session was lost, says
        what is live only once it shows a summary."""
        able = [
            each
            for each in self
            if each.artifact.kind not in FILTERED
            and each.section.damage is None
            and each.artifact.damage is None
            and (each.section.declared or 0) <= sum(map(len, each.places.values()))
            and (each.summarises or not (each.artifact.kind in IN_MEMORY or self.is_own(each)))
        ]
        return max(able, key=lambda each: (each.age, each.artifact.path), default=None)

    def row_at(self, place: Place) -> Record | None:
        """The record at a place of a format that has whole rows."""
        return self.record_at(place) if place.kind in WHOLE else None

    def record_at(self, place: Place) -> Record | None:
        """The record at a place of a format that has the columns of a row, all or some of them."""
        if place.kind not in WHOLE | IN_MEMORY or place.artifact == self._store.path:
            return None
        key = (place.artifact, place.offset)
        if key not in self._records:
            artifact, section = self._named[key]
            records = formats.records(Path(artifact.path), artifact, section)
            self._records[key] = {each.position: each for each in records}
        return self._records[key].get(place.position)

    def state_at(self, place: Place) -> RowState | None:
        """The state of the row at a place, where its format has the flags."""
        record = self.row_at(place)
        return None if record is None else state_of(record)

    def _by_source(self) -> Iterator[tuple[_Key, Shown]]:
        places: dict[_Key, dict[int, list[Place]]] = {}
        variants: dict[int, list[Place]] = {}
        for conflict in self.union.conflicts:
            variants.setdefault(conflict.messages[0], []).extend(conflict.variants)
        for number in range(len(self.union.messages)):
            for place in (*self.places(number), *variants.get(number, ())):
                key = (place.artifact, place.offset)
                places.setdefault(key, {}).setdefault(number, []).append(place)
        here = Artifact(self._store.path, Kind.STORE, size=0, modified_at=0.0, sha256="")
        mine = (here, Section(session_id=self.union.session_id, offset=0, length=0))
        for key, shown in places.items():
            artifact, section = self._named.get(key, mine)
            times = [at for number in shown if (at := self.union.messages[number].at) is not None]
            ids = [each.row_id or 0 for many in shown.values() for each in many]
            written = section.exported_at or artifact.modified_at
            age = (max(times, default=0.0), max(ids, default=0), written)
            yield key, Shown(artifact, section, shown, age, any(map(self.is_summary, shown)))
