"""JSON from files that other programs wrote, read exactly and without surprises.

msgspec does the work. What Python's own writer may have put down and strict JSON forbids (``NaN``, lone
surrogate escapes, numbers past the float range) goes to the standard library's parser. Nesting
deep enough to exhaust the stack, and anything else that is no JSON, is ``UnreadableJsonError``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from statemend.formats import files
from statemend.formats.files import BYTE_ORDER_MARK

_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"
#: What a value takes in memory (bytes), by the signs around it. Hostile JSON takes thirty times its length.
_COSTS = ((b"{", 250), (b"[", 60), (b",", 40))
#: No more than this (bytes) is taken by what is read at once.
_MOST_MEMORY = 1024**3
#: JSON of no more bytes than this surely takes less.
_SURELY_LESS = _MOST_MEMORY // 128


class UnreadableJsonError(ValueError):
    """The bytes are not one JSON value."""


def fits(data: bytes) -> bool:
    """Whether what ``data`` holds may be read at once. Signs in its texts count like those around them."""
    if len(data) <= _SURELY_LESS:
        return True
    return len(data) + sum(cost * data.count(sign) for sign, cost in _COSTS) <= _MOST_MEMORY


def lines(path: Path) -> files.Scan:
    """A file of one value per line, to be gone through once."""
    return files.Scan(path, fits=fits)


def loads(data: bytes) -> Any:
    """The value in ``data``. Raises ``UnreadableJsonError``.

    Bytes that are not UTF-8 survive as lone surrogates (``surrogateescape``); a byte order mark is skipped.
    """
    data = data.removeprefix(BYTE_ORDER_MARK)
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _standard(data)


def _standard(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnreadableJsonError(str(error)) from error


def is_utf8(data: bytes) -> bool:
    """Whether the bytes decode; msgspec does not look inside the members that it skips."""
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def complete_members(data: bytes, array: str) -> dict[str, Any]:
    """What is whole in a JSON object whose end is missing.

    Members up to the cut are returned; of the member named ``array`` also the elements that are
    complete. The result is empty when the bytes do not start an object.
    """
    text = data.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "surrogateescape")
    members: dict[str, Any] = {}
    position = _after_space(text, 0)
    if not text.startswith("{", position):
        return members
    position += 1
    try:
        while True:
            position = _after_space(text, position)
            if not text.startswith('"', position):
                return members
            key, position = _DECODER.raw_decode(text, position)
            position = _after_space(text, position)
            if not text.startswith(":", position):
                return members
            position = _after_space(text, position + 1)
            if key == array and text.startswith("[", position):
                elements: list[Any] = []
                members[key] = elements
                position = _fill(text, position + 1, elements)
                continue
            value, position = _DECODER.raw_decode(text, position)
            position = _after_space(text, position)
            if text[position : position + 1] not in (",", "}"):
                return members
            members[key] = value
            if text[position] == "}":
                return members
            position += 1
    except (ValueError, RecursionError):
        return members


def _fill(text: str, position: int, elements: list[Any]) -> int:
    """Collect array elements from ``position``; the place after the array, or an error at the cut."""
    while True:
        position = _after_space(text, position)
        if text.startswith("]", position):
            position = _after_space(text, position + 1)
            if not text.startswith(",", position):
                raise UnreadableJsonError("the object ends here")
            return position + 1
        value, position = _DECODER.raw_decode(text, position)
        elements.append(value)
        position = _after_space(text, position)
        if text.startswith(",", position):
            position += 1
        elif not text.startswith("]", position):
            raise UnreadableJsonError("the array is cut")


def _after_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position
