"""Pairing dead ends with cut-off sessions takes work that grows with their number, not with its square."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder

from statemend.audit import pairing
from statemend.audit.handoff import stem
from statemend.store.connection import Store

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."


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
        ("Taxes #" + "9" * 5000, ("Taxes #" + "9" * 5000, 1)),
        (" " * 100_000 + "x", (" " * 100_000 + "x", 1)),
    ],
    ids=range(11),
)
def test_a_title_and_its_number(title: str, parts: tuple[str, int]) -> None:
    assert stem(title) == parts
