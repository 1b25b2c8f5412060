"""Where things go in the report's pictures. The templates draw them; nothing here knows about SVG.

Horizontal places are percentages of the picture's width, so that one picture serves a telephone and a wide
screen; vertical places are CSS pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import msgspec

from statemend.report import text
from statemend.report.model import Event, EventKind, SessionEntry

#: The lanes of the timeline from top to bottom, with their labels.
LANES: tuple[tuple[EventKind, str], ...] = (
    ("append-failed", "Appends that failed"),
    ("deleted", "Sessions deleted"),
    ("compacted", "Compactions"),
    ("exported", "Exports"),
)
_LANE_HEIGHT = 52
_MAX_BURSTS = 4
_BREAK_WIDTH = 4.0
_MERGE = 2.6
#: Room for a date below the axis, in percent of a picture on a telephone.
_DATE, _DATE_WITH_YEAR = 14.0, 24.0


class Mark(msgspec.Struct, frozen=True):
    """One sign on a lane: ``x`` in percent, how many events it stands for, and its tooltip."""

    x: float
    events: int
    label: str


class Lane(msgspec.Struct, frozen=True):
    """One kind of event. ``y`` is the line that its marks sit on."""

    kind: str
    label: str
    y: int
    total: int
    marks: tuple[Mark, ...]


class Tick(msgspec.Struct, frozen=True):
    """A time under the axis, in two short lines. ``tight`` is whether a narrow picture has no room for it
    beside the one before."""

    x: float
    date: str
    time: str
    tight: bool


class Pause(msgspec.Struct, frozen=True):
    """A stretch without events that the axis leaves out."""

    x: float
    label: str


class Timeline(msgspec.Struct, frozen=True):
    """The whole picture: ``height`` in pixels, stretches without events cut out."""

    height: int
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    pauses: tuple[Pause, ...]
    start: str
    end: str


def timeline(events: Sequence[Event]) -> Timeline | None:
    """Lay out ``events``; ``None`` when none of them has a time. Long pauses are cut out of the axis, since
    an export of last spring would otherwise squeeze the bad five minutes into one pixel."""
    placed = [(moment, event) for event in events if (moment := _moment(event)) is not None]
    if not placed:
        return None
    axis = _Axis(moment for moment, _ in placed)
    lanes: list[Lane] = []
    for kind, label in LANES:
        own = sorted((moment, event.count, _tooltip(event)) for moment, event in placed if event.kind == kind)
        if own:
            y = len(lanes) * _LANE_HEIGHT + 50
            total = sum(number for _, number, _ in own)
            lanes.append(Lane(kind=kind, label=label, y=y, total=total, marks=_merge(own, axis)))
    return Timeline(
        height=len(lanes) * _LANE_HEIGHT + 66,
        lanes=tuple(lanes),
        ticks=axis.ticks(),
        pauses=axis.pauses(),
        start=_day(axis.bursts[0][0]),
        end=_day(axis.bursts[-1][1]),
    )


def _moment(event: Event) -> float | None:
    return text.seconds(event.at or event.clock or "")


def _tooltip(event: Event) -> str:
    when = event.at or f"{event.clock} (zone unknown)"
    return f"{when} {event.session or ''} {event.detail}".strip()


def _merge(own: list[tuple[float, int, str]], axis: _Axis) -> tuple[Mark, ...]:
    marks: list[Mark] = []
    for moment, number, label in own:
        x = axis.place(moment)
        if marks and x - marks[-1].x < _MERGE:
            before = marks[-1]
            marks[-1] = Mark(x=before.x, events=before.events + number, label=before.label)
        else:
            marks.append(Mark(x=x, events=number, label=label))
    return tuple(marks)


class _Axis:
    """Time to percent, with the longest pauses cut out."""

    def __init__(self, moments: Iterable[float]) -> None:
        times = sorted(set(moments))
        span = times[-1] - times[0]
        gaps = sorted(
            ((later - earlier, index) for index, (earlier, later) in enumerate(pairwise(times))),
            reverse=True,
        )
        cuts = sorted(index for gap, index in gaps[: _MAX_BURSTS - 1] if gap > span / 6 and gap > 3600)
        self.bursts: list[tuple[float, float]] = []
        first = 0
        for cut in [*cuts, len(times) - 1]:
            self.bursts.append((times[first], times[cut]))
            first = cut + 1
        weights = [
            1 + min(2.0, sum(low <= moment <= high for moment in times) / 8) for low, high in self.bursts
        ]
        room = 94 - _BREAK_WIDTH * (len(self.bursts) - 1)
        self._places: list[tuple[float, float]] = []
        left = 3.0
        for weight in weights:
            width = room * weight / sum(weights)
            self._places.append((left, left + width))
            left += width + _BREAK_WIDTH

    def place(self, moment: float) -> float:
        """Where ``moment`` is, in percent. A burst of one moment sits in its middle."""
        for (low, high), (left, right) in zip(self.bursts, self._places, strict=True):
            if moment <= high:
                share = (moment - low) / (high - low) if high > low else 0.5
                return round(left + share * (right - left), 2)
        return 97.0

    def ticks(self) -> tuple[Tick, ...]:
        """A label at the start of every burst, and one at the end of the last. The year is in them where
        it is not the same in all."""
        times = [low for low, _ in self.bursts]
        low, high = self.bursts[-1]
        if high > low:
            times.append(high)
        moments = [datetime.fromtimestamp(each, UTC) for each in times]
        years = moments[0].year != moments[-1].year
        marks: list[Tick] = []
        free = 0.0
        for at, moment in zip(times, moments, strict=True):
            x = self.place(at)
            date = f"{moment.day} {moment:%b}{moment: %Y}" if years else f"{moment.day} {moment:%b}"
            marks.append(Tick(x, date, f"{moment:%H:%M}", tight=x < free))
            if x >= free:
                free = x + (_DATE_WITH_YEAR if years else _DATE)
        return tuple(marks)

    def pauses(self) -> tuple[Pause, ...]:
        """The places where the axis is cut."""
        cuts = []
        for index in range(len(self.bursts) - 1):
            length = self.bursts[index + 1][0] - self.bursts[index][1]
            middle = (self._places[index][1] + self._places[index + 1][0]) / 2
            cuts.append(Pause(round(middle, 2), _duration(length)))
        return tuple(cuts)


def _day(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M}"


def _duration(length: float) -> str:
    for unit, name in ((86400 * 365.25, "y"), (86400, "d"), (3600, "h")):
        if length >= unit:
            return f"{length / unit:.0f} {name}"
    return "< 1 h"


class Part(msgspec.Struct, frozen=True):
    """A stretch of a bar, in percent."""

    kind: str
    x: float
    width: float
    rows: int


class Bar(msgspec.Struct, frozen=True):
    """One session: rows by state above, how much of its display view lies in artifacts below."""

    rows: tuple[Part, ...]
    held: tuple[Part, ...]


def bar(session: SessionEntry) -> Bar:
    """Lay out one session: archived rows first, since they are the older ones."""
    states = (
        ("archived", session.archived or 0),
        ("live", session.live or 0),
        ("rewound", session.rewound or 0),
        ("unset", session.unset or 0),
    )
    held = session.held or 0
    return Bar(
        rows=_parts(states),
        held=_parts((("held", held), ("unheld", max(0, (session.display or 0) - held)))),
    )


def _parts(pairs: Iterable[tuple[str, int]]) -> tuple[Part, ...]:
    present = [(kind, number) for kind, number in pairs if number > 0]
    total = sum(number for _, number in present)
    parts = []
    left = 0.0
    for kind, number in present:
        width = 100 * number / total
        parts.append(Part(kind, round(left, 2), round(width, 2), number))
        left += width
    return tuple(parts)
