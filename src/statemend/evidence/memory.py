"""The lenses of what was written from the memory of a running agent, or in the wording of a model's request.

Such a text was cleaned when it was loaded from the store: memory that had been put into it was taken out, and
white space around it. Rows are seen through the same changes. Times are on some messages and not on others,
ids of rows on none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator
from typing import Any

from statemend.evidence.carried import frozen
from statemend.evidence.masks import TELLING, around
from statemend.evidence.matching import Lens
from statemend.evidence.rows import Fidelity
from statemend.formats.artifact import Kind, Record
from statemend.formats.clock import finite
from statemend.store.content import parse_json, plain_text
from statemend.store.history import Message

_MEMORY_BEGINS = re.compile(r"<\s*memory-context\s*>", re.IGNORECASE)
_MEMORY_ENDS = re.compile(r"</\s*memory-context\s*>", re.IGNORECASE)
_NOTE = re.compile(
    r"\[System note:\s*The following is recalled memory context,\s*NOT new user input\.\s*Treat as "
    r"(?:informational background data|authoritative reference data[^\]]{0,1000})\.\]\s*",
    re.IGNORECASE,
)
_FENCE = re.compile(r"</?\s*memory-context\s*>", re.IGNORECASE)
_THOUGHT = re.compile(r"<think>\n(?:.*?\n)?</think>\n?", re.DOTALL)
#: So many characters beside a mask are looked for, the more the better.
_TELLING = (64, TELLING)
_SPOKEN = frozenset({"user", "assistant"})


def cleaned(text: str) -> str:
    """The text as an agent that loads it from the store has it."""
    if "memory" in text.lower():
        text = _FENCE.sub("", _NOTE.sub("", "".join(_without_memory(text))))
    text = text.replace("<REASONING_SCRATCHPAD>", "<think>").replace("</REASONING_SCRATCHPAD>", "</think>")
    if "<think>" in text:
        text = re.sub(r"(?<!\n)\n+(<think>)", r"\n\1", text)
        text = re.sub(r"(</think>)\n+", r"\1\n", text)
    return text.strip()


def _without_memory(text: str) -> Iterator[str]:
    place = 0
    while begins := _MEMORY_BEGINS.search(text, place):
        ends = _MEMORY_ENDS.search(text, begins.end())
        if ends is None:
            break
        yield text[place : begins.start()]
        place = ends.end()
    yield text[place:]


def spoken(role: str, content: Any) -> str:
    """The words of a message, cleaned where its role is one whose texts are."""
    text = plain_text(content)
    return cleaned(text) if role in _SPOKEN else text


def _calls(calls: Any, *, ids: bool = True) -> Hashable:
    if not isinstance(calls, list) or not calls:
        return None
    return tuple(_call(call, ids=ids) for call in calls)


def _call(call: Any, *, ids: bool) -> Hashable:
    if not isinstance(call, dict):
        return frozen(call)
    function = call.get("function")
    named = function if isinstance(function, dict) else call
    arguments = named.get("arguments")
    parsed = parse_json(arguments, arguments) if isinstance(arguments, str) else arguments
    return call.get("id") if ids else None, named.get("name"), frozen(parsed)


def _shown(role: str, content: Any, calls: Any, call_id: str | None) -> Hashable:
    """What is compared of a message. One without words is known by its parts, a result by its call too."""
    words = spoken(role, content)
    rest = None if words or isinstance(content, str) else frozen(content)
    return role, words, rest, _calls(calls), call_id or None


def _traced(role: str, content: Any, calls: Any, call_id: str | None) -> Hashable:
    """The same in a trace, which knows three roles and shows the result of a tool as JSON where it is no
    text."""
    if isinstance(content, dict) or (role == "tool" and not isinstance(content, str | bytes)):
        content = json.dumps(content)
    elif isinstance(content, list):
        content = "\n".join(text for text in map(_traced_part, content) if text)
    return _shown(role if role in ("tool", "assistant") else "user", content, calls, call_id)


def _traced_part(part: Any) -> str:
    if not isinstance(part, dict):
        return str(part)
    if part.get("type") == "text":
        return str(part.get("text", ""))
    return "" if part.get("type") in ("image_url", "image") else json.dumps(part)


def _trained(role: str, content: Any, calls: Any, call_id: str | None) -> Hashable:
    """The same in a trajectory, which has no ids of calls and reads the result of a tool as JSON."""
    if role == "tool":
        looks = isinstance(content, str) and content.strip().startswith(("{", "["))
        return role, frozen(parse_json(content, content) if looks else content), call_id or None
    words = spoken(role, content)
    thought = _THOUGHT.match(words)
    return role, words[thought.end() :].strip() if thought else words, _calls(calls, ids=False)


_VIEWS = {Kind.TRACE: _traced, Kind.TRAJECTORY: _trained}
_HIDDEN = {Kind.TRACE: frozenset({"system"})}


def lens(kind: Kind) -> Lens:
    """The lens of one of the kinds ``IN_MEMORY``."""
    view = _VIEWS.get(kind, _shown)
    hidden = _HIDDEN.get(kind, frozenset())

    def of_row(row: Message) -> Hashable:
        return view(row.role, row.content, row.tool_calls, row.tool_call_id)

    def of_record(record: Record) -> Hashable:
        return view(record.role, record.content, record.tool_calls, record.tool_call_id)

    def row_keys(row: Message) -> Iterator[Hashable]:
        shown = of_row(row)
        yield shown, finite(row.timestamp)
        yield shown, None

    def row_places(row: Message) -> Iterator[Hashable]:
        text = spoken(row.role, row.content)
        yield row.role, finite(row.timestamp)
        if row.tool_call_id:
            yield row.role, "call", row.tool_call_id
        for length in _TELLING:
            yield row.role, "begins", text[:length]
            yield row.role, "ends", text[-length:]

    return Lens(
        fidelity=Fidelity.LOSSY,
        row_keys=row_keys,
        record_keys=lambda record: [(of_record(record), record.timestamp)],
        row_places=row_places,
        record_places=_record_places,
        row_text=lambda row: _words(row.role, row.content, row.tool_calls),
        record_text=lambda record: _words(record.role, record.content, record.tool_calls),
        shows=lambda row: row.role not in hidden,
        settled=False,
    )


def _record_places(record: Record) -> Iterator[Hashable]:
    """The places of a record that matched no row. Without a time, its call tells, or what stands beside its
    masks."""
    if record.timestamp is not None:
        yield record.role, record.timestamp
    elif record.tool_call_id:
        yield record.role, "call", record.tool_call_id
    elif sides := around(spoken(record.role, record.content)):
        begins, ends = sides
        for length in _TELLING:
            if len(begins) >= length or len(ends) >= length:
                told = ("begins", begins[:length]) if len(begins) >= length else ("ends", ends[-length:])
                yield record.role, *told
                return


def _words(role: str, content: Any, calls: Any) -> str:
    text = spoken(role, content)
    return f"{text}\n{_calls(calls)!r}" if calls else text
