"""The published JSON Schemas of playbooks and choices files, generated from their types.

They describe a file as it is written. So wherever a template may stand, one is accepted beside the value that
it becomes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from statemend.playbook import choices, model
from statemend.playbook.check import FIXED
from statemend.repair.schemas import described

#: File name to the type that it describes. ``write`` makes the files; a test says when one is stale.
PUBLISHED = {
    "playbook-v1.json": (model.SCHEMA, model.Playbook),
    "choices-v1.json": (choices.SCHEMA, choices.Choices),
}
FOLDER = Path(__file__).parent / "schema"

_TEMPLATE: Final = {
    "description": "A template: the name of an input in braces, {{ name }}.",
    "type": "string",
    "pattern": r"\{\{",
}
_REFERENCE: Final = {"$ref": "#/$defs/Template"}


def render(name: str) -> str:
    """The JSON Schema that the file ``name`` should hold."""
    title, kind = PUBLISHED[name]
    text = described(title, kind).replace(r"\\Z", "$")  # the end of a text, as every dialect knows it
    if kind is not model.Playbook:
        return text
    schema = json.loads(text)
    steps = schema["$defs"]["Playbook"]["properties"]["steps"]["items"]["anyOf"]
    for step in (schema["$defs"][one["$ref"].rpartition("/")[2]] for one in steps):
        for field, value in step["properties"].items():
            if field not in FIXED:
                step["properties"][field] = _or_template(value)
    schema["$defs"]["Template"] = _TEMPLATE
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write() -> None:
    """Write every schema anew."""
    FOLDER.mkdir(exist_ok=True)
    for name in PUBLISHED:
        (FOLDER / name).write_text(render(name), encoding="utf-8")


def _or_template(value: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a field, or of the items in its list, with a template allowed too."""
    about = {key: value[key] for key in ("description", "default") if key in value}
    rest = {key: item for key, item in value.items() if key not in about}
    if rest.get("type") == "string":
        return dict(value)
    if rest.get("type") == "array" and rest["items"].get("type") != "string":
        rest = {**rest, "items": {"anyOf": [rest["items"], _REFERENCE]}}
    return {**about, "anyOf": [*(rest["anyOf"] if list(rest) == ["anyOf"] else [rest]), _REFERENCE]}
