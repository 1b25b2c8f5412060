"""What a message cell holds: structured content behind its marker, JSON columns, compaction summaries.

Every function here takes whatever SQLite returned and never raises on it.
"""

from __future__ import annotations

import json
import re
from typing import Any

#: Text that begins with this marker is JSON: a list of parts, an object, or an escaped string.
STRUCTURED_MARKER = "\0json:"

#: How a summary row begins, in every release (0.13 to 0.22), and the form before them.
_SUMMARY_OPENINGS = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
#: A row of the kept tail that absorbed the summary: earlier text, this delimiter, the summary.
_MERGED_HEADER = "[PRIOR CONTEXT — for reference only; not a new message]"
_MERGED_DELIMITER = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
#: Where a summary ends. A carrier may hold a live request behind it.
_SUMMARY_END = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
#: How texts begin that Hermes writes in the user's name to drive the model on.
_SCAFFOLD_OPENINGS = (
    "[System: ",
    "[IMPORTANT: Background process ",
    "[Your active task list was preserved across context compression]\n",
    "Continue from the compressed conversation context above.",
    "You've reached the maximum number of tool-calling iterations",
    "Your previous turn indicated a tool call but none was included.",
    "You just executed tool calls but returned an empty response.",
)
_TEXT_PARTS = frozenset({"text", "input_text"})

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


#: Deeper JSON than this is not taken apart: what can just be parsed here could not be written again a few
#: calls further down.
_DEEPEST = 400


def parse_json(raw: Any, fallback: Any) -> Any:
    """``raw`` parsed as JSON, or ``fallback``. Accepts what Hermes accepts (``NaN`` included), but for
    nesting near the end of the interpreter's stack."""
    try:
        value = json.loads(raw)
    except (ValueError, TypeError, RecursionError):
        return fallback
    return fallback if _is_too_deep(raw, value) else value


def _is_too_deep(raw: str | bytes, value: Any) -> bool:
    text = raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
    if text.count("[") + text.count("{") <= _DEEPEST:
        return False
    level = [value]
    for _ in range(_DEEPEST + 1):
        containers = (each.values() if isinstance(each, dict) else each for each in level)
        level = [inner for each in containers for inner in each if isinstance(inner, list | dict)]
        if not level:
            return False
    return True


def decode_content(raw: Any) -> Any:
    """The content that a stored cell means. Undecodable structured content stays the text that is stored."""
    if isinstance(raw, str) and raw.startswith(STRUCTURED_MARKER):
        return parse_json(raw[len(STRUCTURED_MARKER) :], raw)
    return raw


def encode_content(content: Any) -> Any:
    """The cell that Hermes would store for ``content``: the inverse of :func:`decode_content`."""
    if isinstance(content, str):
        content = _LONE_SURROGATE.sub("\ufffd", content)
        if not content.startswith(STRUCTURED_MARKER):
            return content
    elif content is None or isinstance(content, (bytes, int, float)):
        return content
    return STRUCTURED_MARKER + json.dumps(content)


def decode_tool_calls(raw: Any) -> Any:
    """The parsed ``tool_calls`` cell: a list as Hermes writes it, ``[]`` when it is not JSON, ``None`` when
    empty.
    """
    return parse_json(raw, []) if raw else None


def decode_metadata(raw: Any) -> dict[str, Any] | None:
    """The parsed ``display_metadata`` cell, unwrapped once more where it was encoded twice."""
    value = raw
    for _ in range(2):
        if isinstance(value, str):
            value = parse_json(value, None)
    return value if isinstance(value, dict) else None


def part_text(part: Any) -> Any:
    """The text of one part of structured content."""
    return part.get("text") if isinstance(part, dict) else part if isinstance(part, str) else None


def plain_text(content: Any) -> str:
    """All text of ``content``, parts joined by a newline."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for text in map(part_text, content) if isinstance(text, str) and text)
    return "" if content is None or isinstance(content, bytes) else str(content)


def is_summary_text(content: Any) -> bool:
    """Whether ``content`` (decoded) is a compaction summary, alone or merged into a row of the kept tail."""
    text = plain_text(content)
    if _MERGED_DELIMITER in text:
        text = text.partition(_MERGED_DELIMITER)[2]
    return text[:4096].lstrip().startswith(_SUMMARY_OPENINGS)


def carried_request(content: Any, display_kind: Any) -> Any:
    """The user's own words inside a row that a summary was merged into, or ``None`` where there are none.

    ``content`` is decoded content of a user row. A display treats the carrier and the row that first held
    these words as one message.
    """
    if not is_summary_text(content) or (display_kind and display_kind != "hidden"):
        return None
    carried: Any = None
    if isinstance(content, str):
        carried = _carried_in_text(content)
    elif isinstance(content, list):
        carried = _carried_in_parts(content)
    return carried if carried and _is_request(carried) else None


def _carried_in_text(text: str) -> str:
    if _MERGED_DELIMITER in text:
        return _without_header(text.partition(_MERGED_DELIMITER)[0].strip())
    return text.partition(_SUMMARY_END)[2].lstrip()


def _carried_in_parts(parts: list[Any]) -> list[Any]:
    before: list[Any] = []
    for part in parts:
        text = part_text(part)
        if isinstance(text, str) and _MERGED_DELIMITER in text:
            head = text.partition(_MERGED_DELIMITER)[0]
            return _without_header_part([*before, _with_text(part, head)] if head.strip() else before)
        before.append(part)
    for index, part in enumerate(parts):
        text = part_text(part)
        if isinstance(text, str) and _SUMMARY_END in text:
            rest = text.partition(_SUMMARY_END)[2].lstrip()
            return [*([_with_text(part, rest)] if rest else []), *parts[index + 1 :]]
    return []


def _without_header(text: str) -> str:
    return text[len(_MERGED_HEADER) :].lstrip() if text.startswith(_MERGED_HEADER) else text


def _without_header_part(parts: list[Any]) -> list[Any]:
    for index, part in enumerate(parts):
        text = part_text(part)
        if isinstance(text, str) and text.lstrip().startswith(_MERGED_HEADER):
            rest = _without_header(text.lstrip())
            return [*parts[:index], *([_with_text(part, rest)] if rest else []), *parts[index + 1 :]]
    return parts


def _with_text(part: Any, text: str) -> Any:
    return {**part, "text": text} if isinstance(part, dict) else text


def _is_request(content: Any) -> bool:
    """Whether the carried content is something a person asked: not blank, not a summary, not scaffolding."""
    if is_summary_text(content) or _is_blank(content):
        return False
    return not plain_text(content).strip().startswith(_SCAFFOLD_OPENINGS)


def _is_blank(content: Any) -> bool:
    return not content.strip() if isinstance(content, str) else all(map(_is_blank_part, content))


def _is_blank_part(part: Any) -> bool:
    if isinstance(part, dict) and part.get("type") not in _TEXT_PARTS:
        return False
    text = part_text(part)
    return isinstance(text, str) and not text.strip()
