"""Which session a cut-off one follows by the number of its title alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100


def told(home: HomeBuilder, one: dict[str, Any], other: dict[str, Any]) -> list[str | None]:
    """A session, and one that begins with a summary just after its end; those that LIN013 tells of."""
    home.chat("one", 4, **{"title": "Plan", "ended_at": END, "end_reason": "cli_close", **one})
    home.session("other", **{"title": "Plan #2", "started_at": END + 1, **other})
    home.message("other", "user", SUMMARY, timestamp=END + 1)
    home.message("other", "assistant", "And so on.", timestamp=END + 2)
    return [finding.subject.session for finding in home.findings("LIN013")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"session_key": "k"}, {"session_key": "k"}),
        ({"session_key": "k"}, {}),
        ({"source": "telegram"}, {"source": "unknown"}),
        ({"started_at": END + 1}, {}),
        ({"title": "Plan #6"}, {"title": "Plan #7"}),
    ],
    ids=["same place", "no place", "made again", "begun at once", "later numbers"],
)
def test_what_may_belong_together_is_told(build: Build, one: dict[str, Any], other: dict[str, Any]) -> None:
    assert told(build("0.22.2"), one, other) == ["one"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"session_key": "k"}, {"session_key": "l"}),
        ({"user_id": "1"}, {"user_id": "2"}),
        ({"source": "telegram"}, {"source": "cli"}),
        ({"source": "unknown"}, {"source": "cli"}),
        ({"started_at": END + 2}, {}),
        ({"started_at": "soon"}, {}),
        ({"title": b"Plan"}, {}),
        ({"title": "Plan"}, {"title": "Plan #3"}),
        ({}, {"title": None}),
    ],
    ids=["place", "user", "source", "made again", "later", "no time", "no text", "number", "no title"],
)
def test_what_does_not_belong_together_is_silent(
    build: Build, one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert told(build("0.22.2"), one, other) == []


def test_what_a_dead_end_fits_follows_no_other(build: Build) -> None:
    home = build("0.22.2")
    home.chat("dead", 4, ended_at=END, end_reason="compression")
    assert told(home, {}, {}) == []
    assert [finding.subject.session for finding in home.findings("LIN009")] == ["other"]
