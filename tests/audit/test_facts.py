"""How evidence is worded: times, long lists, cells that hold something else."""

from __future__ import annotations

import math
from typing import Any

import pytest

from statemend.audit.facts import MOST_LISTED, is_time, listed, moment, rows, words


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_790_000_100.75, "2026-09-21T14:15:00Z"),
        (-1.0, "1969-12-31T23:59:59Z"),
        (None, "unknown"),
        ("yesterday", "unknown"),
        (b"1", "unknown"),
        (True, "unknown"),
        (math.nan, "unknown"),
        (math.inf, "unknown"),
        (8e252, "unknown"),
        (1e13, "unknown"),
    ],
)
def test_a_time_is_said_in_utc_or_not_at_all(value: Any, said: str) -> None:
    assert moment(value) == said


@pytest.mark.parametrize(
    ("value", "answer"), [(1.5, True), (0, True), (math.nan, False), ("1", False), (True, False)]
)
def test_what_is_a_time(value: Any, answer: bool) -> None:
    assert is_time(value) is answer


def test_a_long_list_is_cut() -> None:
    assert listed(str(number) for number in range(1000)) == [str(number) for number in range(MOST_LISTED)]
    assert listed(["one"]) == ["one"]


def test_rows_are_counted_in_words() -> None:
    assert [rows(number) for number in (0, 1, 2, 12000)] == ["0 rows", "1 row", "2 rows", "12,000 rows"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, None),
        ("Plan", "Plan"),
        ("x" * 500, "x" * 200),
        (b"secret", "a cell of type bytes"),
        (5, "a cell of type int"),
    ],
)
def test_only_text_is_shown_as_text(value: Any, said: str | None) -> None:
    assert words(value) == said
