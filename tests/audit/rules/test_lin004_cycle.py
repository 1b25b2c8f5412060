"""LIN004 cycle: links that lead back to where they began."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

pytestmark = pytest.mark.built(
    "LIN004", "each release refuses a parent that is not there yet, so that no ring comes about"
)

Build = Callable[..., HomeBuilder]


@pytest.mark.fires("LIN004")
@pytest.mark.parametrize("version", VERSIONS)
def test_two_sessions_that_are_each_others_parent(build: Build, version: str) -> None:
    home = build(version)
    home.chat("a", 2, parent_session_id="b", started_at=START + 5)
    home.chat("b", 2, parent_session_id="a")
    (finding,) = home.findings("LIN004")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    assert finding.subject.session == "b"
    assert facts(finding)["sessions in the ring"] == 2


def test_a_session_that_is_its_own_parent(build: Build) -> None:
    home = build()
    home.chat("a", 2, parent_session_id="a")
    assert [finding.subject.session for finding in home.findings("LIN004")] == ["a"]


def test_delegate_marks_that_name_each_other(build: Build) -> None:
    home = build("0.17.0")
    home.chat("a", 2, model_config={"_delegate_from": "b"})
    home.chat("b", 2, model_config={"_delegate_from": "a"})
    assert len(home.findings("LIN004")) == 1


def test_a_ring_of_a_parent_link_and_a_mark(build: Build) -> None:
    home = build("0.17.0")
    home.chat("a", 2, parent_session_id="b", model_config={"_delegate_from": "b"})
    home.chat("b", 2, model_config={"_delegate_from": "a"})
    assert len(home.findings("LIN004")) == 1


def test_what_leads_into_a_ring_is_not_part_of_it(build: Build) -> None:
    home = build()
    home.chat("a", 2, parent_session_id="b")
    home.chat("b", 2, parent_session_id="a")
    home.chat("c", 2, parent_session_id="a")
    (finding,) = home.findings("LIN004")
    assert facts(finding)["sessions in the ring"] == 2


def test_rings_that_share_a_session_are_one(build: Build) -> None:
    home = build("0.17.0")
    home.chat("a", 2, parent_session_id="b", model_config={"_delegate_from": "c"})
    home.chat("b", 2, parent_session_id="a", started_at="then")
    home.chat("c", 2, parent_session_id="a")
    (finding,) = home.findings("LIN004")
    assert facts(finding)["sessions in the ring"] == 3
    assert finding.subject.session == "b"


def test_two_rings_are_two_findings(build: Build) -> None:
    home = build()
    for one, other in (("a", "b"), ("c", "d")):
        home.chat(one, 2, parent_session_id=other)
        home.chat(other, 2, parent_session_id=one)
    assert len(home.findings("LIN004")) == 2


def test_a_subagents_continuation_with_its_inherited_mark_is_silent(build: Build) -> None:
    home = build("0.22.2")
    home.chat("talk", 4)
    home.chat("run", 4, parent_session_id="talk", model_config={"_delegate_from": "talk"})
    home.chat("rest", 4, parent_session_id="run", model_config={"_delegate_from": "talk"})
    assert home.findings("LIN004") == []


@pytest.mark.near_miss("LIN004")
def test_a_long_chain_is_silent(build: Build) -> None:
    home = build()
    home.chat("s0", 1)
    for number in range(1, 60):
        home.session(f"s{number}", parent_session_id=f"s{number - 1}")
    assert home.findings("LIN004") == []


def test_a_parent_that_does_not_exist_is_another_rules_business(build: Build) -> None:
    home = build()
    home.chat("a", 2, parent_session_id="gone", model_config={"_delegate_from": "gone"})
    assert home.findings("LIN004") == []


def test_malformed_settings_are_no_obstacle(build: Build) -> None:
    home = build()
    home.chat("a", 2, parent_session_id="a")
    home.sql("UPDATE sessions SET model_config = '{\"_delegate_from\": '")
    assert len(home.findings("LIN004")) == 1
