"""EXP008 only-copy-filtered: what is left was filtered or redacted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest
from tests.audit.builder import DATA, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
TOOLS = "20260801_100000_cccccc"
COMPACTED = "20260801_120000_ffffff"
PLAN = "20260801_090000_aaaaaa"
PROMPTS = f"only-user-prompts/single-P-{PLAN}.jsonl"
REDACTED = f"md-redact/{TOOLS}-tools.md"
PLAIN = f"md/{TOOLS}-tools.md"


def put(home: HomeBuilder, *files: str) -> None:
    for file in files:
        target = home.root / "session-exports" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(DATA / "exports" / home.version / file, target)


def delete(home: HomeBuilder, session_id: str) -> None:
    home.sql(
        f"DELETE FROM messages WHERE session_id = '{session_id}'",
        f"DELETE FROM sessions WHERE id = '{session_id}'",
    )


@pytest.mark.fires("EXP008")
@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
def test_only_the_prompts_of_a_session_are_left(build: Build, version: str) -> None:
    home = build(version, rich=True)
    put(home, PROMPTS)
    delete(home, PLAN)
    (finding,) = home.findings("EXP008")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.HIGH)
    assert finding.subject.session == PLAN
    assert (finding.subject.artifact or "").endswith(PROMPTS)


@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
def test_only_a_redacted_transcript_is_left(build: Build, version: str) -> None:
    home = build(version, rich=True)
    put(home, REDACTED)
    delete(home, TOOLS)
    (finding,) = home.findings("EXP008")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.MEDIUM)
    assert facts(finding)["of these masked, as far as can be told"] == 1


@pytest.mark.parametrize(
    ("file", "lost"), [(PROMPTS, PLAN), ("jsonl/redacted-T.jsonl", TOOLS)], ids=["filtered", "redacted"]
)
def test_an_export_of_another_store_is_told_by_its_row_ids(build: Build, file: str, lost: str) -> None:
    home = build("0.19.0", rich=True)
    put(home, file)
    (first,) = home.sql(f"SELECT MIN(id) FROM messages WHERE session_id = '{lost}'")[0]
    delete(home, lost)
    home.message(COMPACTED, id=first)
    (finding,) = home.findings("EXP008")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.LOW)
    assert "row ids" in finding.summary


def test_the_file_that_shows_the_most_is_named_and_times_may_be_unknown(build: Build) -> None:
    home = build()
    prompts = [
        {"session_id": "gone", "index": number, "role": "user", "text": text, "message_id": number}
        for number, text in enumerate(("hello", "and then?", "bye"), 1)
    ]
    for name, shown in (("a", prompts[:1]), ("b", prompts), ("c", prompts[:2])):
        lines = "".join(json.dumps(each) + "\n" for each in shown)
        home.file(f"session-exports/{name}.jsonl", lines)
    (finding,) = home.findings("EXP008")
    assert (finding.subject.artifact or "").endswith("b.jsonl")
    assert (facts(finding)["messages left"], facts(finding)["first time"]) == (3, "unknown")
    assert facts(finding)["last time"] == "unknown"


@pytest.mark.near_miss("EXP008")
def test_an_export_without_a_message_leaves_nothing_to_tell_of(build: Build) -> None:
    home = build()
    home.file("session-exports/e.jsonl", json.dumps({"id": "gone", "source": "cli", "messages": []}) + "\n")
    assert home.findings("EXP008") == []


@pytest.mark.near_miss("EXP008")
def test_a_plain_transcript_beside_them_is_silent(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, PROMPTS, f"jsonl/single-P-{PLAN}.jsonl", REDACTED, PLAIN)
    delete(home, TOOLS)
    delete(home, PLAN)
    assert home.findings("EXP008") == []


@pytest.mark.parametrize("file", [PROMPTS, REDACTED])
def test_a_session_that_is_there_and_was_never_compacted_is_silent(build: Build, file: str) -> None:
    home = build("0.19.0", rich=True)
    put(home, file)
    assert home.findings("EXP008") == []


def test_archived_turns_that_only_prompts_hold_outside_the_store(build: Build) -> None:
    home = build("0.22.2", rich=True)
    put(home, f"only-user-prompts/single-C-{COMPACTED}.jsonl")
    (finding,) = home.findings("EXP008")
    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.LOW)
    assert finding.subject.session == COMPACTED
    assert facts(finding)["archived messages held so"] == 4
    assert len(finding.subject.message_ids) == 4


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        ("sessions: {auto_prune: true}", Verdict.RISK),
        ("sessions: {auto_prune: false}", Verdict.LEFTOVER),
        ("sessions: {auto_prune: true, retention_days: -1}", Verdict.LEFTOVER),
        ("sessions: [", Verdict.LEFTOVER),
    ],
)
def test_they_are_at_risk_where_hermes_deletes_the_session_by_itself(
    build: Build, settings: str, verdict: Verdict
) -> None:
    home = build("0.22.2", rich=True)
    put(home, f"only-user-prompts/single-C-{COMPACTED}.jsonl")
    home.file("config.yaml", settings)
    assert [each.verdict for each in home.findings("EXP008")] == [verdict]
    home.sql(f"UPDATE sessions SET pinned = 1 WHERE id = '{COMPACTED}'")
    assert [each.verdict for each in home.findings("EXP008")] == [Verdict.LEFTOVER]


def test_archived_turns_that_a_whole_transcript_holds_too_are_silent(build: Build) -> None:
    home = build("0.22.2", rich=True)
    put(home, f"only-user-prompts/single-C-{COMPACTED}.jsonl", f"jsonl/single-C-{COMPACTED}.jsonl")
    assert home.findings("EXP008") == []


def test_archived_turns_that_a_transcript_of_the_live_ones_lacks(build: Build) -> None:
    home = build("0.22.2", rich=True)
    put(home, f"only-user-prompts/single-C-{COMPACTED}.jsonl")
    live = DATA / "exports/0.19.0/md" / f"{COMPACTED}-compacted-in-place.md"
    home.file(f"session-exports/{live.name}", live.read_bytes())
    (finding,) = home.findings("EXP008")
    assert facts(finding)["archived messages held so"] == 4


def test_an_archived_turn_that_is_only_masked_outside_the_store(build: Build) -> None:
    home = build("0.22.2", rich=True)
    path = f"jsonl/single-C-{COMPACTED}.jsonl"
    put(home, path)
    first = home.sql(f"SELECT MIN(id) FROM messages WHERE session_id = '{COMPACTED}'")[0][0]
    plain = home.sql(f"SELECT content FROM messages WHERE id = {first}")[0][0]
    home.sql("UPDATE messages SET content = ? WHERE id = ?", bindings=(f"sk-proj-abc123 {plain}", first))
    target = home.root / "session-exports" / path
    target.write_text(target.read_text().replace(plain, f"sk-pro...c123 {plain}"))
    (finding,) = home.findings("EXP008")
    assert finding.verdict is Verdict.LEFTOVER
    assert finding.subject.message_ids == (first,)
