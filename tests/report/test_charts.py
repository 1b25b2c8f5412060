from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.report.sample import TIMELINE

from statemend.report import charts
from statemend.report.model import Event, SessionEntry
from statemend.report.text import iso


def event(at: float, kind: charts.EventKind = "exported") -> Event:
    return Event(kind=kind, at=iso(at), source="x")


@given(st.lists(st.integers(0, 4_000_000_000), min_size=1, max_size=40))
def test_every_mark_lies_in_the_picture_and_none_is_lost(times: list[int]) -> None:
    picture = charts.timeline([event(at) for at in times])
    assert picture is not None
    marks = picture.lanes[0].marks
    assert sum(mark.events for mark in marks) == len(times)
    assert all(0 <= mark.x <= 100 for mark in marks)
    assert [mark.x for mark in marks] == sorted(mark.x for mark in marks)


def test_long_pauses_are_cut_out_and_said() -> None:
    day = 86400.0
    picture = charts.timeline([event(0), event(100 * day), event(100 * day + 60), event(100 * day + 300)])
    assert picture is not None
    assert [pause.label for pause in picture.pauses] == ["100 d"]
    assert picture.lanes[0].marks[-1].x - picture.lanes[0].marks[1].x > 20


def test_dates_name_the_year_where_it_changes_and_give_way_where_there_is_no_room() -> None:
    day = 86400.0
    within = charts.timeline([event(0), event(100 * day), event(100 * day + 60)])
    across = charts.timeline([event(0), event(400 * day), event(400 * day + 60), event(900 * day)])
    assert within is not None
    assert across is not None
    assert [tick.date for tick in within.ticks] == ["1 Jan", "11 Apr", "11 Apr"]
    assert [tick.date for tick in across.ticks] == ["1 Jan 1970", "5 Feb 1971", "19 Jun 1972"]
    for picture in (within, across):
        shown = [tick.x for tick in picture.ticks if not tick.tight]
        assert shown
        assert all(later - earlier >= 14 for earlier, later in pairwise(shown))


@given(st.lists(st.integers(0, 4_000_000_000), min_size=1, max_size=40))
def test_the_axis_says_when_it_begins_and_when_it_ends(times: list[int]) -> None:
    picture = charts.timeline([event(at) for at in times])
    assert picture is not None
    first, last = picture.ticks[0], picture.ticks[-1]
    assert picture.start.endswith(first.time)
    assert picture.end.endswith(last.time)
    assert not first.tight


def test_lanes_keep_their_order_and_only_used_ones_are_drawn() -> None:
    picture = charts.timeline(TIMELINE)
    assert picture is not None
    assert [lane.kind for lane in picture.lanes] == ["append-failed", "deleted", "compacted", "exported"]
    assert picture.lanes[0].total == 14


def test_events_without_a_time_make_no_picture() -> None:
    assert (
        charts.timeline([Event(kind="deleted", source="x"), Event(kind="deleted", clock="?", source="x")])
        is None
    )


counts = st.integers(0, 100_000)


@given(counts, counts, counts, counts, counts, counts)
def test_a_bar_is_full_or_empty(
    live: int, archived: int, rewound: int, unset: int, display: int, held: int
) -> None:
    session = SessionEntry(
        id="s", live=live, archived=archived, rewound=rewound, unset=unset, display=display, held=held
    )
    bar = charts.bar(session)
    total = live + archived + rewound + unset
    assert sum(part.rows for part in bar.rows) == total
    assert abs(sum(part.width for part in bar.rows) - (100 if total else 0)) < 0.1
    assert [part.kind for part in bar.held if part.kind == "unheld"] == (["unheld"] if display > held else [])
