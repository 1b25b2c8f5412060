"""The report as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from statemend.report.model import Report
from statemend.report.text import encodable

#: The published schema of a report.
SCHEMA_FILE = Path(__file__).parent / "schema" / "report-v1.json"

_NOT_ASCII = re.compile(r"[^\x20-\x7e]")
_DELETE = "\x7f"


def render(report: Report) -> str:
    """The report as indented JSON with a final newline. Fields keep the order of the contract; a character
    that UTF-8 cannot hold is spelled out."""
    return dump(without_absent(report))


def without_absent(report: Report) -> dict[str, Any]:
    """The report as plain values; ``baseline`` and ``contents`` are only there when they were asked for."""
    plain: dict[str, Any] = msgspec.to_builtins(report)
    for name in ("baseline", "contents"):
        if plain[name] is None:
            del plain[name]
    return plain


def dump(value: Any) -> str:
    """Any value of structs and plain types as the JSON that statemend prints. What a terminal would obey
    instead of show is spelled out (``\\u202e``); a reader of JSON gets the character itself."""
    return msgspec.json.format(_encoded(value), indent=2) + "\n"


def line(value: Any) -> str:
    """The same as ``dump`` on one line."""
    return _encoded(value) + "\n"


def _encoded(value: Any) -> str:
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        data = msgspec.json.encode(_encodable(msgspec.to_builtins(value)))
    text = data.decode()
    return text if text.isascii() and _DELETE not in text else _NOT_ASCII.sub(_spelled_out, text)


def _spelled_out(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value
