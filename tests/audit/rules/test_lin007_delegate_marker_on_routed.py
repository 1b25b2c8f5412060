"""LIN007 delegate-marker-on-routed: a conversation of a chat that is marked as a subagent's run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import HomeBuilder, facts
from tests.audit.routes import KEY, ROUTING, bind, route

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."


def marked(home: HomeBuilder, mark: str = "talk", **values: Any) -> None:
    """A conversation of a messaging chat, marked as a run on behalf of another."""
    home.chat("talk", 4)
    told = {"source": "telegram", "model_config": {"_delegate_from": mark}, **values}
    home.chat("dm", 4, **told)


@pytest.mark.fires("LIN007")
@pytest.mark.parametrize("version", ROUTING)
def test_a_key_on_a_marked_conversation_is_a_fault(build: Build, version: str) -> None:
    home = build(version)
    marked(home, session_key=KEY, parent_session_id="talk")
    (finding,) = home.findings("LIN007")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    assert finding.subject.session == "dm"
    told = facts(finding)
    assert (told["routing key"], told["ways that lead to it now"]) == (KEY, "none")
    assert told["the mark names"] == "its parent"
    assert told["deleting the session that the mark names"] == "takes it along"
    assert told["releases that heed the mark"] == "0.17 and newer"
    assert finding.remedy.command is not None
    assert finding.remedy.command.startswith("statemend plan")
    assert "turn 0" not in repr(finding)


@pytest.mark.parametrize("version", ROUTING)
def test_the_routing_table_is_enough(build: Build, version: str) -> None:
    home = build(version)
    marked(home, parent_session_id="talk")
    route(home, "dm")
    (finding,) = home.findings("LIN007")
    assert facts(finding)["ways that lead to it now"] == [f"the route of {KEY}"]


def test_a_routed_session_without_a_message(build: Build) -> None:
    home = build("0.22.2")
    home.chat("talk", 4)
    told = {"title": "Garden", "source": "telegram", "session_key": KEY}
    home.session("dm", model_config={"_delegate_from": "gone"}, **told)
    (finding,) = home.findings("LIN007")
    assert facts(finding)["title"] == "Garden"
    assert facts(finding)["live rows"] == 0


def test_a_topic_binding_is_enough(build: Build) -> None:
    home = build("0.17.0")
    marked(home)
    bind(home, "dm")
    (finding,) = home.findings("LIN007")
    assert facts(finding)["ways that lead to it now"] == ["topic 7 of chat 42"]


@pytest.mark.parametrize(
    ("mark", "named"), [("talk", "another session"), ("gone", "no session of this store")]
)
def test_what_the_mark_names_is_told(build: Build, mark: str, named: str) -> None:
    home = build("0.22.2")
    marked(home, mark, session_key=KEY)
    (finding,) = home.findings("LIN007")
    assert facts(finding)["the mark names"] == named


@pytest.mark.near_miss("LIN007")
@pytest.mark.parametrize(
    "values",
    [
        {"session_key": None},
        {"session_key": ""},
        {"source": "subagent"},
        {"source": "tool"},
        {"source": "cron"},
        {"model_config": {}},
        {"model_config": '{"_delegate_from": '},
    ],
    ids=["no key", "empty key", "subagent", "tool", "cron", "no mark", "malformed"],
)
def test_near_misses_are_silent(build: Build, values: dict[str, Any]) -> None:
    home = build("0.22.2")
    marked(home, **{"session_key": KEY, "parent_session_id": "talk", **values})
    route(home, "talk")
    assert home.findings("LIN007") == []


def test_a_subagent_that_inherited_the_routing_key_is_silent(build: Build) -> None:
    home = build("0.20.1")
    home.chat("talk", 4, session_key=KEY, end_reason="compression")
    mark = {"_delegate_from": "talk"}
    home.chat("run", 4, source="subagent", session_key=KEY, parent_session_id="talk", model_config=mark)
    assert home.findings("LIN007") == []


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"model_config": {"_delegate_from": "__orphaned__"}}, "LIN008"),
        ({"model_config": {"_delegate_from": "talk", "_reset_from": "talk"}}, "LIN005"),
    ],
)
def test_what_another_rule_tells_is_told_once(build: Build, values: dict[str, Any], rule: str) -> None:
    home = build("0.20.1")
    marked(home, session_key=KEY, parent_session_id="talk", **values)
    told = [one.rule for one in home.audit("LIN").findings if one.subject.session == "dm"]
    assert told == [rule]


def test_a_marked_continuation_is_the_migrations_business(build: Build) -> None:
    home = build()
    home.chat("talk", 4)
    home.session("dm", parent_session_id="talk", session_key=KEY, model_config={"_delegate_from": "talk"})
    home.message("dm", "user", SUMMARY)
    assert [(one.rule, one.subject.session) for one in home.audit("LIN").findings] == [("LIN008", "dm")]


def test_odd_routes_are_no_obstacle(build: Build) -> None:
    home = build("0.22.2")
    marked(home)
    home.insert("gateway_routing", scope="", session_key="a", entry_json="{", updated_at=1.0)
    home.insert("gateway_routing", scope="", session_key="b", entry_json={"session_id": 5}, updated_at=1.0)
    assert home.findings("LIN007") == []
