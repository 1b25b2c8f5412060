"""The turns that a log tells of: which session talked when, with what model, on which platform."""

from __future__ import annotations

import re
from array import array

import msgspec

from statemend.formats import clock

#: How each release begins a turn in its log.
TURN = re.compile(
    r"conversation turn: session=(?P<session>\S+) model=(?P<model>\S*) provider=\S* "
    r"platform=(?P<platform>\S*) "
)
TURN_MARK = b"conversation turn: session="
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}")


class Turns(msgspec.Struct, frozen=True):
    """The turns of one session that one log tells of. ``first`` and ``last`` are the earliest and the latest
    local time that their lines bear, ``times`` all of them, packed, in epoch seconds *as if the machine ran
    in UTC*."""

    session_id: str
    first: str
    last: str
    times: array[float]


class TurnLines:
    """Gathers the turns of one log from its lines."""

    def __init__(self) -> None:
        self._clocks: dict[str, tuple[str, str]] = {}
        self._times: dict[str, array[float]] = {}

    def take(self, text: str) -> None:
        """Look at one line."""
        found, begun = TURN.search(text), _CLOCK.match(text)
        at = clock.epoch_if_utc(begun[0]) if begun else None
        if found is None or begun is None or at is None:
            return
        session_id, local = found["session"], begun[0]
        first, last = self._clocks.get(session_id, (local, local))
        self._clocks[session_id] = min(first, local), max(last, local)
        self._times.setdefault(session_id, array("d")).append(at)

    def by_session(self) -> tuple[Turns, ...]:
        """What was gathered, in the order in which the sessions came."""
        return tuple(Turns(each, *self._clocks[each], times) for each, times in self._times.items())
