"""Trajectory files: conversations in the form that models are trained on, one per line.

They name no session and no times. A turn holds everything that an assistant said and called, or everything
that the tools answered, in one text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from statemend.formats import json_lines, lenientjson
from statemend.formats.artifact import Artifact, Kind, Record, Section

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.TRAJECTORY})
_THOUGHT = re.compile(r"<think>\n(?:(.*?)\n)?</think>\n?", re.DOTALL)
_CALL = ("<tool_call>\n", "\n</tool_call>")
_RESPONSE = ("<tool_response>\n", "\n</tool_response>")


def recognise(head: bytes) -> Kind | None:
    """``Kind.TRAJECTORY`` when the first line of ``head`` is such a conversation, whole or cut."""
    value = json_lines.first(head)
    if value is None:
        cut = re.match(rb'\s*\{\s*"conversations"\s*:\s*\[\s*\{\s*"from"\s*:\s*"', head)
        return Kind.TRAJECTORY if cut else None
    return Kind.TRAJECTORY if _is_conversation(value) else None


def read(path: Path) -> Artifact:
    """One section per line, without a session."""
    return json_lines.read(path, Kind.TRAJECTORY, _is_conversation, _sections)


def _sections(lines: Iterator[json_lines.Object]) -> list[Section]:
    return [
        Section("", line.offset, line.length, held=sum(1 for _ in _records(line.value))) for line in lines
    ]


def records(path: Path, section: Section) -> Iterator[Record]:
    """The messages of one conversation, without the system prompt."""
    for value in json_lines.values(path, section):
        if _is_conversation(value):
            yield from _records(value)


def _records(value: dict[str, Any]) -> Iterator[Record]:
    position = 0
    for turn in value["conversations"]:
        if isinstance(turn, dict) and isinstance(turn.get("value"), str):
            for record in _turn(turn.get("from"), turn["value"], position):
                yield record
                position += 1


def _turn(speaker: Any, text: str, position: int) -> Iterator[Record]:
    if speaker == "human":
        yield Record(position, "user", text)
    elif speaker == "gpt":
        thought = _THOUGHT.match(text)
        said, calls = _before_blocks(text[thought.end() :] if thought else text, _CALL)
        yield Record(
            position,
            "assistant",
            said.strip() or None,
            tool_calls=[{"function": call} for call in calls] or None,
            reasoning=thought[1] if thought else None,
        )
    elif speaker == "tool":
        for answer in _before_blocks(text, _RESPONSE)[1]:
            call_id = answer.get("tool_call_id")
            yield Record(
                position,
                "tool",
                answer.get("content"),
                tool_call_id=call_id if isinstance(call_id, str) else None,
            )
            position += 1


def _before_blocks(text: str, marks: tuple[str, str]) -> tuple[str, list[dict[str, Any]]]:
    """The text in front of the JSON blocks that it ends with, and the objects in them. Blocks are taken from
    the end, one by one: text in front of them may imitate one."""
    blocks: list[dict[str, Any]] = []
    opening, closing = marks
    end = len(text.rstrip())
    while text.endswith(closing, 0, end):
        start = text.rfind(opening, 0, end)
        block = _object(text[start + len(opening) : end - len(closing)]) if start >= 0 else None
        if block is None:
            break
        blocks.append(block)
        end = start
        while end and text[end - 1] == "\n":
            end -= 1
    return text[:end], blocks[::-1]


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = lenientjson.loads(text.encode("utf-8", "surrogatepass"))
    except lenientjson.UnreadableJsonError:
        return None
    return value if isinstance(value, dict) else None


def _is_conversation(value: dict[str, Any]) -> bool:
    turns = value.get("conversations")
    return isinstance(turns, list) and any(isinstance(turn, dict) and "from" in turn for turn in turns)
