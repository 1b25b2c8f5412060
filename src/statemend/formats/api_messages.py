"""Messages as they go to a model, brought back to the form in which a session holds them.

Three wordings occur: chat completions, blocks (Anthropic, and the trace exports that imitate it), and the
items of responses. Tool calls come back as ``{"id", "function": {"name", "arguments"}}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statemend.formats.artifact import Record
from statemend.store.content import is_summary_text

#: What a trace shows in the place of a picture.
_OMITTED = "[image omitted]"
_INSTRUCTIONS = frozenset({"system", "developer"})
_TEXTS = frozenset({"text", "input_text", "output_text"})


def records(values: Any) -> Iterator[Record]:
    """The messages of a request in their order, what instructs the model left out."""
    position = 0
    for value in values if isinstance(values, list) else ():
        if isinstance(value, dict):
            for record in records_of(value, position):
                yield record
                position += 1


def records_of(value: Mapping[str, Any], position: int) -> Iterator[Record]:
    """The records of one message or item, numbered from ``position``: a message that carries the results of
    several tools is one for each."""
    role, content = value.get("role"), value.get("content")
    if value.get("type") == "function_call":
        yield _record(position, "assistant", None, calls=[_call(value, "call_id", value.get("arguments"))])
    elif value.get("type") == "function_call_output":
        yield _record(position, "tool", value.get("output"), call_id=value.get("call_id"))
    elif isinstance(role, str) and role not in _INSTRUCTIONS:
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for result in results:
            shown = result.get("content")
            text = _joined(shown) if isinstance(shown, list) else shown
            yield _record(position, "tool", text, call_id=result.get("tool_use_id"))
            position += 1
        if not results or len(results) < len(blocks):
            uses = [block for block in blocks if block.get("type") == "tool_use"]
            calls = value.get("tool_calls") or [_call(use, "id", use.get("input")) for use in uses]
            text = _joined(content) if isinstance(content, list) else content
            yield _record(position, role, text, calls=calls, call_id=value.get("tool_call_id"))


def _joined(parts: list[Any]) -> str:
    """The texts of the parts; tools and pictures are none."""
    return "\n".join(_texts(parts))


def _texts(parts: list[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and str(part.get("type")) in _TEXTS:
            text = part.get("text")
            if isinstance(text, str) and text != _OMITTED:
                yield text


def _call(value: Mapping[str, Any], key: str, arguments: Any) -> dict[str, Any]:
    return {"id": value.get(key), "function": {"name": value.get("name"), "arguments": arguments}}


def _record(position: int, role: str, content: Any, *, calls: Any = None, call_id: Any = None) -> Record:
    return Record(
        position=position,
        role=role,
        content=content,
        tool_calls=calls if isinstance(calls, list) and calls else None,
        tool_call_id=call_id if isinstance(call_id, str) else None,
        summary=is_summary_text(content),
    )
