"""ORP005 ghost-row-tail: a row made in passing that holds the end of a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]


def exported(home: HomeBuilder, session_id: str, *texts: str, start: float = START, name: str = "x") -> None:
    """A JSONL export with these messages, a second apart."""
    messages: list[dict[str, Any]] = [
        {
            "id": 100 + number,
            "session_id": session_id,
            "role": ("user", "assistant")[number % 2],
            "content": text,
            "timestamp": start + number,
            "active": 1,
            "compacted": 0,
        }
        for number, text in enumerate(texts)
    ]
    session = {"id": session_id, "source": "cli", "started_at": start, "messages": messages}
    home.file(f"session-exports/{name}.jsonl", json.dumps(session) + "\n")


def tail(home: HomeBuilder, *texts: str, source: str = "unknown", start: float = START + 3600) -> list[int]:
    home.session("ghost", source=source)
    return [
        home.message("ghost", ("user", "assistant")[number % 2], text, timestamp=start + number)
        for number, text in enumerate(texts)
    ]


@pytest.mark.fires("ORP005")
@pytest.mark.parametrize("source", ["unknown", "recovered"])
@pytest.mark.parametrize("version", ["0.13.0", "0.19.0", "0.22.2"])
def test_the_beginning_is_only_in_a_file(build: Build, version: str, source: str) -> None:
    home = build(version)
    rows = tail(home, "still there?", "I am.", source=source)
    exported(home, "ghost", "one", "two", "three", "four")
    (finding,) = home.findings("ORP005")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    assert finding.subject.session == "ghost"
    assert finding.subject.message_ids == tuple(rows)
    evidence = facts(finding)
    assert (evidence["messages before the tail"], evidence["messages of the tail"]) == (4, 2)
    assert evidence["source of the row"] == source


def test_a_file_that_reaches_into_the_tail_is_no_stranger(build: Build) -> None:
    home = build()
    tail(home, "three", "four", "five", start=START + 2)
    exported(home, "ghost", "one", "two")
    home.sql("UPDATE messages SET role = 'user' WHERE content = 'three'")
    exported(home, "ghost", "one", "two", "three")
    (finding,) = home.findings("ORP005")
    assert facts(finding)["messages that store and files share"] == 1
    assert facts(finding)["messages before the tail"] == 2


def test_a_ghost_without_messages_lacks_all_of_them(build: Build) -> None:
    home = build()
    home.session("ghost", source="unknown")
    exported(home, "ghost", "one", "two")
    (finding,) = home.findings("ORP005")
    assert facts(finding)["messages of the tail"] == 0


def test_a_conversation_that_overlaps_without_sharing_anything_is_undecidable(build: Build) -> None:
    home = build()
    tail(home, "three", "four", start=START + 0.5)
    exported(home, "ghost", "un", "deux", "trois")
    assert [finding.verdict for finding in home.findings("ORP005")] == [Verdict.UNDECIDABLE]


NEAR_MISSES: dict[str, Callable[[HomeBuilder], None]] = {
    "no file has more": lambda home: exported(home, "ghost", "still there?", "I am.", start=START + 3600),
    "what it has is later": lambda home: exported(home, "ghost", "later", start=START + 9000),
    "it is another session's": lambda home: exported(home, "other", "one", "two"),
    "there is no file": lambda home: None,
}


@pytest.mark.near_miss("ORP005")
@pytest.mark.parametrize("company", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_near_misses_are_silent(build: Build, company: Callable[[HomeBuilder], None]) -> None:
    home = build()
    tail(home, "still there?", "I am.")
    company(home)
    assert home.findings("ORP005") == []


def test_a_row_that_a_conversation_made_is_silent(build: Build) -> None:
    home = build()
    tail(home, "still there?", "I am.", source="cli")
    exported(home, "ghost", "one", "two")
    assert home.findings("ORP005") == []
