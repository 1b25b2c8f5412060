"""Changes single keys of the JSON text in ``sessions.model_config`` and leaves every other character alone.

Hermes and SQLite write this text in different styles, and other programs add keys of their own. Parsing it
and writing it anew would change what nobody asked to change, so members are cut out and put in by place.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import NamedTuple, NoReturn

_SPACE = " \t\n\r"


class NotEditableError(ValueError):
    """The text is not what the key could be changed in. Says why, without showing the text."""


class _Member(NamedTuple):
    """One key of the object: where it begins, where its value begins, and where that ends."""

    key: str
    start: int
    value_start: int
    end: int


def without(text: str | None, keys: Collection[str]) -> str | None:
    """The text without these keys; ``None`` (no configuration, as Hermes stores an empty one) when nothing is
    left. Raises ``NotEditableError``."""
    if text is None:
        return None
    members = _members(text)
    kept = [member for member in members if member.key not in keys]
    if len(kept) == len(members):
        return text
    if not kept:
        return None
    for position in reversed(range(len(members))):
        member = members[position]
        if member.key not in keys:
            continue
        # The first member goes with the comma behind it, any other with the comma before it.
        if position == 0:
            text = text[: member.start] + text[members[1].start :]
        else:
            text = text[: members[position - 1].end] + text[member.end :]
        members = _members(text)
    return text


def with_key(text: str | None, key: str, value: str) -> str:
    """The text with ``key`` set to ``value``, in the style in which the other keys are written. Raises
    ``NotEditableError``."""
    written = json.dumps(value)
    if _surrogates(value):
        raise NotEditableError("the session id in question is not valid text")
    if text is None:
        return f"{{{json.dumps(key)}: {written}}}"
    members = _members(text)
    same = [member for member in members if member.key == key]
    if len(same) > 1:
        raise NotEditableError(f"it has the key {key} more than once")
    if same:
        return text[: same[0].value_start] + written + text[same[0].end :]
    if not members:
        inside = text.index("{") + 1
        return f"{text[:inside]}{json.dumps(key)}: {written}{text[inside:].lstrip(_SPACE)}"
    last = members[-1]
    colon = text[last.start : last.value_start].partition(":")[2] if ":" not in last.key else " "
    comma = text[members[-2].end : last.start] if len(members) > 1 else f",{colon}"
    return f"{text[: last.end]}{comma}{json.dumps(key)}:{colon}{written}{text[last.end :]}"


def _members(text: str) -> list[_Member]:
    try:
        return _scan(text)
    except (ValueError, IndexError, RecursionError) as error:
        if isinstance(error, NotEditableError):
            raise
        raise NotEditableError("it is not valid JSON") from error


def _scan(text: str) -> list[_Member]:
    decoder = json.JSONDecoder(parse_constant=_refuse)
    position = _skip(text, 0)
    if text[position] != "{":
        decoder.raw_decode(text, position)
        raise NotEditableError("it is no JSON object")
    members: list[_Member] = []
    position = _skip(text, position + 1)
    while text[position] != "}":
        if members:
            position = _skip(text, _expect(text, position, ","))
        start = position
        _expect(text, position, '"')
        key, position = decoder.raw_decode(text, position)
        value_start = _skip(text, _expect(text, _skip(text, position), ":"))
        _, end = decoder.raw_decode(text, value_start)
        members.append(_Member(key, start, value_start, end))
        position = _skip(text, end)
    if text[position + 1 :].strip(_SPACE):
        raise NotEditableError("it is not valid JSON")
    return members


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _expect(text: str, position: int, character: str) -> int:
    if text[position] != character:
        raise NotEditableError("it is not valid JSON")
    return position + 1


def _refuse(_: str) -> NoReturn:
    raise NotEditableError("it is not valid JSON")


def _surrogates(value: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in value)
