"""Columns of a message that its best source drops, from what else shows it.

A format for people drops what a model needs: which call a result answers, why an answer ended. Another source
that shows the same message may have that, if it keeps less of the text. And a row that a compaction wrote is
the copy of one that it archived: the same words, and everything but the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from statemend.evidence.wording import known_by, phrases
from statemend.formats.artifact import Record
from statemend.repair.cells import SqlValue
from statemend.repair.salvaged_rows import Filled
from statemend.repair.salvaged_sources import Sources
from statemend.repair.salvaged_states import States
from statemend.repair.salvaged_values import row_values

#: What a record is known by; it is never put together from two.
_OWN = frozenset({"role", "content", "timestamp"})
#: What a compaction copies of a message besides its words.
_CARRIED = frozenset(
    {
        "codex_message_items",
        "codex_reasoning_items",
        "finish_reason",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "tool_call_id",
        "tool_calls",
        "tool_name",
    }
)
#: How 0.22 marks the row of a summary.
_SUMMARY = "_compressed_summary"
_ANSWERING = frozenset({"assistant", "tool"})


class Fields:
    """What other showings tell of the ``columns`` of messages."""

    def __init__(self, sources: Sources, states: States, columns: tuple[str, ...]) -> None:
        self._sources = sources
        self._states = states
        self._columns = columns

    def missing(self, number: int, values: Mapping[str, SqlValue]) -> Iterator[Filled]:
        """The columns that ``values`` of a message lack and another showing of it has."""
        found: dict[str, SqlValue] = dict(values)
        for place in self._sources.places(number):
            record = self._sources.record_at(place)
            for column, value in self._told(record).items() if record is not None else ():
                if column not in found and column not in _OWN:
                    found[column] = value
                    yield Filled(column, value, "the same message in another file", place)
        for column, value in self._of_originals(number).items():
            if column not in found:
                yield Filled(column, value, "the message from which a compaction copied it")
        if _SUMMARY in self._columns and _SUMMARY not in found and self._sources.is_summary(number):
            yield Filled(_SUMMARY, 1, "its text begins as that of a summary does")

    def _told(self, record: Record) -> dict[str, SqlValue]:
        told = row_values(record, self._columns)
        if record.tool_name is not None and "tool_name" in self._columns:
            told.setdefault("tool_name", record.tool_name)
        return told

    def _of_originals(self, number: int) -> dict[str, SqlValue]:
        """What all messages have in common from which a message with these words may have been copied."""
        newest = self._sources.newest
        message = self._sources.union.messages[number]
        if (
            newest is None
            or not newest.summarises
            or number not in newest.places
            or message.record.role not in _ANSWERING
        ):
            return {}
        common: dict[str, SqlValue] | None = None
        for other in self._alike(number):
            told = {k: v for k, v in self._whole(other).items() if k in _CARRIED}
            common = told if common is None else {k: v for k, v in common.items() if told.get(k) == v}
        return common or {}

    def _alike(self, number: int) -> set[int]:
        """The messages before it with its words that were not live at the end."""
        live = self._states.live_set
        message = self._sources.union.messages[number]
        return {
            other
            for key in phrases(message.record, message.place.kind)
            for other in self._by_phrase.get(key, ())
            if other < number and other not in live
        }

    def _whole(self, number: int) -> dict[str, SqlValue]:
        """What any source that has columns tells of a message."""
        found: dict[str, SqlValue] = {}
        for place in self._sources.places(number):
            record = self._sources.record_at(place)
            for column, value in self._told(record).items() if record is not None else ():
                found.setdefault(column, value)
        return found

    @cached_property
    def _by_phrase(self) -> Mapping[object, list[int]]:
        found: dict[object, list[int]] = {}
        for number, message in enumerate(self._sources.union.messages):
            if message.record.role in _ANSWERING:
                for key in known_by(message.record, message.place.kind):
                    found.setdefault(key, []).append(number)
        return found
