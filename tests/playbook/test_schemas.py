"""The published schemas: fresh, and true of real files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.playbook.test_check import HEAD, WHOLE

from statemend.playbook import choices, schemas, source

PLAYBOOKS = sorted((Path(__file__).resolve().parents[2] / "playbooks").glob("*.yaml"))


def published(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((schemas.FOLDER / name).read_text("utf-8"))
    return document


def validate(text: str) -> None:
    jsonschema.validate(source.parse(text.encode(), "p.yaml").data, published("playbook-v1.json"))


@pytest.mark.parametrize("name", schemas.PUBLISHED)
def test_each_published_schema_is_that_of_its_type(name: str) -> None:
    said = (schemas.FOLDER / name).read_text("utf-8")
    assert said == schemas.render(name), "run statemend.playbook.schemas.write()"
    jsonschema.Draft202012Validator.check_schema(json.loads(said))


@pytest.mark.parametrize("name", schemas.PUBLISHED)
def test_every_field_is_described(name: str) -> None:
    for kind, schema in published(name)["$defs"].items():
        bare = [field for field, one in schema.get("properties", {}).items() if "description" not in one]
        assert set(bare) <= {"do"}, kind
        assert "description" in schema, kind


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_a_shipped_playbook_obeys_the_schema(path: Path) -> None:
    validate(path.read_text("utf-8"))


def test_a_playbook_with_templates_obeys_the_schema() -> None:
    validate(HEAD + WHOLE)


@pytest.mark.parametrize(
    "steps",
    [
        "  - do: scann\n",
        "  - {do: scan, dep: true}\n",
        "  - {do: scan, deep: perhaps}\n",
        "  - {do: scan, id: '{{ level }}'}\n",
        "  - do: pause\n",
        "  []\n",
    ],
)
def test_the_schema_refuses_what_a_playbook_may_not_be(steps: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate(HEAD + steps)


def test_a_choices_file_obeys_the_schema() -> None:
    schema = published("choices-v1.json")
    answer = {"choice": "a", "option": None}
    jsonschema.validate({"schema": choices.SCHEMA, "choices": [answer]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": choices.SCHEMA, "choices": [{**answer, "surprise": 1}]}, schema)
