"""EXP004 appended-since-export: what came after the newest export."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import DATA, HomeBuilder

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
PLAIN = "20260801_090000_aaaaaa"
LATER = 1_799_000_000.0
FILES = {
    "md": f"md/{PLAIN}-plain-chat-weekly-plan-q3-draft.md",
    "jsonl": f"jsonl/single-P-{PLAIN}.jsonl",
}


def put(home: HomeBuilder, kind: str) -> Path:
    target = home.root / "session-exports" / Path(FILES[kind]).name
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(DATA / "exports" / home.version / FILES[kind], target)
    return target


@pytest.mark.fires("EXP004")
@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
@pytest.mark.parametrize("kind", FILES)
def test_later_messages_are_counted(build: Build, version: str, kind: str) -> None:
    home = build(version, rich=True)
    path = put(home, kind)
    rows = (home.message(PLAIN, timestamp=LATER), home.message(PLAIN, "assistant", timestamp=LATER + 1))
    (finding,) = home.findings("EXP004")
    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.INFO)
    assert finding.subject.session == PLAIN
    assert finding.subject.artifact == str(path)
    assert finding.subject.message_ids == rows


def test_a_session_that_grew_by_one_message(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, "md")
    other = "20260801_100000_cccccc"
    home.file("session-exports/t.jsonl", (DATA / f"exports/0.19.0/jsonl/single-T-{other}.jsonl").read_bytes())
    home.message(other, timestamp=LATER)
    (finding,) = home.findings("EXP004")
    assert finding.subject.session == other
    assert finding.summary == "1 message came after the newest export."


@pytest.mark.parametrize("kind", FILES)
def test_an_export_of_everything_is_silent(build: Build, kind: str) -> None:
    home = build("0.19.0", rich=True)
    put(home, kind)
    assert home.findings("EXP004") == []


@pytest.mark.near_miss("EXP004")
def test_archived_rows_that_the_export_left_out_are_not_later(build: Build) -> None:
    home = build("0.19.0", rich=True)
    source = DATA / "exports/0.19.0/md/20260801_120000_ffffff-compacted-in-place.md"
    home.file("session-exports/c.md", source.read_bytes())
    assert home.findings("EXP004") == []
