"""Pairing dead ends with cut-off sessions takes work that grows with their number, not with its square."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder

from statemend.audit import candidates, pairing
from statemend.audit.handoff import stem
from statemend.store.connection import Store

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START + 100


def broken(home: HomeBuilder, number: int, apart: float) -> None:
    """So many broken handoffs, each begun so many seconds after the one before."""
    sessions, messages = [], []
    for place in range(number):
        at = START + place * apart
        sessions.append((f"old{place:03}", at, at + 50, "compression", f"Plan {place:03}"))
        sessions.append((f"new{place:03}", at + 51, None, None, f"Plan {place:03} #2"))
        messages += [(f"old{place:03}", f"turn {row} of {place}", at + row) for row in range(6)]
        messages += [(f"new{place:03}", SUMMARY, at + 52)]
        messages += [(f"new{place:03}", f"turn {row} of {place}", at + 53) for row in (4, 5)]
    _insert(home, "sessions", ("id", "started_at", "ended_at", "end_reason", "title"), sessions, source="cli")
    _insert(home, "messages", ("session_id", "content", "timestamp"), messages, role="user")


def _insert(
    home: HomeBuilder, table: str, names: tuple[str, ...], rows: list[tuple[Any, ...]], **same: Any
) -> None:
    for row in rows:
        home.insert(table, **dict(zip(names, row, strict=True)), **same)


def work(home: HomeBuilder, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Queries and comparisons that both rules need, and that every handoff is found from both sides."""
    queries = comparisons = 0
    rows, match = Store.rows, pairing._match

    def counted_rows(*args: Any, **kwargs: Any) -> Any:
        nonlocal queries
        queries += 1
        return rows(*args, **kwargs)

    def counted_match(*args: Any) -> Any:
        nonlocal comparisons
        comparisons += 1
        return match(*args)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "rows", counted_rows)
        patch.setattr(pairing, "_match", counted_match)
        found = home.audit("LIN001", "LIN009").findings
    (number,) = home.sql("SELECT COUNT(*) FROM sessions")[0]
    assert len(found) == number
    assert all("1 cut-off session fits" in one.summary for one in found if one.rule == "LIN001")
    return queries, comparisons


@pytest.mark.parametrize("apart", [3600.0, 0.0], ids=["one-after-the-other", "all-at-once"])
def test_twice_the_families_are_twice_the_work(
    build: Build, monkeypatch: pytest.MonkeyPatch, apart: float
) -> None:
    few, many = build(name="few"), build(name="many")
    broken(few, 4, apart)
    broken(many, 8, apart)
    queries, comparisons = work(few, monkeypatch)
    more_queries, more_comparisons = work(many, monkeypatch)
    assert comparisons == 2 * 4
    assert more_comparisons == 2 * comparisons
    assert more_queries <= 2 * queries


def fitting(home: HomeBuilder) -> list[str]:
    """The cut-off sessions that fit the dead end of a home."""
    (finding,) = home.findings("LIN001")
    return [session for session, _ in candidates.of(finding)]


def cut(
    home: HomeBuilder, session_id: str, begun: float, summary: float | None = None, **values: Any
) -> None:
    """A session cut off from its parent: begun and given its summary so many seconds after ``END``."""
    home.session(session_id, **{"started_at": END + begun, **values})
    home.message(session_id, "user", SUMMARY, timestamp=END + (begun if summary is None else summary))


def test_sessions_begun_just_before_the_end_fit(build: Build) -> None:
    """Their summaries were stored when the turn was over, long after the end."""
    home = build()
    home.chat("old", 6, ended_at=END, end_reason="compression", title="")
    for session_id, begun in (("early", -20.0), ("late", -10.0), ("too-early", -301.0)):
        cut(home, session_id, begun, 4000.0, title=f"Plan of {session_id}")
    assert fitting(home) == ["early", "late"]


def test_a_row_that_was_made_later_fits_by_its_summary(build: Build) -> None:
    home = build()
    home.chat("old", 6, ended_at=END, end_reason="compression", source="telegram")
    cut(home, "new", 1000.0, 1.0, source="unknown")
    cut(home, "later", 1000.0, 400.0, source="unknown")
    assert fitting(home) == ["new"]


def test_one_with_another_number_of_the_same_title_fits_by_time(build: Build) -> None:
    home = build()
    home.chat("old", 6, ended_at=END, end_reason="compression", title="Plan")
    cut(home, "same", 1.0, title="Plan #5")
    cut(home, "next", 1000.0, title="Plan #2")
    cut(home, "other", 1.0, title="Taxes #2")
    assert fitting(home) == ["same", "next"]


def test_the_same_place_alone_ties_nothing(build: Build) -> None:
    """An export ties one of two with the routing key of the dead end to it, whatever the time."""
    home = build("0.22.2")
    home.chat("old", 6, ended_at=END, end_reason="compression", session_key="k")
    cut(home, "tied", 90_000.0, session_key="k")
    cut(home, "elsewhere", 1.0, session_key="other")
    cut(home, "loose", 90_000.0, session_key="k")
    exported = {"id": "tied", "parent_session_id": "old", "source": "cli", "started_at": END, "messages": []}
    home.file("session-exports/tied.jsonl", json.dumps(exported) + "\n")
    assert fitting(home) == ["tied"]


@pytest.mark.parametrize(
    ("title", "parts"),
    [
        ("Taxes", ("Taxes", 1)),
        ("Taxes #3", ("Taxes", 3)),
        ("Taxes\n\t#12", ("Taxes", 12)),
        ("Taxes #2 #3", ("Taxes #2", 3)),
        ("Taxes#3", ("Taxes#3", 1)),
        (" #3", (" #3", 1)),
        ("Taxes #", ("Taxes #", 1)),
        ("Taxes #³", ("Taxes #³", 1)),
        ("Taxes # 3", ("Taxes # 3", 1)),
        ("Taxes #" + "9" * 18, ("Taxes", 10**18 - 1)),
        ("Taxes #" + "9" * 19, ("Taxes #" + "9" * 19, 1)),
        ("Taxes #" + "9" * 5000, ("Taxes #" + "9" * 5000, 1)),
        (" " * 100_000 + "x", (" " * 100_000 + "x", 1)),
    ],
    ids=range(13),
)
def test_a_title_and_its_number(title: str, parts: tuple[str, int]) -> None:
    assert stem(title) == parts
