"""LIN003 export-resume-disagree: the two walks over a compressed conversation end apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import START, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100
WITH_LINEAGE_EXPORT = ("0.18.2", "0.19.0", "0.20.1", "0.22.2")
WITHOUT = ("0.13.0", "0.15.2", "0.16.0", "0.17.0")


def family(home: HomeBuilder, **values: object) -> None:
    home.chat("old", 6, ended_at=END, end_reason="compression", **values)


def child(home: HomeBuilder, session_id: str, after: float, first: str = SUMMARY, **values: object) -> None:
    home.session(session_id, **{"parent_session_id": "old", "started_at": END + after, **values})
    home.message(session_id, "user", first, timestamp=END + after)
    home.message(session_id, "assistant", "And so on.", timestamp=END + after + 1)


def disagreement(home: HomeBuilder) -> None:
    family(home)
    child(home, "one", 1, ended_at=END + 50, end_reason="agent_close")
    child(home, "two", 2)


@pytest.mark.fires("LIN003")
@pytest.mark.parametrize("version", WITH_LINEAGE_EXPORT)
def test_a_stale_elder_and_a_live_younger_disagree(build: Build, version: str) -> None:
    home = build(version)
    disagreement(home)
    (finding,) = home.findings("LIN003")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.MEDIUM)
    assert finding.subject.session == "old"
    evidence = facts(finding)
    assert evidence["path of resume"] == ["old", "two"]
    assert evidence["chain of export"] == ["old", "one"]
    assert evidence["resume in the store's own release"] == "two"
    assert evidence["export in the store's own release"] == "one"


@pytest.mark.parametrize("version", WITHOUT)
def test_nothing_is_said_where_no_export_by_lineage_exists(build: Build, version: str) -> None:
    home = build(version)
    disagreement(home)
    assert home.findings("LIN003") == []


@pytest.mark.parametrize("version", WITH_LINEAGE_EXPORT)
def test_a_chain_of_three_is_silent(build: Build, version: str) -> None:
    home = build(version)
    family(home)
    child(home, "mid", 1, ended_at=END + 50, end_reason="compression")
    child(home, "tip", 51, parent_session_id="mid")
    assert home.findings("LIN003") == []


def test_chains_that_agree_hide_none_behind_them(build: Build) -> None:
    home = build()
    home.chat("a chain", 4, ended_at=END, end_reason="compression")
    child(home, "a tip", 1, parent_session_id="a chain")
    home.chat("b alone", 4, ended_at=END, end_reason="compression")
    disagreement(home)
    assert [finding.subject.session for finding in home.findings("LIN003")] == ["old"]


def test_an_empty_elder_hides_the_real_continuation_from_export(build: Build) -> None:
    home = build()
    family(home)
    home.session("empty", parent_session_id="old", started_at=END + 1)
    child(home, "real", 2)
    (finding,) = home.findings("LIN003")
    assert facts(finding)["resume goes to"] == "real"
    assert facts(finding)["export ends in"] == "empty"


def test_a_marked_delegate_beside_the_continuation_is_silent(build: Build) -> None:
    home = build("0.19.0")
    family(home)
    child(
        home,
        "run",
        -60,
        first="Summarize the folder.",
        source="subagent",
        model_config={"_delegate_from": "old"},
    )
    child(home, "new", 1)
    assert home.findings("LIN003") == []


def test_an_unmarked_subagent_that_resume_would_choose_is_reported(build: Build) -> None:
    home = build("0.19.0")
    family(home)
    child(home, "run", -60, first="Summarize the folder.")
    child(home, "new", 1, ended_at=END + 50, end_reason="cli_close")
    (finding,) = home.findings("LIN003")
    assert facts(finding)["probable subagent runs on the way"] == ["run"]
    assert "subagent" in finding.summary


def test_an_inherited_marker_is_silent(build: Build) -> None:
    home = build("0.20.1")
    home.chat("first", 2, ended_at=START + 50, end_reason="session_reset", session_key="agent:main:x")
    family(home, parent_session_id="first", session_key="agent:main:x", model_config={"_reset_from": "first"})
    child(home, "new", 1, session_key="agent:main:x", model_config={"_reset_from": "first"})
    assert home.findings("LIN003") == []


@pytest.mark.near_miss("LIN003")
@pytest.mark.parametrize("version", ["0.18.2", "0.19.0", "0.20.1", "0.22.2"])
@pytest.mark.parametrize("marker", ["_branched_from", "_delegate_from"])
def test_a_branch_or_subagent_that_was_compressed_is_exported_alone_and_silent(
    build: Build, version: str, marker: str
) -> None:
    home = build(version)
    home.chat("first", 2, ended_at=START + 10, end_reason="branched")
    family(home, parent_session_id="first", model_config={marker: "first"})
    child(home, "new", 1)
    assert home.findings("LIN003") == []


def test_a_fork_deeper_in_the_chain_is_reported_once_for_its_first_session(build: Build) -> None:
    home = build()
    home.chat("root", 4, ended_at=START + 50, end_reason="compression")
    family(home, parent_session_id="root")
    child(home, "one", 1, ended_at=END + 50, end_reason="agent_close")
    child(home, "two", 2)
    (finding,) = home.findings("LIN003")
    assert finding.subject.session == "root"
    assert facts(finding)["path of resume"] == ["root", "old", "two"]
