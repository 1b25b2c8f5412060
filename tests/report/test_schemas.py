from __future__ import annotations

import json

import jsonschema
import pytest
from tests.report import sample

from statemend.report import schemas
from statemend.report.baseline import baseline_of
from statemend.report.diff import diff
from statemend.report.json import dump


@pytest.mark.parametrize("name", schemas.PUBLISHED)
def test_each_published_schema_is_that_of_its_type(name: str) -> None:
    said = (schemas.FOLDER / name).read_text("utf-8")
    assert said == schemas.render(name), "run statemend.report.schemas.write()"
    jsonschema.Draft202012Validator.check_schema(json.loads(said))


def published(name: str) -> dict[str, object]:
    return dict(json.loads((schemas.FOLDER / name).read_text("utf-8")))


def test_differences_and_baselines_obey_their_schemas() -> None:
    compared = diff(sample.large_report(), sample.report())
    jsonschema.validate(json.loads(dump(compared)), published("diff-v1.json"))
    jsonschema.validate(json.loads(dump(baseline_of(sample.report()))), published("baseline-v1.json"))


def test_a_baseline_with_more_than_the_contract_knows_is_refused() -> None:
    document = json.loads(dump(baseline_of(sample.report()))) | {"note": "x"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, published("baseline-v1.json"))
