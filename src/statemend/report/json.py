"""The report as JSON, and the JSON Schema of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from statemend.report.model import SCHEMA, Report
from statemend.report.text import encodable

#: The published schema. ``write_schema`` makes it; a test says when it is stale.
SCHEMA_FILE = Path(__file__).parent / "schema" / "report-v1.json"

_NOT_ASCII = re.compile(r"[^\x20-\x7e\n]")


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
    return _NOT_ASCII.sub(_spelled_out, msgspec.json.format(_encoded(value), indent=2).decode()) + "\n"


def line(value: Any) -> str:
    """The same as ``dump`` on one line."""
    return _NOT_ASCII.sub(_spelled_out, _encoded(value).decode()) + "\n"


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(_encodable(msgspec.to_builtins(value)))


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


def schema() -> str:
    """The JSON Schema of the contract, generated from the types."""
    definition = msgspec.json.schema(Report)
    described = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        **definition,
    }
    return dump(_one_line(described))


def _one_line(value: Any) -> Any:
    """Descriptions without the line breaks of the source they come from."""
    if isinstance(value, dict):
        return {
            key: " ".join(item.split()) if key == "description" and isinstance(item, str) else _one_line(item)
            for key, item in value.items()
        }
    return [_one_line(item) for item in value] if isinstance(value, list) else value


def write_schema() -> Path:
    """Write the published schema anew and say where."""
    SCHEMA_FILE.write_text(schema(), encoding="utf-8")
    return SCHEMA_FILE
