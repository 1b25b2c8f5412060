from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import HomeBuilder

from statemend.audit.zone import LocalClocks
from statemend.store.connection import open_for_audit

HOUR, DAY = 3600.0, 86400.0


@pytest.mark.parametrize(("clock", "expected"), [(0.0, HOUR), (900.0, HOUR), (50_000.0, 2 * HOUR)])
def test_the_sessions_begun_around_a_time_tell_the_offset(clock: float, expected: float) -> None:
    winter = [(float(at), HOUR, "cli") for at in range(0, 1000, 100)]
    summer = [(float(at), 2 * HOUR, "cli") for at in range(50_000, 51_000, 100)]

    assert LocalClocks([*summer, *winter]).offset_near(clock) == expected


def test_one_session_alone_does_not_tell() -> None:
    assert LocalClocks([]).offset_near(0.0) is None
    assert LocalClocks([(0.0, HOUR, "cli")]).offset_near(0.0) is None


def test_sessions_that_disagree_do_not_tell() -> None:
    told = [(float(at), HOUR * (at % 3), "cli") for at in range(9)]

    assert LocalClocks(told).offset_near(4.0) is None


def test_many_begun_at_one_moment_count_like_any_others() -> None:
    """Of those equally near the smallest offsets are asked, on whichever side they lie."""
    first, second = (0.0, HOUR, "cli"), (0.0, 2 * HOUR, "cli")
    for told in ([first] * 7 + [second] * 20, [first] * 4 + [second] * 20):
        assert LocalClocks(told).offset_near(0.0) == HOUR
        assert LocalClocks(told).offset_near(5.0) == HOUR


def test_as_many_for_one_offset_as_for_another_do_not_tell() -> None:
    told = [(float(at), HOUR * (1 + at // 2), "cli") for at in range(4)]

    assert LocalClocks(told).offset_near(1.0) is None
    assert LocalClocks([*told, (4.0, 2 * HOUR, "cli")]).offset_near(1.0) == 2 * HOUR


@pytest.mark.parametrize(
    ("shell", "gateway", "source", "clock", "expected"),
    [
        ([2, 2, 2], [2], "gateway", 0.0, (2,)),
        ([2, 2, 2], [0], "gateway", 0.0, (0, 2)),
        ([2, 2, 2], [0], "cli", 0.0, (0, 2)),
        ([2, 2, 5], [], "cli", 0.0, (2,)),
        ([2, 2, 1, 1], [], "cli", 0.0, (1, 2)),
        ([2, 3, 4], [1, 1], "cli", 0.0, ()),
        ([2, 3, 4], [1, 1], "gateway", 0.0, (1, 2, 3, 4)),
        ([2, 2, 2], [], "gateway", 0.0, ()),
        ([], [2], "gateway", 0.0, ()),
        ([2, 2], [], "cli", 2 * DAY + 100, (2,)),
        ([2, 2], [], "cli", 2 * DAY + 101, (1, 2, 3)),
    ],
    ids=[
        "one zone",
        "of the gateway",
        "of the command line",
        "one that strays",
        "set back",
        "its own disagree",
        "others disagree",
        "its own do not tell",
        "one session",
        "two days later",
        "longer",
    ],
)
def test_the_sessions_of_each_source_tell_what_a_log_may_mean(
    shell: list[int], gateway: list[int], source: str, clock: float, expected: tuple[int, ...]
) -> None:
    told = [(100.0 * at, hours * HOUR, "cli") for at, hours in enumerate(shell)]
    told += [(100.0 * at, hours * HOUR, "gateway") for at, hours in enumerate(gateway)]

    found = LocalClocks(told).offsets_near(clock, source)

    assert [offset / HOUR for offset in found] == list(expected)


def test_the_sessions_of_a_store_tell(build: Callable[..., HomeBuilder]) -> None:
    home = build("0.19.0")
    for minute in range(3):
        home.chat(f"20260801_09{minute:02}00_aaaaaa", started_at=1785567600.0 + minute * 60)
    with open_for_audit(home.store) as store:
        assert LocalClocks.load(store).offset_near(1785574800.0) == 2 * HOUR


def test_ids_that_are_no_time_or_too_far_from_one_tell_nothing(build: Callable[..., HomeBuilder]) -> None:
    home = build("0.19.0")
    home.session("20261399_090000_aaaaaa", started_at=1785567600.0)
    home.session("20260801_090000_aaaaaa", started_at="soon")
    for second in range(2):
        home.session(f"20260801_09000{second}_bbbbbb", started_at=1785567600.0 - 18 * HOUR + second)
        home.session(f"20260801_09000{second}_cccccc", started_at=1785567600.0 - 1200 + second)
        home.session(f"20260801_09000{second}_dddddd", started_at=1785567600.0 + 120 + second)
    with open_for_audit(home.store) as store:
        assert LocalClocks.load(store).offset_near(1785574800.0) == 2 * HOUR
