"""The times of rows of which no source tells a point in time.

A page shows the wall time of the machine that wrote it, and no zone. Where the sessions of the store tell how
far that machine's clock was from UTC then, they decide. Otherwise the zone is made up; and a message without
any clock gets the time of the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from statemend.audit.zone import LocalClocks
from statemend.evidence.salvage import Saved
from statemend.formats.clock import epoch_if_utc
from statemend.repair.salvaged_rows import Filled, SalvagedRow

_ZONELESS = "made up: a wall time, taken as UTC; nothing tells its zone"


def timed(
    rows: Sequence[SalvagedRow], messages: Sequence[Saved], clocks: LocalClocks, begun: float | None
) -> Iterator[SalvagedRow]:
    """The rows, each with a time. ``begun`` is when sources say that the session began (epoch seconds)."""
    read = [_by_clock(row, messages[row.message], clocks) for row in rows]
    times = [row.values["timestamp"] for row in read if row.timed]
    at = times[0] if times else begun or 0.0
    for row in read:
        at = row.values.get("timestamp", at)
        yield msgspec.structs.replace(row, values=row.values | {"timestamp": at})


def zoneless(row: SalvagedRow) -> bool:
    """Whether the zone of a row's time was made up."""
    return any(each.column == "timestamp" and each.how == _ZONELESS for each in row.filled)


def _by_clock(row: SalvagedRow, message: Saved, clocks: LocalClocks) -> SalvagedRow:
    """The row with the time that its wall time means, if it has one and nothing better."""
    clock = message.record.clock
    local = None if row.timed or clock is None else epoch_if_utc(clock)
    if local is None:
        return row
    offset = clocks.offset_near(local)
    how = (
        _ZONELESS
        if offset is None
        else f"its wall time; local time was {offset / 3600:+g} h from UTC, as in ids of sessions beside it"
    )
    found = row.with_column(Filled("timestamp", local - (offset or 0.0), how, row.place))
    return msgspec.structs.replace(found, timed=True)
