"""EXP001 archived-rows-not-exported: what the releases before the fix left out, named row by row."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import DATA, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
COMPACTED = "20260801_120000_ffffff"
LOST = (36, 37, 38, 39, 40, 41, 42, 43)
BEFORE_THE_FIX = ("0.18.2", "0.19.0", "0.20.1")
TRANSCRIPTS = (
    f"md/{COMPACTED}-compacted-in-place.md",
    f"qmd/{COMPACTED}-compacted-in-place.qmd",
    f"html/single-C-{COMPACTED}.html",
    f"jsonl/single-C-{COMPACTED}.jsonl",
)
PROMPTS = (f"only-user-prompts/single-C-{COMPACTED}.jsonl", f"only-user-prompts/single-C-{COMPACTED}.md")


def put(home: HomeBuilder, *files: str, version: str | None = None) -> None:
    """Copy real exports of a release into the home."""
    for file in files:
        source = DATA / "exports" / (version or home.version) / file
        target = home.root / "session-exports" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


@pytest.mark.fires("EXP001")
@pytest.mark.parametrize("version", BEFORE_THE_FIX)
@pytest.mark.parametrize("file", TRANSCRIPTS)
def test_a_transcript_of_live_rows_lacks_exactly_the_archived_ones(
    build: Build, version: str, file: str
) -> None:
    home = build(version, rich=True)
    put(home, file)
    (finding,) = home.findings("EXP001")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.CRITICAL)
    assert finding.subject.session == COMPACTED
    assert Path(finding.subject.artifact or "").name == Path(file).name
    assert finding.subject.message_ids == LOST
    assert facts(finding)["archived messages in no export"] == len(LOST)
    assert facts(finding)["messages held by this export"] == 5


@pytest.mark.parametrize("version", BEFORE_THE_FIX)
@pytest.mark.parametrize("file", PROMPTS)
def test_an_export_of_prompts_lacks_the_archived_prompts(build: Build, version: str, file: str) -> None:
    home = build(version, rich=True)
    put(home, file)
    (finding,) = home.findings("EXP001")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    assert finding.subject.message_ids == (36, 38, 40, 42)


@pytest.mark.near_miss("EXP001")
@pytest.mark.parametrize("file", [*TRANSCRIPTS, *PROMPTS])
def test_exports_made_after_the_fix_are_silent(build: Build, file: str) -> None:
    home = build("0.22.2", rich=True)
    put(home, file)
    assert home.findings("EXP001") == []


def test_each_incomplete_file_has_a_finding_of_its_own(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, *TRANSCRIPTS, *PROMPTS)
    found = home.findings("EXP001")
    assert len(found) == len({finding.id for finding in found}) == 6


def test_an_older_whole_export_excuses_a_later_partial_one(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, TRANSCRIPTS[0])
    rows = home.sql(
        "SELECT json_object('id', id, 'role', role, 'content', content, 'timestamp', timestamp, 'active', 1)"
        f" FROM messages WHERE session_id = '{COMPACTED}' AND active = 0"
    )
    messages = ", ".join(row[0] for row in rows)
    home.file(
        "session-exports/before.jsonl",
        f'{{"id": "{COMPACTED}", "source": "cli", "started_at": 1785577818.25, "messages": [{messages}]}}\n',
    )
    assert home.findings("EXP001") == []


@pytest.mark.parametrize("version", BEFORE_THE_FIX)
def test_sessions_without_archived_rows_are_silent(build: Build, version: str) -> None:
    home = build(version, rich=True)
    exports = DATA / "exports" / version
    put(home, *(f"md/{path.name}" for path in (exports / "md").glob("*.md") if "compacted" not in path.name))
    assert home.findings("EXP001") == []


def test_archived_rows_without_any_export_are_another_rules_business(build: Build) -> None:
    assert build("0.19.0", rich=True).findings("EXP001") == []


def test_no_text_of_a_message_is_told(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, *TRANSCRIPTS)
    assert "ORIGINAL ANSWER" not in repr(home.findings("EXP001"))


def keep(home: HomeBuilder, place: str) -> Path:
    return home.file(place, home.store.read_bytes())


def test_a_snapshot_that_hermes_deletes_in_its_turn_excuses_nothing(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, TRANSCRIPTS[0])
    path = keep(home, "state-snapshots/20260801-130000/state.db")
    (finding,) = home.findings("EXP001")
    assert finding.subject.message_ids == LOST
    assert facts(finding)["other stores that have some of them"] == [str(path)]
    assert facts(finding)["of these Hermes deletes in turn"] == 1


def test_another_store_that_stays_holds_them(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, TRANSCRIPTS[0])
    keep(home, "state.db.bak")
    assert home.findings("EXP001") == []


def test_another_store_with_other_rows_under_these_ids_does_not(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, TRANSCRIPTS[0])
    keep(home, "state.db.bak")
    home.sql("UPDATE messages SET content = 'rewritten' || id, timestamp = timestamp - 1 WHERE compacted = 1")
    (finding,) = home.findings("EXP001")
    assert "other stores that have some of them" not in facts(finding)


def test_another_conversation_under_the_same_id_is_not_blamed(build: Build) -> None:
    home = build("0.19.0", rich=True)
    path = DATA / f"exports/0.19.0/jsonl/single-C-{COMPACTED}.jsonl"
    line = json.loads(path.read_text())
    for number, message in enumerate(line["messages"]):
        message.update(content=f"elsewhere {number}", timestamp=message["timestamp"] + 1000.5)
    home.file("session-exports/foreign.jsonl", json.dumps(line) + "\n")
    assert home.findings("EXP001") == []
    assert home.findings("EXP004") == []
    assert home.findings("EXP005") == []
