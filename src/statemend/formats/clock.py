"""Times as artifacts write them.

Three spellings occur: epoch seconds (JSONL), ISO 8601 in UTC (Markdown and the prompts kinds), and
local wall time without a zone (HTML pages and logs).
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, tzinfo
from typing import Any

#: Epoch seconds that recent releases of Hermes accept as a stored time: 1970 to 2103.
EARLIEST, LATEST = 0.0, 4_200_000_000.0

_WALL = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?\Z")


def finite(value: Any) -> float | None:
    """``value`` as a float when it is a finite number; booleans, texts and NaN give ``None``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def trusted_epoch(value: Any) -> float | None:
    """A stored time cell as epoch seconds, or ``None`` where recent releases call it corrupt.

    Numbers and numeric texts count; empty, non-numeric, non-finite and out-of-range cells do not.
    """
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if EARLIEST <= number <= LATEST else None


def utc_seconds(value: Any) -> str | None:
    """The time cell as the prompts kinds print it: ``2026-08-01T09:20:07Z``, fraction cut off.

    An unset cell gives ``None``; a corrupt one is printed as it stands.
    """
    if value is None:
        return None
    number = trusted_epoch(value)
    if number is None:
        return str(value)
    return datetime.fromtimestamp(number, tz=UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def wall_seconds(value: Any, zone: tzinfo) -> str:
    """The time cell as an HTML page prints it in ``zone``: ``2026-08-01 09:20:07``, or ``N/A``."""
    number = trusted_epoch(value) if value else None
    return datetime.fromtimestamp(number, tz=zone).strftime("%Y-%m-%d %H:%M:%S") if number else "N/A"


def epoch_of_iso(text: Any) -> float | None:
    """Epoch seconds of an ISO 8601 text with a zone; ``None`` for anything else."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def epoch_if_utc(clock: str) -> float | None:
    """Epoch seconds of a local wall time *if* its machine ran in UTC.

    The zone is unknown, so the result can be off by the machine's offset (up to 14 hours). It serves for
    order and for distances within one zone, never as a point in time to act on.
    """
    parts = _WALL.match(clock)
    if parts is None:
        return None
    day, second, fraction = parts.groups(default="")
    try:
        moment = datetime.fromisoformat(f"{day}T{second}.{fraction.ljust(6, '0')}+00:00")
    except ValueError:
        return None
    return moment.timestamp()
