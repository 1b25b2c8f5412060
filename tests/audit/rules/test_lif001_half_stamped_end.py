"""LIF001 half-stamped-end: an end without a reason, or a reason without an end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]


@pytest.mark.fires("LIF001")
@pytest.mark.parametrize("version", VERSIONS)
def test_an_end_without_a_reason_is_a_fault(build: Build, version: str) -> None:
    home = build(version)
    home.chat("a", 2, ended_at=START + 50)
    (finding,) = home.findings("LIF001")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.LOW)
    assert finding.subject.session == "a"
    assert facts(finding)["ended at"] == "2026-09-21T14:14:10Z"
    assert "ended by" not in facts(finding)


@pytest.mark.parametrize(
    ("reason", "severity"), [("cli_close", "low"), ("compression", "medium"), ("branched", "medium")]
)
def test_a_reason_without_an_end_is_a_fault(build: Build, reason: str, severity: str) -> None:
    home = build()
    home.chat("a", 2, end_reason=reason)
    (finding,) = home.findings("LIF001")
    assert finding.verdict is Verdict.FAULT
    assert finding.severity.value == severity
    assert facts(finding)["ended by"] == reason
    assert "ended at" not in facts(finding)


@pytest.mark.near_miss("LIF001")
@pytest.mark.parametrize("version", VERSIONS)
def test_open_and_ended_sessions_are_silent(build: Build, version: str) -> None:
    home = build(version)
    home.chat("open", 2)
    home.chat("ended", 2, ended_at=START + 50, end_reason="cli_close")
    home.chat("ended by a program", 2, ended_at=START + 50, end_reason="")
    home.chat("ended before it began", 2, ended_at=0.0, end_reason="cli_close")
    assert home.findings("LIF001") == []


def test_hostile_cells_are_shown_short(build: Build) -> None:
    home = build()
    home.session("a", end_reason=b"\xff" * 5000, title="x" * 5000)
    (finding,) = home.findings("LIF001")
    assert facts(finding)["ended by"] == "a cell of type bytes"
    assert len(str(facts(finding)["title"])) <= 200
