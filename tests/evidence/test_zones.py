from __future__ import annotations

import pytest

from statemend.evidence.zones import Zone, epoch_second, solve

NINE = 1785574800  # 2026-08-01T09:00:00Z


def test_one_message_tells_the_zone() -> None:
    assert solve([("a", "2026-08-01 11:00:00")], {"a": [NINE]}) == Zone((7200,))


def test_most_messages_decide() -> None:
    shown = [("a", "2026-08-01 04:00:00"), ("b", "2026-08-01 04:00:01"), ("b", "2026-08-01 05:00:01")]
    zone = solve(shown, {"a": [NINE], "b": [NINE + 1, NINE + 3601]})
    assert zone.offsets[0] == -18000


def test_no_zone_is_further_than_zones_are() -> None:
    assert solve([("a", "2026-08-02 09:00:00")], {"a": [NINE]}) == Zone()
    assert solve([("a", "2026-08-01 09:07:00")], {"a": [NINE]}) == Zone()


def test_a_second_offset_is_believed_for_daylight_saving_alone() -> None:
    shown = [("a", "2026-08-01 11:00:00"), ("b", "2026-08-01 11:00:01"), ("c", "2026-12-01 10:00:00")]
    winter = NINE + 122 * 86400
    stored = {"a": [NINE], "b": [NINE + 1], "c": [winter]}
    assert solve(shown, stored) == Zone((7200, 3600))
    assert solve(shown, {**stored, "c": [winter + 7200]}) == Zone((7200,))
    assert solve(shown[:2], {"a": [NINE, NINE + 3600], "b": [NINE + 1]}) == Zone((7200,))


def test_a_text_that_stands_everywhere_tells_nothing() -> None:
    assert solve([("ok", "2026-08-01 11:00:00")], {"ok": [NINE + n for n in range(17)]}) == Zone()


def test_what_a_clock_may_mean() -> None:
    zone = Zone((7200, 3600))
    assert list(zone.seconds("2026-08-01 11:00:00")) == [NINE, NINE + 3600]
    assert list(zone.seconds(None)) == [None]
    assert list(zone.seconds("N/A")) == [None]
    assert list(Zone().seconds("2026-08-01 11:00:00")) == []


@pytest.mark.parametrize(
    ("stored", "second"),
    [(1.9, 1), (1.9999999, 2), ("5.5", 5), (None, None), ("x", None), (-1.0, None), (8e252, None)],
)
def test_times_are_cut_to_the_second_as_exports_cut_them(stored: object, second: int | None) -> None:
    assert epoch_second(stored) == second
