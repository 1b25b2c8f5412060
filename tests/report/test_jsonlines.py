from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest
from tests.report import sample

from statemend.report import jsonlines
from statemend.report.baseline import apply_baseline
from statemend.report.model import Report

NAMES = {type_: name for name, type_ in jsonlines.TYPES.items()}


def with_baseline() -> Report:
    return apply_baseline(sample.report(), [sample.FINDINGS[0].id])


@pytest.mark.parametrize("make", [sample.report, sample.clean_report, sample.large_report, with_baseline])
def test_the_lines_put_together_are_the_report(make: Callable[[], Report]) -> None:
    report = make()
    head, *entries, end = (json.loads(line) for line in jsonlines.render(report).splitlines())
    assert head.pop("type") == "report"
    for entry in entries:
        head.setdefault(NAMES[entry.pop("type")], []).append(entry)
    assert msgspec.convert(head, Report) == report
    assert end == {"type": "end", "lines": len(entries) + 2}


def test_the_first_line_names_the_contract_the_verdict_and_the_exit_code() -> None:
    head = json.loads(jsonlines.render(sample.report()).partition("\n")[0])
    assert head["schema"] == "statemend/report/v1"
    assert head["exit_code"] == 3
    assert head["verdict"].startswith("6 faults and 1 risk")


def test_nothing_in_a_line_breaks_it_or_reaches_a_terminal() -> None:
    found = sample.finding("EXP001", "a\nb\x1b\u2028\u202e\x85", "c\r\nd")
    written = jsonlines.render(sample.report(findings=(found,)))
    assert not {"\x1b", "\u2028", "\u202e", "\x85", "\r"} & set(written)
    assert len(written.splitlines()) == json.loads(written.splitlines()[-1])["lines"]
    (line,) = (json.loads(line) for line in written.splitlines() if line.startswith('{"type":"finding"'))
    assert line["subject"]["session"] == "a\nb\x1b\u2028\u202e\x85"


def test_texts_are_there_only_when_they_were_asked_for() -> None:
    assert '"type":"content"' not in jsonlines.render(sample.report())
    assert '"type":"content"' in jsonlines.render(sample.hostile_report())
