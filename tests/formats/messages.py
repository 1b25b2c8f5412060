"""Messages made by hand, for what no release writes twice."""

from __future__ import annotations

from typing import Any

from statemend.store.content import is_summary_text
from statemend.store.history import Message, RowState

#: 2026-08-01T09:00:00Z.
START = 1785574800.0


def message(row_id: int, role: str = "user", content: Any = "hello", **fields: Any) -> Message:
    """One live row. Each has its own time, half a second after the one before, unless it is given."""
    values: dict[str, Any] = {
        "id": row_id,
        "session_id": "s1",
        "role": role,
        "content": content,
        "timestamp": START + row_id / 2,
        "tool_call_id": None,
        "tool_calls": None,
        "tool_name": None,
        "finish_reason": None,
        "reasoning": None,
        "reasoning_content": None,
        "platform_message_id": None,
        "observed": 0,
        "state": RowState.LIVE,
        "summary": is_summary_text(content),
        "display_kind": None,
        "display_metadata": None,
    }
    return Message(**{**values, **fields})


SESSION = {"id": "s1", "title": "A title", "source": "cli", "started_at": START, "message_count": 2}
