from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from tests.audit.builder import HomeBuilder
from tests.repair.planning import plan_of, text_of

from statemend.repair import schemas
from statemend.repair.apply import apply


@pytest.mark.parametrize("name", schemas.PUBLISHED)
def test_each_published_schema_is_that_of_its_type(name: str) -> None:
    said = (schemas.FOLDER / name).read_text("utf-8")
    assert said == schemas.render(name), "run statemend.repair.schemas.write()"
    jsonschema.Draft202012Validator.check_schema(json.loads(said))


def published(name: str) -> dict[str, object]:
    return json.loads((schemas.FOLDER / name).read_text("utf-8"))


def test_a_plan_and_the_run_of_it_obey_the_published_schemas(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    home.chat("gone")
    home.sql("DELETE FROM sessions")
    home.chat("child", parent_session_id="nobody")
    plan = text_of(plan_of(home))
    (tmp_path / "plan.json").write_text(plan)
    jsonschema.validate(json.loads(plan), published("plan-v1.json"))

    apply(tmp_path / "plan.json", run_dir=tmp_path / "run")

    jsonschema.validate(json.loads((tmp_path / "run" / "run.json").read_text()), published("run-v1.json"))


def test_the_schema_refuses_what_a_plan_does_not_know(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path / "home", "0.19.0")
    document = json.loads(text_of(plan_of(home)))
    document["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, published("plan-v1.json"))
