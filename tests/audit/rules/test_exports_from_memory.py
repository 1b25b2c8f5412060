"""What saves, traces, snapshots and dumps change in the rules about exports, and what they do not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.audit.builder import DATA, HomeBuilder

from statemend.audit.finding import Verdict

Build = Callable[..., HomeBuilder]
COMPACTED = "20260801_120000_ffffff"
LOST = (36, 37, 38, 39, 40, 41, 42, 43)
LIVE_ONLY = [
    ("0.18.2", "save-cli/cli-C-hermes_conversation_YYYYMMDD_HHMMSS.json"),
    ("0.18.2", "misc/desktop-reconstructed/C-compacted-in-place-20260801.json"),
    ("0.18.2", f"misc/dashboard/session-{COMPACTED}.json"),
    ("0.19.0", "save-cli/cli-C-hermes_conversation_YYYYMMDD_HHMMSS.json"),
    ("0.19.0", f"trace/single-C-{COMPACTED}.jsonl"),
    ("0.20.1", "save-cli/cli-C-hermes_conversation_YYYYMMDD_HHMMSS.json"),
    ("0.20.1", "save-cli/cli-C-hermes_conversation_YYYYMMDD_HHMMSS.md"),
    ("0.20.1", "save-cli/cli-C-hermes_conversation_YYYYMMDD_HHMMSS.html"),
]
WHOLE = "misc/desktop-reconstructed/C-compacted-in-place-20260801.json"
SNAPSHOT = {"session_id": COMPACTED, "model": "m", "session_start": "x", "last_updated": "x"}


def put(home: HomeBuilder, file: str, version: str | None = None) -> Path:
    target = home.root / "sessions" / "saved" / Path(file).name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(DATA / "saves" / (version or home.version) / file, target)
    return target


def said(home: HomeBuilder, *row_ids: int) -> list[dict[str, Any]]:
    wanted = ", ".join(map(str, row_ids))
    rows = home.sql(f"SELECT role, content FROM messages WHERE id IN ({wanted}) ORDER BY id")
    return [{"role": role, "content": content} for role, content in rows]


def snapshot(home: HomeBuilder, *row_ids: int) -> Path:
    messages = said(home, *row_ids)
    return home.file(f"sessions/session_{COMPACTED}.json", json.dumps({**SNAPSHOT, "messages": messages}))


def dump(home: HomeBuilder, messages: list[dict[str, Any]]) -> Path:
    body = {"method": "POST", "body": {"messages": messages}}
    marks = {"timestamp": "x", "session_id": COMPACTED, "reason": "max_retries"}
    return home.file(f"sessions/request_dump_{COMPACTED}_1.json", json.dumps({**marks, "request": body}))


@pytest.mark.parametrize(("version", "file"), LIVE_ONLY)
def test_what_a_person_saved_of_live_messages_lacks_the_archived_ones(
    build: Build, version: str, file: str
) -> None:
    home = build(version, rich=True)
    put(home, file)
    (finding,) = home.findings("EXP001")
    assert finding.subject.message_ids == LOST


def test_what_the_desktop_holds_is_held(build: Build) -> None:
    home = build("0.20.1", rich=True)
    for version, file in LIVE_ONLY[-3:]:
        put(home, file, version)
    put(home, WHOLE)
    assert home.findings("EXP001") == []


def test_a_snapshot_is_no_export_and_still_holds_what_it_holds(build: Build) -> None:
    home = build("0.19.0", rich=True)
    snapshot(home, 44, 45)
    assert [each for rule in ("EXP001", "EXP004") for each in home.findings(rule)] == []
    put(home, f"trace/single-C-{COMPACTED}.jsonl")
    snapshot(home, *LOST[:5])
    (finding,) = home.findings("EXP001")
    assert finding.subject.message_ids == LOST[5:]


def test_a_masked_dump_keeps_a_message_from_being_in_no_artifact(build: Build) -> None:
    home = build("0.19.0", rich=True)
    home.file("config.yaml", "sessions:\n  auto_prune: true\n")
    text = "The key of the staging server is sk-ant-api03-AbCdEfGhIjKlMnOp, use it."
    home.sql("UPDATE messages SET content = ? WHERE id = 36", bindings=(text,))
    masked = {"role": "user", "content": text.replace("sk-ant-api03-AbCdEfGhIjKlMnOp", "sk-ant...MnOp")}
    dump(home, [masked, *said(home, 37)])
    risks = {each.subject.session: each.subject.message_ids for each in home.findings("EXP010")}
    assert risks[COMPACTED] == LOST[2:]


def test_a_save_that_is_cut_is_told_and_a_snapshot_is_not(build: Build) -> None:
    home = build("0.19.0", rich=True)
    cut = snapshot(home, 44, 45)
    cut.write_bytes(cut.read_bytes()[:-40])
    assert home.findings("EXP003") == []
    save = put(home, LIVE_ONLY[3][1])
    save.write_bytes(save.read_bytes()[:-40])
    (finding,) = home.findings("EXP003")
    assert (finding.verdict, finding.subject.session) == (Verdict.FAULT, COMPACTED)


def test_a_save_that_the_session_outgrew_is_told(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, LIVE_ONLY[3][1])
    home.message(COMPACTED, content="later", timestamp=1785590000.0)
    (finding,) = home.findings("EXP004")
    assert len(finding.subject.message_ids) == 1
    assert home.findings("EXP005") == []


def test_a_deleted_session_is_not_judged_by_what_an_agent_held(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, LIVE_ONLY[3][1])
    put(home, LIVE_ONLY[4][1])
    snapshot(home, 44, 45)
    home.sql(
        f"DELETE FROM messages WHERE session_id = '{COMPACTED}'",
        f"DELETE FROM sessions WHERE id = '{COMPACTED}'",
    )
    assert home.findings("EXP002") == []


@pytest.mark.parametrize("reaches", [True, False])
def test_a_snapshot_from_before_the_compaction_has_what_the_export_lacks(build: Build, reaches: bool) -> None:
    home = build("0.19.0", rich=True)
    export = home.root / "session-exports" / "live.jsonl"
    export.parent.mkdir(exist_ok=True)
    shutil.copyfile(DATA / "exports" / "0.19.0" / "jsonl" / f"single-C-{COMPACTED}.jsonl", export)
    kept = "SELECT id FROM messages WHERE content IN ('question 5', 'ORIGINAL ANSWER 5') AND session_id = ?"
    behind = [row_id for (row_id,) in home.sql(kept, bindings=(COMPACTED,))]
    snapshot(home, *LOST, *(behind[:2] if reaches else []))
    home.sql(
        f"DELETE FROM messages WHERE session_id = '{COMPACTED}'",
        f"DELETE FROM sessions WHERE id = '{COMPACTED}'",
    )
    assert len(home.findings("EXP002")) == (0 if reaches else 1)
