"""The published JSON Schemas of plans, of what comes of them, and of exports, generated from their types."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from statemend.repair import cleanup, cleanup_plan, export_result, plan, receipt, rehearse, run

#: File name to the type that it describes. ``write`` makes the files; a test says when one is stale.
PUBLISHED = {
    "plan-v1.json": (plan.SCHEMA, plan.Plan),
    "run-v1.json": (run.SCHEMA, run.Run),
    "cleanup-v1.json": (cleanup_plan.SCHEMA, cleanup_plan.CleanupPlan),
    "receipt-v1.json": (receipt.SCHEMA, receipt.Receipt),
    "export-v1.json": (export_result.SCHEMA, export_result.Reexport),
    "rehearsal-v1.json": (rehearse.SCHEMA, rehearse.Rehearsal),
    "cleaned-v1.json": (cleanup.SCHEMA, cleanup.Cleanup),
}
FOLDER = Path(__file__).parent / "schema"

_BLANKS = re.compile(r"\s+")


def render(name: str) -> str:
    """The JSON Schema that the file ``name`` should hold."""
    return described(*PUBLISHED[name])


def described(title: str, kind: Any) -> str:
    """The JSON Schema of a type, as the text of a file."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **msgspec.json.schema(kind),
    }
    return msgspec.json.format(msgspec.json.encode(_one_line(schema)), indent=2).decode() + "\n"


def write() -> None:
    """Write every schema anew."""
    for name in PUBLISHED:
        (FOLDER / name).write_text(render(name), encoding="utf-8")


def _one_line(value: Any) -> Any:
    """Descriptions without the line breaks of the source they come from."""
    if isinstance(value, dict):
        return {
            key: _BLANKS.sub(" ", item) if key == "description" and isinstance(item, str) else _one_line(item)
            for key, item in value.items()
        }
    return [_one_line(item) for item in value] if isinstance(value, list) else value
