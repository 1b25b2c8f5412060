"""EXP007 lineage-segments-missing: exports of a whole conversation that are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import DATA, START, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict
from statemend.formats import markdown
from statemend.formats.artifact import Kind
from statemend.store.connection import open_for_audit
from statemend.store.history import messages

Build = Callable[..., HomeBuilder]
LATER = START + 1000.0
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."


def conversation(home: HomeBuilder) -> HomeBuilder:
    """Three sessions of one conversation, and a subagent that the first one started."""
    ends = {"end_reason": "compression", "source": "cli"}
    home.chat("one", 4, started_at=START, ended_at=START + 100, **ends)
    home.chat(
        "helper", 2, source="subagent", parent_session_id="one", started_at=START + 50,
        model_config={"_delegate_from": "one"},
    )  # fmt: skip
    home.chat("two", 4, parent_session_id="one", started_at=START + 100, ended_at=START + 200, **ends)
    home.chat("three", 2, parent_session_id="two", started_at=START + 200)
    return home


def export(home: HomeBuilder, *lineage: str, at: float = LATER) -> Path:
    """What a release writes for ``--lineage logical`` when it takes these sessions for the line."""
    with open_for_audit(home.store) as store:
        segments = [(each, list(messages(store, each))) for each in lineage]
        text = markdown.render(
            {"id": lineage[-1], "source": "cli", "title": "Garden", "started_at": START},
            segments,
            kind=Kind.MARKDOWN,
            exported_at=at,
            lineage=lineage,
        )
    return home.file(f"session-exports/{lineage[-1]}-garden.md", text)


@pytest.mark.fires("EXP007")
def test_a_subagents_transcript_in_the_place_of_the_rest(build: Build) -> None:
    home = conversation(build())
    path = export(home, "one", "helper")
    (finding,) = home.findings("EXP007")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.MEDIUM)
    assert (finding.subject.session, finding.subject.artifact) == ("helper", str(path))
    assert facts(finding)["delegates among them"] == ["helper"]
    assert facts(finding)["sessions of the conversation that it lacks"] == ["two", "three"]
    command = finding.remedy.command or ""
    assert command.endswith("one two three")


def test_a_subagents_transcript_beside_the_whole_line(build: Build) -> None:
    home = conversation(build())
    export(home, "one", "helper", "two", "three")
    (finding,) = home.findings("EXP007")
    assert finding.verdict is Verdict.FAULT
    assert "of these whole in other files" not in facts(finding)


def test_a_continuation_that_the_migration_marked_as_a_delegate_is_no_subagents(build: Build) -> None:
    """0.18 and 0.19 export it as the next part, and rightly so: see LIN008."""
    home = build()
    home.chat("one", 4, started_at=START, ended_at=START + 100, end_reason="compression", source="cli")
    marks = {"_delegate_from": "one"}
    home.session("two", parent_session_id="one", started_at=START + 99, source="cli", model_config=marks)
    home.message("two", "user", SUMMARY, timestamp=START + 101)
    home.turns("two", 2)
    export(home, "one", "two")
    assert len(home.findings("LIN008")) == 1
    assert home.findings("EXP007") == []


@pytest.mark.parametrize(("held", "lacking"), [(["three"], ["one", "two"]), (["one", "two"], ["three"])])
def test_missing_sessions_that_the_store_has_are_a_leftover(
    build: Build, held: list[str], lacking: list[str]
) -> None:
    home = conversation(build())
    export(home, *held)
    (finding,) = home.findings("EXP007")
    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.LOW)
    assert facts(finding)["sessions of the conversation that it lacks"] == lacking
    assert facts(finding)["of these whole in other files"] == 0


def test_what_is_missing_may_be_whole_in_another_file(build: Build) -> None:
    home = conversation(build())
    export(home, "other")  # of a session that is not here
    path = export(home, "one", "two", at=START + 201)
    export(home, "three")
    found = {finding.subject.artifact: finding for finding in home.findings("EXP007")}
    assert facts(found[str(path)])["sessions of the conversation that it lacks"] == ["three"]
    assert facts(found[str(path)])["of these whole in other files"] == 1
    export(home, "one", "two", at=START + 200)
    assert str(path) not in {finding.subject.artifact for finding in home.findings("EXP007")}


def test_the_whole_line_is_silent(build: Build) -> None:
    home = conversation(build())
    export(home, "one", "two", "three")
    assert home.findings("EXP007") == []


def test_what_began_after_the_export_is_not_missing(build: Build) -> None:
    home = conversation(build())
    export(home, "one", "two", at=START + 150)
    assert home.findings("EXP007") == []


def test_an_export_of_one_session_claims_no_line(build: Build) -> None:
    home = build("0.19.0", rich=True)
    for path in (DATA / "exports/0.19.0/md").glob("*rotated*.md"):
        home.file(f"session-exports/{path.name}", path.read_bytes())
    assert home.findings("EXP007") == []


@pytest.mark.near_miss("EXP007")
@pytest.mark.parametrize("version", ["0.18.2", "0.19.0", "0.20.1", "0.22.2"])
def test_real_logical_exports_of_a_plain_line_are_silent(build: Build, version: str) -> None:
    home = build(version, rich=True)
    assert home.findings("EXP007", exports=[DATA / "exports" / version / "md-logical"]) == []
    assert (
        home.audit("EXP007", exports=[DATA / "exports" / version / "md-logical"]).rules[0].status == "clean"
    )


def test_sessions_that_are_gone_are_not_judged(build: Build) -> None:
    home = conversation(build())
    export(home, "one", "helper")
    home.sql("DELETE FROM messages", "DELETE FROM sessions")
    assert home.findings("EXP007") == []
