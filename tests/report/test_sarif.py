from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.report import sample

from statemend.audit import registry
from statemend.audit.finding import Severity, Verdict
from statemend.report import sarif
from statemend.report.baseline import apply_baseline
from statemend.report.model import Report, SkippedEntry, StoreEntry

SCHEMA = Path(__file__).parent.parent / "data" / "sarif" / "sarif-schema-2.1.0.json"
VALIDATOR = jsonschema.Draft4Validator(json.loads(SCHEMA.read_text("utf-8")))
REPORTS: list[Callable[[], Report]] = [
    sample.report,
    sample.clean_report,
    sample.hostile_report,
    sample.large_report,
]


def run_of(report: Report) -> dict[str, Any]:
    (run,) = json.loads(sarif.render(report))["runs"]
    return dict(run)


def every(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from every(item)


@pytest.mark.parametrize("make", REPORTS)
def test_every_log_obeys_the_published_schema(make: Callable[[], Report]) -> None:
    VALIDATOR.validate(json.loads(sarif.render(make())))


def test_the_published_schema_refuses_a_wrong_level() -> None:
    document = json.loads(sarif.render(sample.report()))
    document["runs"][0]["results"][0]["level"] = "terrible"
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document)


@pytest.mark.parametrize("make", REPORTS)
def test_every_index_and_base_leads_to_what_it_names(make: Callable[[], Report]) -> None:
    run = run_of(make())
    driver = run["tool"]["driver"]
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    for notice in run["invocations"][0]["toolExecutionNotifications"]:
        kind = notice["descriptor"]
        assert driver["notifications"][kind["index"]]["id"] == kind["id"]
        if rule := notice.get("associatedRule"):
            assert driver["rules"][rule["index"]]["id"] == rule["id"]
    for place in every([run["results"], run["invocations"], run["artifacts"]]):
        if "index" in place and "uri" in place:
            own = run["artifacts"][place["index"]]["location"]
            assert (own["uri"], own.get("uriBaseId")) == (place["uri"], place.get("uriBaseId"))
        if "uriBaseId" in place:
            assert place["uriBaseId"] in run["originalUriBaseIds"]


def test_a_finding_is_a_result_with_its_place_its_id_and_its_remedy() -> None:
    report = sample.report()
    results = run_of(report)["results"]
    assert [result["partialFingerprints"][sarif.FINGERPRINT] for result in results] == [
        finding.id for finding in report.findings
    ]
    lost = results[1]
    assert lost["message"]["text"] == "80 archived messages of this session are in no export."
    assert lost["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {
                    "uri": "session-exports/20260812_091500_4f1d2c-deploy-notes.md",
                    "uriBaseId": "HERMES_HOME",
                    "index": 2,
                }
            },
            "logicalLocations": [{"name": "20260812_091500_4f1d2c", "kind": "session"}],
        }
    ]
    store = lost["relatedLocations"][0]["physicalLocation"]["artifactLocation"]
    assert store == {"uri": "state.db", "uriBaseId": "HERMES_HOME", "index": 0}
    assert lost["properties"]["verdict"] == "fault"
    assert lost["properties"]["evidence"][1] == {"label": "held by the export", "value": 42}
    assert lost["properties"]["remedy"]["command"].startswith("statemend show ")


def test_files_are_listed_with_their_digests() -> None:
    report = sample.report()
    artifacts = run_of(report)["artifacts"]
    assert len(artifacts) == 4
    assert [file["hashes"]["sha-256"] for file in artifacts[1:]] == [file.sha256 for file in report.artifacts]
    assert artifacts[2]["description"]["text"] == "markdown, damaged"


def test_a_rule_brings_its_documentation() -> None:
    run = run_of(sample.report())
    described = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    rule = registry.get("EXP001")
    told = described["EXP001"]
    assert told["name"] == rule.slug
    assert told["defaultConfiguration"] == {"level": "error"}
    assert told["properties"]["tags"] == ["exports", "critical", "fault"]
    for heading in rule.sections:
        assert f"**{heading}**" in told["help"]["markdown"]
        assert heading in told["help"]["text"]
    assert described["EXP010"]["defaultConfiguration"] == {"level": "warning"}
    assert described["EXP005"]["defaultConfiguration"] == {"level": "none"}


@pytest.mark.parametrize("rule", registry.all_rules(), ids=lambda rule: rule.id)
def test_no_documentation_holds_what_a_viewer_would_obey(rule: registry.Rule) -> None:
    assert "](" not in rule.doc
    assert "<" not in rule.doc


@pytest.mark.parametrize("severity", list(Severity))
def test_levels_follow_the_verdict_first(severity: Severity) -> None:
    order = ["none", "note", "warning", "error"]
    fault, risk, leftover, undecidable = (order.index(sarif.level(verdict, severity)) for verdict in Verdict)
    assert fault >= risk >= leftover > undecidable


def test_what_evidence_does_not_decide_is_open() -> None:
    results = run_of(sample.report())["results"]
    assert {result["level"] for result in results if result["kind"] == "open"} == {"none"}
    assert {result["properties"]["verdict"] for result in results if result["kind"] == "open"} == {
        "undecidable"
    }


def test_what_was_not_looked_at_is_a_notification() -> None:
    store = StoreEntry(path=sample.STORE, size=1, unchanged=False, fault="a page could not be read")
    skipped = (
        SkippedEntry("/srv/hermes/session-exports/a.jsonl", "permission denied", unread=True),
        SkippedEntry("/elsewhere/b.zip", "an archive"),
    )
    (invocation,) = run_of(sample.report(stores=(store,), skipped=skipped))["invocations"]
    assert invocation["exitCode"] == 3
    assert invocation["executionSuccessful"] is False
    assert invocation["startTimeUtc"] == "2026-10-01T03:12:44Z"
    told = [
        (notice["descriptor"]["id"], notice["level"]) for notice in invocation["toolExecutionNotifications"]
    ]
    assert told == [
        ("could-not-run", "error"),
        ("not-applicable", "note"),
        ("store-unreadable", "error"),
        ("store-changed", "error"),
        ("file-unread", "error"),
        ("file-skipped", "note"),
    ]
    uris = [
        notice["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for notice in invocation["toolExecutionNotifications"][-2:]
    ]
    assert uris == ["session-exports/a.jsonl", "file:///elsewhere/b.zip"]


def test_a_clean_audit_succeeded_without_results() -> None:
    run = run_of(sample.clean_report())
    assert run["results"] == []
    (invocation,) = run["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (0, True)
    assert invocation["toolExecutionNotifications"] == []


def test_messages_are_shown_and_never_obeyed() -> None:
    finding = sample.finding("EXP001", "s", "see [here](https://example.org) {0} \x1b[31m\u202e")
    said = run_of(sample.report(findings=(finding,)))["results"][0]["message"]["text"]
    assert said == "see [here] (https://example.org) {{0}} [U+001B][31m[U+202E]"


def test_message_texts_are_not_in_it() -> None:
    assert "second line" not in sarif.render(sample.hostile_report())


def test_paths_become_uris_byte_for_byte() -> None:
    path = "/srv/hermes/session-exports/a b%\udcff#ü:x.md"
    finding = sample.finding("EXP001", "s", "x", artifact=path)
    (result,) = run_of(sample.report(findings=(finding,)))["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "session-exports/a%20b%25%FF%23%C3%BC%3Ax.md", "uriBaseId": "HERMES_HOME"}


@pytest.mark.parametrize(
    ("home", "base", "uri"),
    [
        ("/srv/her mes", {"uri": "file:///srv/her%20mes/"}, "state.db"),
        ("demo-home", {"uri": "demo-home/", "uriBaseId": "WORKING_FOLDER"}, "state.db"),
        (".", {"uri": "./", "uriBaseId": "WORKING_FOLDER"}, "state.db"),
        ("../up", {}, "state.db"),
    ],
)
def test_the_home_is_the_base_of_what_lies_in_it(home: str, base: dict[str, str], uri: str) -> None:
    stores = (StoreEntry(path=f"{home}/state.db", size=1),)
    run = run_of(sample.report(home=home, stores=stores, findings=(), artifacts=(), skipped=()))
    told = run["originalUriBaseIds"]["HERMES_HOME"]
    del told["description"]
    assert told == base
    assert run["artifacts"][0]["location"] == {"uri": uri, "uriBaseId": "HERMES_HOME", "index": 0}


def test_a_baseline_is_told() -> None:
    run = run_of(apply_baseline(sample.report(), [sample.FINDINGS[0].id]))
    assert run["properties"]["baseline"]["hidden"] == [sample.FINDINGS[0].id]
    notices = run["invocations"][0]["toolExecutionNotifications"]
    assert notices[-1]["message"]["text"] == "1 known finding hidden by the baseline."
    assert len(run["results"]) == len(sample.FINDINGS) - 1
