"""One row of ``messages`` as a value: decoded, and with the state that its two flags mean."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from statemend.store.content import decode_content, decode_metadata, decode_tool_calls, is_summary_text


class RowState(StrEnum):
    """Where a row stands, told from ``active`` and ``compacted``."""

    LIVE = "live"  # (1, any): the model reads it
    ARCHIVED = "archived"  # (0, 1): summarized away by in-place compaction
    REWOUND = "rewound"  # (0, 0): undone, or superseded by a copy of itself
    UNSET = "unset"  # active is NULL: hidden by accident


class Message(msgspec.Struct, frozen=True):
    """One row of ``messages``, decoded.

    ``content`` is text, a list of parts, another JSON value, ``None``, or bytes where the cell is a blob.
    ``timestamp`` is epoch seconds as stored, which may be no number at all in a damaged store.
    ``tool_calls`` is the parsed list, ``[]`` when the cell is not JSON, ``None`` when it is empty; JSON
    that is no list is kept as it is.
    """

    id: int
    session_id: str
    role: str
    content: Any
    timestamp: Any
    tool_call_id: Any
    tool_calls: Any
    tool_name: Any
    finish_reason: Any
    reasoning: Any
    reasoning_content: Any
    platform_message_id: Any
    observed: Any
    state: RowState
    summary: bool
    display_kind: Any
    display_metadata: dict[str, Any] | None


#: The columns of ``messages`` that :func:`message_from_row` takes, in its order.
MESSAGE_COLUMNS = (
    "id, session_id, role, content, timestamp, tool_call_id, tool_calls, tool_name, finish_reason, "
    "reasoning, reasoning_content, platform_message_id, observed, active, compacted, _compressed_summary, "
    "display_kind, display_metadata"
)

#: Condition for the rows of one session. With ``ORDER BY id`` they are read one by one in every release,
#: whereas ``session_id = ?`` sorts whole rows where no index has the id.
OF_SESSION = "id IN (SELECT id FROM messages WHERE session_id = ?)"


def row_state(active: Any, compacted: Any) -> RowState:
    """The state that the two flags of a row mean."""
    if active is None:
        return RowState.UNSET
    if active == 1:
        return RowState.LIVE
    return RowState.ARCHIVED if compacted == 1 else RowState.REWOUND


def message_from_row(row: tuple[Any, ...]) -> Message:
    """A :class:`Message` from a row of :data:`MESSAGE_COLUMNS`."""
    content = decode_content(row[3])
    return Message(
        id=row[0],
        session_id=row[1],
        role=row[2],
        content=content,
        timestamp=row[4],
        tool_call_id=row[5],
        tool_calls=decode_tool_calls(row[6]),
        tool_name=row[7],
        finish_reason=row[8],
        reasoning=row[9],
        reasoning_content=row[10],
        platform_message_id=row[11],
        observed=row[12],
        state=row_state(row[13], row[14]),
        summary=bool(row[15]) or is_summary_text(content),
        display_kind=row[16],
        display_metadata=decode_metadata(row[17]),
    )
