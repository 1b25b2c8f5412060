"""How far the local clock of the machine that ran Hermes was from UTC.

A log line bears local time and no zone. Most session ids begin with the local time at which the session was
begun, and its row keeps the same moment in UTC: the difference is the zone, as it was on that day.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from statemend.audit.facts import is_time
from statemend.store.connection import Store

#: Ids such as ``20260801_093000_1f2e3d``, and when their row was made.
DATED = """
    SELECT substr(id, 1, 15), started_at
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


class LocalClocks:
    """How far local clocks were from UTC, as the sessions of a store tell. ``told`` are pairs of a local
    time, in epoch seconds as if clocks ran in UTC, and the offset then, in seconds."""

    def __init__(self, told: Iterable[tuple[float, float]]) -> None:
        self._told = sorted(told)

    @classmethod
    def load(cls, store: Store) -> LocalClocks:
        """Read every session that tells."""
        return cls(_offsets(store))

    def offset_near(self, clock: float) -> float | None:
        """Seconds by which local time was ahead of UTC when local clocks showed ``clock``, which is epoch
        seconds as if they ran in UTC. ``None`` when the sessions begun around then do not tell, or disagree.
        """
        middle = bisect.bisect_left(self._told, (clock,))
        first = max(0, middle - _ASKED)
        while first > 0 and self._told[first - 1][0] == self._told[first][0]:
            first -= 1
        around = self._told[first : middle + _ASKED]
        nearest = [
            offset for _, offset in sorted((abs(at - clock), offset) for at, offset in around)[:_ASKED]
        ]
        if not nearest:
            return None
        offset, votes = Counter(nearest).most_common(1)[0]
        return offset if votes >= _AGREEING and votes * 2 > len(nearest) else None


def _offsets(store: Store) -> Iterator[tuple[float, float]]:
    for stamp, started_at in store.rows(DATED):
        begun = _epoch(stamp)
        if begun is None or not is_time(started_at):
            continue
        offset = round((begun - started_at) / _QUARTER) * _QUARTER
        if -BEHIND <= offset <= AHEAD and abs(begun - started_at - offset) <= _TOLERANCE:
            yield begun, offset


def _epoch(stamp: str) -> float | None:
    try:
        return datetime.strptime(stamp, "%Y%m%d_%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
