"""Which times missing row ids leave open."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import START, HomeBuilder

from statemend.audit.context import Context
from statemend.audit.holes import may_have_held

Build = Callable[..., HomeBuilder]
WITHIN = 10.0


def held(home: HomeBuilder, *times: float) -> list[bool]:
    """What the store is said of, for each time from ``START``."""
    seen: list[bool] = []

    def note(context: Context, _: object) -> None:
        seen.extend(may_have_held(context, START + each, WITHIN) for each in times)

    home.audit("EXP002", observe=note)
    return seen


def rows(build: Build, *places: tuple[int, float]) -> HomeBuilder:
    """A store with rows of these ids, at these times from ``START``."""
    home = build("0.19.0")
    home.sql("DELETE FROM sqlite_sequence")
    home.session("s", started_at=START)
    for row_id, at in places:
        home.message("s", "user", "text", id=row_id, timestamp=START + at)
    return home


def test_a_store_that_never_had_a_row_held_none(build: Build) -> None:
    assert held(rows(build), 0) == [False]


def test_a_store_whose_rows_are_all_gone_may_have_held_any(build: Build) -> None:
    home = rows(build, (1, 0))
    home.sql("DELETE FROM messages")
    assert held(home, -1e6, 0, 1e6) == [True, True, True]


def test_whole_ids_leave_nothing_open(build: Build) -> None:
    assert held(rows(build, (1, 0), (2, 100), (3, 200)), -50, 0, 100, 200, 250) == [False] * 5


def test_a_stretch_is_open_between_the_rows_around_it(build: Build) -> None:
    home = rows(build, (1, 0), (2, 100), (5, 200), (6, 300))
    assert held(home, 89, 90, 150, 210, 211) == [False, True, True, True, False]


def test_a_stretch_before_rows_that_were_brought_in_is_open_at_its_end(build: Build) -> None:
    home = rows(build, (1, 0), (2, 100), (5, 50), (6, 300))
    assert held(home, 60, 90, 1e6) == [False, True, True]


def test_rows_before_the_first_and_behind_the_last_may_be_gone(build: Build) -> None:
    home = rows(build, (3, 0), (4, 100), (5, 200))
    home.sql("DELETE FROM messages WHERE id = 5")
    assert held(home, -1e6, 10, 11, 89, 90, 1e6) == [True, True, False, False, True, True]


def test_a_store_that_does_not_count_may_have_held_later_rows(build: Build) -> None:
    home = rows(build, (1, 0), (2, 100))
    home.sql("DELETE FROM sqlite_sequence")
    assert held(home, 89, 90) == [False, True]


@pytest.mark.parametrize("value", ["'soon'", "x'00'", "9e999"])
def test_times_that_are_none_bound_nothing(build: Build, value: str) -> None:
    home = rows(build, (1, 0), (3, 100), (4, 200))
    home.sql(f"UPDATE messages SET timestamp = {value} WHERE id = 3")
    assert held(home, -11, 0, 1e6) == [False, True, True]
