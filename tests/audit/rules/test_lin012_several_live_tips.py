"""LIN012 several-live-tips: one chat in several open sessions at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder, facts

from statemend.audit.finding import Verdict

Build = Callable[..., HomeBuilder]
KEY = "agent:main:telegram:dm:42"
KEYED = ("0.18.2", "0.19.0", "0.20.1", "0.22.2")


def talk(home: HomeBuilder, session_id: str, begin: float, end: float, **values: Any) -> None:
    """An open session of the chat with messages at two times, in seconds after ``START``."""
    about = {"source": "telegram", "session_key": KEY, "started_at": START + begin, **values}
    home.session(session_id, **about)
    for at in (begin, end):
        home.message(session_id, timestamp=START + at)


@pytest.mark.fires("LIN012")
@pytest.mark.parametrize("version", KEYED)
def test_two_open_sessions_in_use_together_are_told(build: Build, version: str) -> None:
    home = build(version)
    talk(home, "a", 0, 5000)
    talk(home, "b", 1000, 6000)
    (finding,) = home.findings("LIN012")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert "the messages of each" in facts(finding)["what would decide"]
    assert finding.subject.session is None
    assert facts(finding)["from first to last message"] == [
        "a: 2026-09-21T14:13:20Z to 2026-09-21T15:36:40Z, 2 live rows",
        "b: 2026-09-21T14:30:00Z to 2026-09-21T15:53:20Z, 2 live rows",
    ]


@pytest.mark.parametrize("version", KEYED)
def test_one_after_the_other_is_silent(build: Build, version: str) -> None:
    home = build(version)
    talk(home, "a", 0, 1000)
    talk(home, "b", 1030, 6000)
    talk(home, "other chat", 0, 6000, session_key=f"{KEY}0")
    talk(home, "other source", 0, 6000, source="discord")
    assert home.findings("LIN012") == []


def test_an_empty_session_hides_none_and_a_minute_together_is_none(build: Build) -> None:
    home = build()
    about = {"source": "telegram", "session_key": KEY}
    home.session("0", **about)
    talk(home, "a", 0, 1000)
    talk(home, "b", 940, 6000)
    assert home.findings("LIN012") == []
    talk(home, "c", 5000, 7000)
    (finding,) = home.findings("LIN012")
    assert facts(finding)["sessions"] == 2


@pytest.mark.near_miss("LIN012")
@pytest.mark.parametrize(
    "values",
    [
        {"ended_at": START + 9000, "end_reason": "session_reset"},
        {"archived": 1},
        {"source": "subagent"},
        {"parent_session_id": "a"},
        {"session_key": ""},
        {"session_key": None},
    ],
    ids=["ended", "archived", "subagent", "branch", "no key", "null key"],
)
def test_near_misses_are_silent(build: Build, values: dict[str, Any]) -> None:
    home = build("0.22.2")
    talk(home, "a", 0, 5000)
    talk(home, "b", 1000, 6000, **values)
    assert home.findings("LIN012") == []


def test_relatives_far_apart_are_left_to_the_rules_about_lines(build: Build) -> None:
    home = build()
    talk(home, "a", 0, 5000)
    home.chat("middle", 2, parent_session_id="a", ended_at=START + 900, end_reason="compression")
    talk(home, "b", 1000, 6000, parent_session_id="middle")
    assert home.findings("LIN012") == []


def test_a_reset_begins_another_conversation(build: Build) -> None:
    home = build("0.22.2")
    talk(home, "a", 0, 5000)
    talk(home, "b", 1000, 6000, parent_session_id="a", model_config={"_reset_from": "a"})
    talk(home, "branch of b", 1000, 6000, parent_session_id="b")
    (finding,) = home.findings("LIN012")
    assert facts(finding)["sessions"] == 2


def test_a_ring_of_parents_is_one_conversation(build: Build) -> None:
    home = build()
    talk(home, "a", 0, 5000, parent_session_id="b")
    talk(home, "b", 1000, 6000, parent_session_id="a")
    assert home.findings("LIN012") == []


def test_the_route_is_named_and_decides_nothing(build: Build) -> None:
    home = build()
    talk(home, "a", 0, 5000)
    talk(home, "b", 1000, 6000)
    entry = json.dumps({"session_id": "b"})
    home.insert("gateway_routing", scope="x", session_key=KEY, entry_json=entry, updated_at=START)
    home.insert("gateway_routing", scope="y", session_key=KEY, entry_json="{", updated_at=START)
    (finding,) = home.findings("LIN012")
    assert finding.verdict is Verdict.UNDECIDABLE
    assert facts(finding)["its route leads to"] == ["b"]


def test_a_long_session_overlaps_with_each_short_one(build: Build) -> None:
    home = build()
    talk(home, "long", 0, 90_000)
    talk(home, "short", 1000, 2000)
    talk(home, "later", 30_000, 31_000)
    talk(home, "after all", 100_000, 101_000)
    (finding,) = home.findings("LIN012")
    assert facts(finding)["sessions"] == 3


def test_an_open_session_without_messages_is_no_tip(build: Build) -> None:
    home = build()
    talk(home, "a", 0, 5000)
    home.session("empty", source="telegram", session_key=KEY, started_at=START + 10)
    assert home.findings("LIN012") == []


def test_the_id_does_not_depend_on_what_grows(build: Build) -> None:
    home = build()
    talk(home, "a", 0, 5000)
    talk(home, "b", 1000, 6000)
    (before,) = home.findings("LIN012")
    home.message("a", timestamp=START + 7000)
    (after,) = home.findings("LIN012")
    assert before.id == after.id
