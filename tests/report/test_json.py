from __future__ import annotations

import json as stdlib
from collections.abc import Callable

import jsonschema
import msgspec
import pytest
from tests.report import sample

from statemend.report import json
from statemend.report.model import Report


@pytest.mark.parametrize(
    "make", [sample.report, sample.clean_report, sample.hostile_report, sample.large_report]
)
def test_every_report_obeys_the_published_schema(make: Callable[[], Report]) -> None:
    schema = stdlib.loads(json.SCHEMA_FILE.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(stdlib.loads(json.render(make())), schema)


def test_the_schema_refuses_what_the_contract_does_not_know() -> None:
    document = stdlib.loads(json.render(sample.report()))
    document["findings"][0]["severity"] = "terrible"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, stdlib.loads(json.SCHEMA_FILE.read_text("utf-8")))


def test_the_contract_names_its_top_level() -> None:
    assert list(stdlib.loads(json.render(sample.report()))) == [
        "schema",
        "tool",
        "home",
        "exports",
        "generated_at",
        "verdict",
        "fail_on",
        "exit_code",
        "stores",
        "artifacts",
        "rules",
        "findings",
        "sessions",
        "timeline",
        "lineage",
        "checklist",
        "skipped",
    ]


def test_texts_are_there_only_when_they_were_asked_for() -> None:
    assert "contents" not in stdlib.loads(json.render(sample.report()))
    assert stdlib.loads(json.render(sample.hostile_report()))["contents"][0]["message_id"] == 7


def test_a_report_reads_back_equal() -> None:
    report = sample.report()
    assert msgspec.json.decode(json.render(report), type=Report) == report


def test_what_utf8_cannot_hold_is_spelled_out() -> None:
    report = sample.report(home="/srv/\udc80\ud800")
    assert stdlib.loads(json.render(report))["home"] == "/srv/\\udc80\\ud800"
