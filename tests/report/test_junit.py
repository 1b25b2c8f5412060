from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.report import sample

from statemend.audit.finding import Verdict
from statemend.audit.outcome import FailOn
from statemend.report import junit, text
from statemend.report.baseline import apply_baseline
from statemend.report.model import Report, RuleEntry, SkippedEntry

WITH_FINDING = RuleEntry(id="EXP001", slug="x", title="", status="findings", findings=1)
TAGS = {"tests": "*", "failures": "failure", "errors": "error", "skipped": "skipped"}


def parsed(report: Report) -> ET.Element:
    return ET.fromstring(junit.render(report).encode("utf-8"))


def case(root: ET.Element, rule: str) -> ET.Element:
    (found,) = (each for each in root.iter("testcase") if each.get("name", "").startswith(rule))
    return found


@pytest.mark.parametrize(
    "make", [sample.report, sample.clean_report, sample.hostile_report, sample.large_report]
)
def test_the_numbers_are_those_of_the_cases(make: Callable[[], Report]) -> None:
    root = parsed(make())
    assert root.tag == "testsuites"
    for element in (root, *root.iter("testsuite")):
        cases = list(element.iter("testcase"))
        for attribute, tag in TAGS.items():
            number = sum(tag == "*" or each.find(tag) is not None for each in cases)
            assert element.get(attribute) == str(number), attribute


def test_there_is_a_case_for_each_rule_in_the_suite_of_its_family() -> None:
    root = parsed(sample.report())
    names = {suite.get("name"): len(suite.findall("testcase")) for suite in root}
    assert names == {"store": 2, "exports": 6, "orphans": 2, "lineage": 3, "counters": 1, "evidence": 2}
    assert case(root, "EXP003").get("classname") == "statemend.exports"


@pytest.mark.parametrize("fail_on", list(FailOn))
def test_a_rule_fails_as_the_exit_code_does(fail_on: FailOn) -> None:
    root = parsed(sample.report(fail_on=fail_on))
    failed = {each.get("name", "")[:6] for each in root.iter("testcase") if each.find("failure") is not None}
    wanted = {
        FailOn.FAULT: {Verdict.FAULT},
        FailOn.RISK: {Verdict.FAULT, Verdict.RISK},
        FailOn.NEVER: set[Verdict](),
    }[fail_on]
    assert failed == {finding.rule for finding in sample.FINDINGS if finding.verdict in wanted}


def test_findings_stand_in_the_case_with_id_and_command() -> None:
    root = parsed(sample.report())
    failure = case(root, "EXP001").find("failure")
    assert failure is not None
    assert failure.get("type") == "fault"
    assert failure.get("message") == (
        "1 finding, the worst critical: 80 archived messages of this session are in no export."
    )
    assert sample.FINDINGS[1].id in (failure.text or "")
    assert f"next: {sample.FINDINGS[1].remedy.command}" in (failure.text or "")
    mild = case(root, "EXP004").find("system-out")
    assert mild is not None
    assert sample.FINDINGS[7].id in (mild.text or "")


def test_what_could_not_run_is_an_error_and_keeps_what_it_had_found() -> None:
    rule = RuleEntry(id="LIN004", slug="cycle", title="", status="could not run", findings=1, reason="a page")
    found = sample.finding("LIN004", "s", "a cycle")
    error = case(parsed(sample.report(rules=(rule,), findings=(found,))), "LIN004").find("error")
    assert error is not None
    assert error.get("message") == "a page"
    assert found.id in (error.text or "")
    assert case(parsed(sample.report()), "LIN008").find("skipped") is not None


@pytest.mark.parametrize("what", ["unread", "changed"])
def test_what_else_could_not_be_determined_is_an_error_too(what: str) -> None:
    report = sample.clean_report()
    if what == "unread":
        report = msgspec.structs.replace(report, skipped=(SkippedEntry("/x/a.md", "gone", unread=True),))
    else:
        store = msgspec.structs.replace(report.stores[0], unchanged=False)
        report = msgspec.structs.replace(report, stores=(store,))
    assert parsed(sample.clean_report()).get("errors") == "0"
    assert parsed(report).get("errors") == "1"


def test_hostile_text_is_shown_in_a_document_that_parses() -> None:
    written = junit.render(sample.hostile_report())
    assert not {"\x1b", "\u202e"} & set(written)
    root = ET.fromstring(written.encode("utf-8"))
    assert "[U+001B]" in ET.tostring(root, encoding="unicode")
    assert "second line" not in written


@given(st.text(st.characters(), max_size=30))
@example("\0\x08\x0b\ufffe\uffff\ud800\udcff")
@example("]]><!-- -->&")
def test_no_character_breaks_the_document(raw: str) -> None:
    found = sample.finding("EXP001", raw, raw, artifact=raw, command=raw)
    root = parsed(sample.report(findings=(found,), rules=(WITH_FINDING,), home=raw))
    failure = case(root, "EXP001").find("failure")
    assert failure is not None
    assert text.clip(raw, 400).strip() in (failure.text or "")


def test_a_baseline_is_told_where_it_hides() -> None:
    hidden = apply_baseline(sample.report(), [sample.FINDINGS[1].id])
    root = parsed(hidden)
    told = case(root, "EXP001")
    assert told.find("failure") is None
    assert told.findtext("system-err") == "1 known finding hidden by the baseline"
    properties = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert properties["baseline"] == "1 known finding hidden by the baseline."


def test_a_rule_with_many_findings_is_cut_short() -> None:
    findings = tuple(sample.finding("EXP001", str(number), "x") for number in range(junit.MOST_FINDINGS + 5))
    failure = case(parsed(sample.report(findings=findings)), "EXP001").find("failure")
    assert failure is not None
    assert (failure.text or "").endswith("\n5 more in the JSON form of this report")
