"""The families of a report tell their candidates, each once, in both forms that people read."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.audit.builder import NOW, START, HomeBuilder

from statemend.report import families, html, markdown
from statemend.report.model import Report
from statemend.report.produce import produce

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Of a home with two forks: one of three sessions, whose title is an attack, and one of two."""
    home = HomeBuilder(Path(tmp_path_factory.mktemp("forks")) / "home", "0.22.2")
    for parent, number in (("old", 3), ("other", 2)):
        home.chat(parent, 6, ended_at=END, end_reason="compression")
        for each in range(number):
            child = home.session(
                f"{parent}-{each}",
                parent_session_id=parent,
                started_at=END + each,
                title=f"<img src=x onerror=alert({each})> {parent}",
            )
            home.message(child, "user", SUMMARY, timestamp=END + each)
    return produce(home.root, now=NOW)


def test_each_family_has_its_own_candidates_once(report: Report) -> None:
    told = [[session for session, _ in families.told(report, family)] for family in report.lineage]
    assert told == [["old-0", "old-1", "old-2"], ["other-0", "other-1"]]


def test_both_forms_show_what_is_known_of_each(report: Report) -> None:
    page, text = html.render(report), markdown.render(report)
    assert "<summary>3 candidates, and what is known of each</summary>" in page
    assert "- Candidate `old-2`" in text
    for shown in (page, text):
        assert "stand among the last of old" in shown
        assert "deleting it takes no other session" in shown
    assert "<img" not in page
    assert "  - title: &lt;img" in text


def test_a_family_without_candidates_tells_of_none(report: Report) -> None:
    (family, *_) = report.lineage
    bare = families.told(report, type(family)(id="x", start="x", nodes=(), edges=()))
    assert bare == ()
