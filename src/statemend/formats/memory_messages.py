"""Messages as a running agent holds them: objects of role and content, without the ids of rows.

``/save``, the snapshot of a session, the transcripts of the gateway and what could not be stored are written
from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from statemend.formats import clock
from statemend.formats.artifact import Record
from statemend.formats.jsonl import record_of as exported

#: What a transcript says of itself in the place of a message.
_BOOKKEEPING = "session_meta"


def is_message(value: Any) -> bool:
    """Whether ``value`` is a message of a conversation."""
    return isinstance(value, dict) and isinstance(value.get("role"), str) and value["role"] != _BOOKKEEPING


def messages_of(values: Any) -> list[dict[str, Any]]:
    """The messages among the elements of an array; none of what is no array."""
    return [value for value in values if is_message(value)] if isinstance(values, list) else []


def records(values: Any) -> Iterator[Record]:
    """The messages of an array as records."""
    for position, message in enumerate(messages_of(values)):
        yield record_of(message, position)


def record_of(message: dict[str, Any], position: int) -> Record:
    """One message. A time that is a text is the wall time of the machine; ``_row_id`` names the row that it
    was loaded from."""
    record = exported(message, position)
    row_id, name, time = message.get("_row_id"), message.get("name"), message.get("timestamp")
    return msgspec.structs.replace(
        record,
        row_id=row_id if type(row_id) is int else None,
        tool_name=record.tool_name or (name if isinstance(name, str) else None),
        clock=time if isinstance(time, str) and clock.epoch_if_utc(time) is not None else None,
    )
