"""How far the local clock of the machine that ran Hermes was from UTC.

A log line bears local time and no zone. Most session ids begin with the local time at which the session was
begun, and its row keeps the same moment in UTC: the difference is the zone, as it was on that day. One home
may have two: a gateway in a container runs in UTC, and the command line beside it in local time.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from operator import itemgetter

from statemend.audit.facts import is_time
from statemend.store.connection import Store

#: Ids such as ``20260801_093000_1f2e3d``, and when their row was made.
DATED = """
    SELECT substr(id, 1, 15), started_at, source
    FROM sessions
    WHERE id GLOB '[12][0-9][0-9][0-9][0-9][0-9][0-9][0-9]_[0-9][0-9][0-9][0-9][0-9][0-9]_*'
"""

#: No zone is further from UTC than this, in seconds: 14 hours ahead, 12 behind.
AHEAD, BEHIND = 14 * 3600.0, 12 * 3600.0

_QUARTER = 900.0
#: A row is made soon after its id, in seconds.
_TOLERANCE = 120.0
#: So many of the nearest sessions are asked, and so many of them must agree.
_ASKED, _AGREEING = 7, 2
#: Where no session was begun as near as this, clocks may have been set for daylight saving since: so far.
_NEAR, _SAVING = 2 * 86400.0, 3600.0

_Told = tuple[float, float]


class LocalClocks:
    """How far local clocks were from UTC, as the sessions of a store tell. ``told`` are for each session that
    tells a local time, in epoch seconds as if clocks ran in UTC, the offset then, in seconds, and its source.
    """

    def __init__(self, told: Iterable[tuple[float, float, object]]) -> None:
        self._told: list[_Told] = []
        self._by_source: dict[object, list[_Told]] = {}
        for at, offset, source in sorted(told, key=itemgetter(0, 1)):
            self._told.append((at, offset))
            self._by_source.setdefault(source, []).append((at, offset))

    @classmethod
    def load(cls, store: Store) -> LocalClocks:
        """Read every session that tells."""
        return cls(_offsets(store))

    def offset_near(self, clock: float) -> float | None:
        """Seconds by which local time was ahead of UTC when local clocks showed ``clock``, which is epoch
        seconds as if they ran in UTC. ``None`` when the sessions begun around then do not tell, or disagree.
        """
        nearest = [offset for _, offset in _nearest(self._told, clock)]
        if not nearest:
            return None
        offset, votes = Counter(nearest).most_common(1)[0]
        return offset if votes >= _AGREEING and votes * 2 > len(nearest) else None

    def offsets_near(self, clock: float, source: object) -> tuple[float, ...]:
        """Every offset that the clock of whoever wrote of a session of ``source`` may have had when it showed
        ``clock``, the smallest first: a session is gone on with by other programs than the one that began it,
        so what sessions of other sources tell counts too. None when those of this source do not tell.
        """
        near = {each: _nearest(told, clock) for each, told in self._by_source.items()}
        times = [at for told in near.values() for at, _ in told]
        if not _agreed(near.get(source, ())) or len(times) < _AGREEING:
            return ()
        found = set[float]().union(
            *(_agreed(told) or {offset for _, offset in told} for told in near.values())
        )
        if min(abs(at - clock) for at in times) > _NEAR:
            found |= {offset + saving for offset in found for saving in (-_SAVING, _SAVING)}
        return tuple(sorted(found))


def _nearest(told: Sequence[_Told], clock: float) -> list[_Told]:
    """The sessions begun nearest to a time."""
    middle = bisect.bisect_left(told, (clock,))
    first = max(0, middle - _ASKED)
    while first > 0 and told[first - 1][0] == told[first][0]:
        first -= 1
    return sorted(told[first : middle + _ASKED], key=lambda each: (abs(each[0] - clock), each[1]))[:_ASKED]


def _agreed(told: Sequence[_Told]) -> set[float]:
    """The offsets that more than one session tells, or the one that the only session does."""
    votes = Counter(offset for _, offset in told)
    return {offset for offset, number in votes.items() if number >= min(_AGREEING, len(told))}


def _offsets(store: Store) -> Iterator[tuple[float, float, object]]:
    for stamp, started_at, source in store.rows(DATED):
        begun = _epoch(stamp)
        if begun is None or not is_time(started_at):
            continue
        offset = round((begun - started_at) / _QUARTER) * _QUARTER
        if -BEHIND <= offset <= AHEAD and abs(begun - started_at - offset) <= _TOLERANCE:
            yield begun, offset, source


def _epoch(stamp: str) -> float | None:
    try:
        return datetime.strptime(stamp, "%Y%m%d_%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
