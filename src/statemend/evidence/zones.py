"""The time zone of the machine that wrote an HTML page.

A page shows wall time in whole seconds and never says of which zone. The messages that the page shares
with the store tell: one offset (two where daylight saving began or ended in between) makes their times
agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from statemend.formats.clock import epoch_if_utc, trusted_epoch

_STEP = 15 * 60
_WESTMOST, _EASTMOST = -12 * 3600, 14 * 3600
#: How far clocks are set for daylight saving; Lord Howe Island moves by half an hour.
_SAVING = (-3600, 3600, -1800, 1800)
#: A text that stands so often in the store says too little about when it was written.
_MOST_ALIKE = 16


class Zone(msgspec.Struct, frozen=True):
    """The offsets from UTC, in seconds east, that a page's clock had; none when nothing tells."""

    offsets: tuple[int, ...] = ()

    def seconds(self, clock: str | None) -> Sequence[int | None]:
        """The epoch seconds that a shown time may mean; ``None`` for a message without a time."""
        shown = epoch_if_utc(clock) if clock else None
        if shown is None:
            return (None,)
        return [int(shown) - offset for offset in self.offsets]


def epoch_second(value: Any) -> int | None:
    """A time cell in whole seconds as exports print it: rounded to microseconds, then cut off."""
    number = trusted_epoch(value)
    return None if number is None else int(round(number, 6))


def solve(shown: Iterable[tuple[Hashable, str | None]], stored: Mapping[Hashable, Sequence[int]]) -> Zone:
    """The zone that makes most messages agree.

    ``shown`` are the page's messages as what they show and their clock; ``stored`` maps what a row shows
    to the epoch seconds of the rows that show it."""
    ballots: list[set[int]] = []
    for key, clock in shown:
        local = epoch_if_utc(clock) if clock else None
        seconds = stored.get(key, ())
        if local is not None and len(seconds) <= _MOST_ALIKE:
            ballots.append({offset for second in seconds if _possible(offset := int(local) - second)})
    main = _most(ballots)
    if main is None:
        return Zone()
    # A second offset is believed only where the first explains nothing.
    second = _most([ballot & {main + step for step in _SAVING} for ballot in ballots if main not in ballot])
    return Zone((main,) if second is None else (main, second))


def _most(ballots: Iterable[set[int]]) -> int | None:
    votes = Counter(offset for ballot in ballots for offset in ballot)
    return max(votes, key=lambda offset: (votes[offset], -abs(offset)), default=None)


def _possible(offset: int) -> bool:
    return offset % _STEP == 0 and _WESTMOST <= offset <= _EASTMOST
