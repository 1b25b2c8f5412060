"""Rows that compaction copied, and that a display does not recognise as copies.

In-place compaction of 0.18 to 0.20 archives every live row and writes the kept ones again. A message that
did not carry its own time gets the moment of the compaction, and one that had been loaded from the store
lost the white space around its text: then a display shows the turn twice. The archived original and its copy
are two logical messages with the same words. An artifact that holds the copy holds those words.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence

import msgspec

from statemend.store.content import carried_request
from statemend.store.history import Message, RowState

#: How many rows at the end of a compaction may have no original: the turn that was being asked.
_FRESH = 8
#: Rows of one insert that lack a time are stamped a microsecond apart, or all alike. In seconds, with room
#: for the rounding of floats.
_STEP = 2e-6


def text_key(message: Message) -> Hashable:
    """What makes two rows the same words: everything but the time and the white space around the text."""
    content = message.content
    return (
        message.role,
        frozen(content.strip() if isinstance(content, str) else content),
        message.tool_call_id,
        frozen(message.tool_calls),
        message.tool_name,
    )


def frozen(value: object) -> Hashable:
    """``value`` as something that hashes, equal where the JSON values are equal; empty calls equal none."""
    if isinstance(value, str):
        return value
    if value is None or value == []:
        return None
    if not isinstance(value, list | dict):
        return type(value), value
    try:
        return msgspec.json.encode(value, order="sorted")
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return _frozen_oddity(value)


def _frozen_oddity(value: object) -> str:
    """JSON that msgspec does not write: lone surrogates, numbers of any size, nesting without end."""
    try:
        return json.dumps(value, sort_keys=True)
    except (ValueError, RecursionError):
        return "nested too deeply"


def carried_copies(rows: Sequence[Message]) -> dict[int, int]:
    """Row id of a copy that a display does not fold → row id of the row it was made from.

    ``rows`` are all rows of one session by id.
    """
    copies: dict[int, int] = {}
    epoch = 0
    summaries = [place for place, row in enumerate(rows) if row.summary and _is_number(row.timestamp)]
    twice = _kept_whole(rows) if summaries else set()
    for place in summaries:
        summary = rows[place]
        first, last = place, place + 1
        while first > epoch and (
            rows[first - 1].id in twice or _stamped_with(rows[first - 1], summary, place - first + 1)
        ):
            first -= 1
        while last < len(rows) and _inserted_with(rows[last], summary, last - place):
            last += 1
        before = [each for each in rows[epoch:first] if each.state is not RowState.REWOUND]
        pairs = [*zip(rows[first:place], before, strict=False), *_aligned(rows[place + 1 : last], before)]
        for copy, original in pairs:
            if text_key(copy) == text_key(original) and not _folded(copy, original):
                copies[copy.id] = original.id
        absorbed = _absorbed(summary, before, place - first)
        if absorbed is not None:
            copies[summary.id] = absorbed.id
        epoch = first
    return copies


def _kept_whole(rows: Sequence[Message]) -> set[int]:
    """Row ids of copies that carried their own time: an earlier row has it, and the same words."""
    seen: set[Hashable] = set()
    twice: set[int] = set()
    for row in rows:
        key = (row.timestamp, text_key(row))
        if key in seen:
            twice.add(row.id)
        seen.add(key)
    return twice


def _absorbed(summary: Message, before: Sequence[Message], head: int) -> Message | None:
    """The row whose words the summary row carries besides the summary: the one that would have been kept
    next to the ``head`` rows in front, or one of the kept tail."""
    words = carried_request(summary.content, summary.display_kind)
    if not isinstance(words, str):
        return None
    near = [*before[head : head + 1], *reversed(before[head + 1 :])]
    return next((row for row in near if row.role == summary.role and _same_words(row.content, words)), None)


def _same_words(content: object, words: str) -> bool:
    return isinstance(content, str) and content.strip() == words.strip()


def _stamped_with(row: Message, summary: Message, distance: int) -> bool:
    """Whether ``row``, ``distance`` rows away, got its time from the insert that wrote ``summary``."""
    return _is_number(row.timestamp) and bool(
        abs(row.timestamp - summary.timestamp) <= _STEP * (distance + 1)
    )


def _folded(copy: Message, original: Message) -> bool:
    """Whether a display shows the two as one message."""
    return bool(copy.timestamp == original.timestamp and copy.content == original.content)


def _inserted_with(row: Message, summary: Message, distance: int) -> bool:
    """Whether ``row``, ``distance`` rows behind, can be of that insert; a row appended later has a later
    time."""
    return _is_number(row.timestamp) and bool(row.timestamp <= summary.timestamp + _STEP * (distance + 1))


def _aligned(tail: Sequence[Message], before: Sequence[Message]) -> list[tuple[Message, Message]]:
    """The kept tail beside the rows that it was copied from, which are the last ones ``before``.

    The tail may end with rows that had never been stored, and single rows of it may have been shortened.
    """
    best: list[tuple[Message, Message]] = []
    most = 0
    for fresh in range(min(_FRESH, len(tail)) + 1):
        kept = tail[: len(tail) - fresh]
        pairs = (
            list(zip(kept, before[len(before) - len(kept) :], strict=True))
            if len(kept) <= len(before)
            else []
        )
        alike = sum(_anchor(copy) == _anchor(original) for copy, original in pairs)
        if alike > most and 2 * alike > len(pairs):
            best, most = pairs, alike
    return best


def _anchor(message: Message) -> Hashable:
    """What a copy keeps even where its text was shortened."""
    if message.tool_call_id:
        return message.role, message.tool_call_id
    return text_key(message)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
