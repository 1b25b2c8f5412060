"""What a log tells of a session's life: when it talked, with what model, on which platform, and its end."""

from __future__ import annotations

import re
from array import array

import msgspec

from statemend.formats import clock

#: How each release begins a turn in its log.
_TURN = re.compile(
    r"conversation turn: session=(?P<session>\S+) model=(?P<model>\S*) provider=\S* "
    r"platform=(?P<platform>\S*) "
)
TURN_MARK = b"conversation turn: session="
#: How 0.22's gateway says that a session was deleted that it had routes to.
_REMOVAL = re.compile(r"SessionStore removed \d+ routing entr(?:y|ies) for deleted session (?P<session>\S+)")
REMOVAL_MARK = b" for deleted session "
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}")


class Turns(msgspec.Struct, frozen=True):
    """The turns of one session that one log tells of. ``first`` and ``last`` are the earliest and the latest
    local time that their lines bear, ``times`` all of them, packed, in epoch seconds *as if the machine ran
    in UTC*. ``line`` is the number of the line of the latest, which names ``model`` and ``platform``."""

    session_id: str
    first: str
    last: str
    line: int
    model: str
    platform: str
    times: array[float]


class Removal(msgspec.Struct, frozen=True):
    """The latest line of one log that says that a session was deleted. ``clock`` is the local time that it
    bears."""

    session_id: str
    clock: str
    line: int


class TurnLines:
    """Gathers the turns of one log, and the deletions, from its lines."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._latest: dict[str, tuple[str, int, str, str]] = {}
        self._times: dict[str, array[float]] = {}
        self._removed: dict[str, Removal] = {}

    def take(self, number: int, text: str) -> None:
        """Look at the line with this number."""
        begun = _CLOCK.match(text)
        at = clock.epoch_if_utc(begun[0]) if begun else None
        if begun is None or at is None:
            return
        local = begun[0]
        if (turn := _TURN.search(text)) is not None:
            session_id = turn["session"]
            self._times.setdefault(session_id, array("d")).append(at)
            self._first[session_id] = min(local, self._first.get(session_id, local))
            if local >= self._latest.get(session_id, (local,))[0]:
                self._latest[session_id] = local, number, turn["model"], turn["platform"]
        if (removal := _REMOVAL.search(text)) is not None:
            known = self._removed.get(removal["session"])
            if known is None or local >= known.clock:
                self._removed[removal["session"]] = Removal(removal["session"], local, number)

    def turns(self) -> tuple[Turns, ...]:
        """The turns of each session, in the order in which the sessions came."""
        return tuple(
            Turns(each, self._first[each], *self._latest[each], times) for each, times in self._times.items()
        )

    def removals(self) -> tuple[Removal, ...]:
        """The deletion of each session that was deleted."""
        return tuple(self._removed.values())
