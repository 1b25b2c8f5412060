"""ORP003 known-but-absent: what logs, files and routes know, and the store does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest
from tests.audit.builder import DATA, START, HomeBuilder, facts
from tests.evidence.test_own_tables import delegate, owe
from tests.formats.test_response_store import keep_responses

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
PLAN = "20260801_090000_aaaaaa"
TURN = "conversation turn: session={} model=gpt-4o provider=custom platform=cli history=2 msg='hello'"


def tell(home: HomeBuilder, *sessions: str) -> None:
    """Log a turn of each session."""
    home.log(
        f"2026-08-01 10:00:0{number},123 INFO [{each}] agent.turn_context: {TURN.format(each)}"
        for number, each in enumerate(sessions)
    )


def put(home: HomeBuilder, file: str) -> str:
    target = home.root / "session-exports" / file
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(DATA / "exports" / home.version / file, target)
    return str(target)


def delete(home: HomeBuilder, session_id: str) -> None:
    home.sql(
        f"DELETE FROM messages WHERE session_id = '{session_id}'",
        f"DELETE FROM sessions WHERE id = '{session_id}'",
    )


def snapshot(home: HomeBuilder, session_id: str) -> None:
    """What a running agent of 0.13 wrote beside the store."""
    record = {
        "session_id": session_id,
        "model": "gpt-4o",
        "base_url": "",
        "platform": "cli",
        "session_start": "2026-08-01T10:00:00",
        "last_updated": "2026-08-01T10:01:00",
        "system_prompt": "Be brief.",
        "tools": [],
        "message_count": 2,
        "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}],
    }
    home.file(f"sessions/session_{session_id}.json", json.dumps(record, indent=2))


@pytest.mark.fires("ORP003")
def test_sessions_that_only_the_logs_know_are_one_finding(build: Build) -> None:
    home = build()
    home.chat("kept", 2)
    tell(home, "kept", "gone", "gone-too", "gone")
    (finding,) = home.findings("ORP003")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.LOW)
    assert facts(finding)["ids"] == ["gone", "gone-too"]
    assert facts(finding)["last turn, local time of the log"] == "2026-08-01 10:00:03,123"


def test_a_line_that_merely_bears_an_id_tells_of_no_turn(build: Build) -> None:
    home = build()
    home.log(["2026-08-01 10:00:00,123 INFO [never-spoken] run_agent: client created"])
    assert home.findings("ORP003") == []


def test_messages_without_a_row_are_another_rules(build: Build) -> None:
    home = build()
    home.message("gone")
    tell(home, "gone")
    assert home.findings("ORP003") == []


def test_appends_that_failed_are_another_rules(build: Build) -> None:
    home = build()
    tell(home, "gone")
    failed = "Session DB append_message failed: FOREIGN KEY constraint failed"
    home.log([f"2026-08-01 10:00:09,123 WARNING [gone] run_agent: {failed}"])
    assert home.findings("ORP003") == []
    assert [finding.rule for finding in home.findings("ORP004")] == ["ORP004"]


@pytest.mark.parametrize(
    "file", [f"jsonl/single-P-{PLAN}.jsonl", f"md/{PLAN}-plain-chat-weekly-plan-q3-draft.md"]
)
def test_an_exported_session_that_is_gone_is_a_leftover(build: Build, file: str) -> None:
    home = build("0.19.0", rich=True)
    path = put(home, file)
    assert home.findings("ORP003") == []
    delete(home, PLAN)
    tell(home, PLAN)
    (finding,) = home.findings("ORP003")
    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.INFO)
    assert facts(finding)["ids"] == [PLAN]
    assert facts(finding)["files"] == [path]


def test_a_session_that_only_its_agents_own_file_holds(build: Build) -> None:
    home = build("0.13.0")
    snapshot(home, "20260801_100000_abcdef")
    (finding,) = home.findings("ORP003")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.MEDIUM)
    assert finding.subject.session == "20260801_100000_abcdef"
    assert facts(finding)["messages in the fullest file"] == 2
    assert (finding.remedy.command or "").startswith("statemend show")


@pytest.mark.near_miss("ORP003")
def test_a_filtered_export_alone_is_another_rules(build: Build) -> None:
    home = build("0.19.0", rich=True)
    put(home, f"only-user-prompts/single-P-{PLAN}.jsonl")
    delete(home, PLAN)
    assert home.findings("ORP003") == []
    assert len(home.findings("EXP008")) == 1


def test_an_incomplete_export_is_another_rules(build: Build) -> None:
    home = build("0.19.0", rich=True)
    compacted = "20260801_120000_ffffff"
    put(home, f"jsonl/single-C-{compacted}.jsonl")
    delete(home, compacted)
    assert home.findings("ORP003") == []
    assert len(home.findings("EXP002")) == 1


def test_a_chat_that_only_the_file_of_routes_sends_to_nowhere(build: Build) -> None:
    home = build("0.16.0")
    home.chat("kept", 2)
    routes = {
        f"agent:main:telegram:dm:{number}": {
            "session_key": f"agent:main:telegram:dm:{number}",
            "session_id": sid,
        }
        for number, sid in enumerate(("kept", "gone"))
    }
    home.file("sessions/sessions.json", json.dumps(routes, indent=2))
    (finding,) = home.findings("ORP003")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.LOW)
    assert facts(finding)["ids"] == ["gone"]
    assert facts(finding)["keys of the chats"] == ["agent:main:telegram:dm:1"]


def test_tasks_of_a_session_that_is_gone(build: Build) -> None:
    home = build("0.19.0")
    home.chat("kept", 2)
    delegate(home, "kept", {"goal": "count"}, {"summary": "four"})
    assert home.findings("ORP003") == []
    delegate(home, "gone", {"goal": "a secret task"}, {"summary": "a secret result"})
    (finding,) = home.findings("ORP003")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.LOW)
    told = facts(finding)
    assert (told["ids"], told["texts of tasks and results"]) == (["gone"], 2)
    assert told["first time"] == "2026-09-21T14:13:21Z"
    assert "secret" not in str(finding)


def test_a_reply_to_a_chat_that_has_no_session(build: Build) -> None:
    home = build("0.19.0")
    chat = "agent:main:telegram:dm:{}"
    home.chat("kept", 2, session_key=chat.format(7))
    owe(home, "turn 1 of kept", chat.format(7))
    owe(home, "in another wording", chat.format(7))
    owe(home, "of another profile", "agent:work:telegram:dm:7")
    assert home.findings("ORP003") == []
    owe(home, "a secret reply", chat.format(8), at=START + 60)
    (finding,) = home.findings("ORP003")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.LOW)
    assert (facts(finding)["replies"], facts(finding)["keys of the chats"]) == (1, [chat.format(8)])
    assert "secret" not in str(finding)


def test_a_session_that_only_the_api_server_kept(build: Build) -> None:
    home = build("0.19.0")
    home.chat("kept", 2)
    keep_responses(home, {"kept": ["turn 0 of kept", "turn 1 of kept"]})
    assert home.findings("ORP003") == []
    keep_responses(home, {"gone": ["hello", "hi"]})
    (finding,) = home.findings("ORP003")
    assert (finding.subject.session, finding.severity) == ("gone", Severity.MEDIUM)
    assert facts(finding)["kinds of files"] == ["response-store"]
