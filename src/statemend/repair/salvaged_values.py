"""The columns of a message row, put together again from a record of an artifact."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from statemend.evidence.wording import WHOLE
from statemend.formats.artifact import Kind, Record
from statemend.repair.cells import SqlValue
from statemend.store.content import encode_content

#: What is not the message's own: whose it is, its number and state, and what triggers derive from the rest.
_ELSEWHERE = frozenset({"id", "session_id", "active", "compacted", "display_identity", "display_order"})
_DECODED = "content"
#: Halves of characters, which JSON can spell and UTF-8 cannot.
_LONE = re.compile("[\ud800-\udfff]")
_INT64 = range(-(1 << 63), 1 << 63)


def row_values(record: Record, columns: tuple[str, ...]) -> dict[str, SqlValue]:
    """What a record tells of the ``columns`` that a message has, as SQLite holds them. A column that it does
    not tell is left out, and so is one that holds nothing."""
    told = _told(record) if record.row is None else {**record.row, "role": record.role}
    found: dict[str, SqlValue] = {}
    for name in columns:
        if name in _ELSEWHERE or told.get(name) is None:
            continue
        value = _content(told[name]) if name == _DECODED else _value(told[name])
        if value is not None:
            found[name] = value
    return found


def as_stored(record: Record, kind: Kind) -> Record:
    """The record with JSON as the text that Hermes stores, where a format shows it as a value: the arguments
    of a call, and in a trajectory a result that looks like JSON."""
    if kind in WHOLE:
        return record
    calls = [_spelled(call) for call in record.tool_calls or ()]
    row = record.row
    if calls and row is not None and isinstance(row.get("tool_calls"), list):
        row = {**row, "tool_calls": calls}
    content = record.content
    if kind is Kind.TRAJECTORY and record.role == "tool" and isinstance(content, dict | list):
        content = _as_text(content)
    return msgspec.structs.replace(record, tool_calls=calls or None, content=content, row=row)


def _as_text(value: Any) -> str:
    """The value as JSON, spelled out where it holds what no text can."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isascii() or not _LONE.search(text) else json.dumps(value)


def _spelled(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), dict | list):
        return call
    arguments = json.dumps(function["arguments"])
    return {"type": "function"} | call | {"function": function | {"arguments": arguments}}


def _told(record: Record) -> Mapping[str, Any]:
    """The columns of a record whose format does not have the row."""
    return {
        "role": record.role,
        "content": record.content,
        "timestamp": record.timestamp,
        "tool_call_id": record.tool_call_id,
        "tool_calls": record.tool_calls or None,
        "tool_name": record.tool_name,
        "reasoning": record.reasoning,
    }


def _content(content: Any) -> SqlValue:
    """The cell of a content. A blob stands in an export as an object with its digits."""
    blob = _blob(content)
    if blob is not None:
        return blob
    encoded: SqlValue = encode_content(content)
    return encoded


def _value(value: Any) -> SqlValue:
    blob = _blob(value)
    if blob is not None:
        return blob
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if value in _INT64 else float(value)
    if isinstance(value, float | str | bytes):
        return value
    return json.dumps(value)


def _blob(value: Any) -> bytes | None:
    if isinstance(value, dict) and value.keys() == {"blob"} and isinstance(value["blob"], str):
        try:
            return bytes.fromhex(value["blob"])
        except ValueError:
            return None
    return None
