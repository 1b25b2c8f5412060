"""LIN008 migration-mistag: a conversation that carries the mark of a subagent run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder, facts

from statemend.audit.finding import Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
ORPHANED = {"_delegate_from": "__orphaned__"}
TAGGING = ("0.17.0", "0.18.2", "0.19.0", "0.20.1", "0.22.2")
CALL = [{"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]


def short_chat(home: HomeBuilder, session_id: str = "chat", **values: Any) -> None:
    """One turn that used a tool, marked by the migration."""
    home.session(session_id, **{"model_config": ORPHANED, **values})
    home.message(session_id, "user", "List the files.")
    home.message(session_id, "assistant", "", tool_calls=CALL, finish_reason="tool_calls")
    home.message(session_id, "tool", "README", tool_call_id="call_1", tool_name="terminal")
    home.message(session_id, "assistant", "One file.", finish_reason="stop")


@pytest.mark.fires("LIN008")
@pytest.mark.parametrize("version", TAGGING)
def test_a_chat_of_two_turns_is_a_fault(build: Build, version: str) -> None:
    home = build(version)
    short_chat(home)
    home.message("chat", "user", "And hidden ones?")
    home.message("chat", "assistant", "None.", finish_reason="stop")
    (finding,) = home.findings("LIN008")
    assert finding.verdict is Verdict.FAULT
    assert finding.subject.session == "chat"
    assert facts(finding)["signs of a conversation"] == ["1 more turn was typed after an answer"]


def test_only_what_is_typed_after_a_finished_answer_is_another_turn(build: Build) -> None:
    home = build()
    short_chat(home)
    home.message("chat", "user", "And hidden ones?")
    home.message("chat", "user", "Hello?")
    home.message("chat", "assistant", "", tool_calls=CALL, finish_reason="tool_calls")
    home.message("chat", "user", "Stop.")
    home.message("chat", "assistant", "None.", finish_reason="stop")
    home.message("chat", "tool", "late", tool_call_id="call_1", tool_name="terminal")
    home.message("chat", "user", "What was that?")
    home.message("chat", "assistant", "A result.", finish_reason="stop")
    home.message("chat", "user", "Thanks.")
    (finding,) = home.findings("LIN008")
    assert facts(finding)["signs of a conversation"] == ["2 more turns were typed after an answer"]


def test_each_marked_session_is_told(build: Build) -> None:
    home = build()
    for name in ("a", "b"):
        short_chat(home, name)
    home.chat("talk", 4)
    told = {"parent_session_id": "talk", "session_key": "agent:main:telegram:dm:1"}
    home.session("dm", source="telegram", model_config={"_delegate_from": "talk"}, **told)
    home.message("dm", "user", SUMMARY)
    found = {finding.subject.session: finding for finding in home.findings("LIN008")}
    assert found.keys() == {"a", "b", "dm"}
    assert "it has a routing key" in facts(found["dm"])["signs of a conversation"]


@pytest.mark.parametrize("version", TAGGING)
def test_a_single_turn_is_undecidable(build: Build, version: str) -> None:
    home = build(version)
    short_chat(home)
    (finding,) = home.findings("LIN008")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["signs of a conversation"] == []
    assert "its first message" in facts(finding)["what would decide"]
    assert facts(finding)["releases that heed the mark"] == "0.17 and newer"


@pytest.mark.parametrize(
    ("values", "sign"),
    [
        ({"title": "Files"}, "it has a title"),
        ({"user_id": "81225"}, "it has a user id"),
        ({"session_key": "agent:main:telegram:dm:1"}, "it has a routing key"),
        ({"chat_id": "81225"}, "it has a chat id"),
        ({"origin_json": "{}"}, "it has a chat id"),
    ],
)
def test_signs_of_a_person(build: Build, values: dict[str, str], sign: str) -> None:
    home = build()
    short_chat(home, **values)
    (finding,) = home.findings("LIN008")
    assert finding.verdict is Verdict.FAULT
    assert facts(finding)["signs of a conversation"] == [sign]


def test_an_entry_in_the_routing_table_is_a_sign(build: Build) -> None:
    home = build()
    short_chat(home)
    home.insert(
        "gateway_routing",
        scope="",
        session_key="agent:main:telegram:dm:1",
        entry_json={"session_id": "chat"},
        updated_at=START,
    )
    (finding,) = home.findings("LIN008")
    assert facts(finding)["signs of a conversation"] == ["the routing table names it"]


def test_a_summary_at_its_beginning_is_no_sign(build: Build) -> None:
    """Subagent runs were compressed too, and the first part of one may have been pruned."""
    home = build("0.19.0")
    home.session("run", model_config=ORPHANED)
    home.message("run", "user", SUMMARY)
    home.message("run", "assistant", "", tool_calls=CALL, finish_reason="tool_calls")
    home.message("run", "tool", "README", tool_call_id="call_1", tool_name="terminal")
    home.message("run", "assistant", "One file.", finish_reason="stop")
    (finding,) = home.findings("LIN008")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["begins with a compaction summary"] is True


def test_a_branch_made_from_it_is_a_sign(build: Build) -> None:
    home = build()
    short_chat(home)
    home.chat("branch", 2, parent_session_id="chat", model_config={"_branched_from": "chat"})
    (finding,) = home.findings("LIN008")
    assert finding.verdict is Verdict.FAULT


@pytest.mark.parametrize(
    ("answer", "typed"),
    [
        ({"content": "(empty)"}, "You just executed tool calls but returned an empty response. Continue."),
        ({"content": "Half of", "finish_reason": "length"}, "[System: Continue exactly where you left off.]"),
        ({"content": "I will now", "finish_reason": "incomplete"}, "Continue now."),
        (
            {"content": "Done so far."},
            "You've reached the maximum number of tool-calling iterations allowed.",
        ),
        ({"content": "", "tool_calls": CALL}, "anything"),
    ],
)
def test_what_hermes_writes_in_the_users_name_is_no_sign(
    build: Build, answer: dict[str, Any], typed: str
) -> None:
    home = build()
    home.session("chat", model_config=ORPHANED)
    home.message("chat", "user", "List the files.")
    home.message("chat", "assistant", **{"finish_reason": "stop", **answer})
    home.message("chat", "user", typed)
    home.message("chat", "assistant", "One file.", finish_reason="stop")
    (finding,) = home.findings("LIN008")
    assert finding.verdict is Verdict.UNDECIDABLE


def test_a_scheduled_run_is_a_leftover(build: Build) -> None:
    home = build()
    short_chat(home, "cron_daily_20260801_090000", source="cron")
    (finding,) = home.findings("LIN008")
    assert finding.verdict is Verdict.LEFTOVER


@pytest.mark.parametrize("version", TAGGING)
def test_a_continuation_marked_as_its_parents_subagent_is_a_fault(build: Build, version: str) -> None:
    home = build(version)
    home.chat("old", 6, ended_at=START + 90, end_reason="cli_close")
    home.session("new", parent_session_id="old", model_config={"_delegate_from": "old"})
    home.message("new", "user", SUMMARY)
    (finding,) = home.findings("LIN008")
    assert finding.verdict is Verdict.FAULT
    assert finding.subject.session == "new"


def test_a_continuation_that_begins_with_protected_messages_is_a_fault(build: Build) -> None:
    home = build()
    home.chat("old", 6, ended_at=START + 90, end_reason="cli_close")
    home.session(
        "new", parent_session_id="old", started_at=START + 90, model_config={"_delegate_from": "old"}
    )
    home.message("new", "user", "turn 0 of old")
    home.message("new", "user", SUMMARY)
    (finding,) = home.findings("LIN008")
    assert finding.subject.session == "new"


@pytest.mark.near_miss("LIN008")
def test_a_compacted_subagent_run_is_silent(build: Build) -> None:
    home = build()
    home.chat("talk", 4)
    home.session("run", source="subagent", parent_session_id="talk", model_config={"_delegate_from": "talk"})
    home.message("run", "user", "Summarize the folder.", active=0, compacted=1)
    home.message("run", "user", SUMMARY)
    assert home.findings("LIN008") == []


def test_a_subagents_own_continuation_is_silent(build: Build) -> None:
    home = build("0.17.0")
    home.chat("talk", 4)
    mark = {"_delegate_from": "talk"}
    home.chat(
        "run", 4, source="subagent", parent_session_id="talk", model_config=mark, end_reason="compression"
    )
    home.session("rest", source="subagent", parent_session_id="run", model_config=mark)
    home.message("rest", "user", SUMMARY)
    assert home.findings("LIN008") == []


def test_an_old_subagents_continuation_that_the_migration_marked_is_silent(build: Build) -> None:
    home = build("0.17.0")
    home.chat("talk", 4)
    home.chat("run", 4, parent_session_id="talk", model_config={"_delegate_from": "talk"})
    home.session("rest", parent_session_id="run", model_config={"_delegate_from": "run"})
    home.message("rest", "user", SUMMARY)
    assert home.findings("LIN008") == []


def test_a_routed_conversation_with_another_mark_is_another_rules_business(build: Build) -> None:
    home = build("0.22.2")
    home.chat("talk", 4)
    home.chat(
        "dm",
        4,
        source="telegram",
        session_key="agent:main:telegram:dm:1",
        parent_session_id="talk",
        model_config={"_delegate_from": "talk"},
    )
    assert home.findings("LIN008") == []


def test_a_subagent_that_inherited_the_routing_key_is_silent(build: Build) -> None:
    home = build("0.20.1")
    home.chat("talk", 4, session_key="agent:main:telegram:dm:1", ended_at=START, end_reason="compression")
    home.chat(
        "run",
        4,
        source="subagent",
        session_key="agent:main:telegram:dm:1",
        parent_session_id="talk",
        model_config={"_delegate_from": "talk"},
    )
    assert home.findings("LIN008") == []


def test_a_plain_subagent_run_is_silent(build: Build) -> None:
    home = build("0.22.2")
    home.chat("talk", 4)
    home.chat("run", 4, source="subagent", parent_session_id="talk", model_config={"_delegate_from": "talk"})
    assert home.findings("LIN008") == []


def test_no_text_of_a_message_is_told(build: Build) -> None:
    home = build()
    short_chat(home)
    (finding,) = home.findings("LIN008")
    assert "List the files" not in repr(finding)
