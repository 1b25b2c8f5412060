"""The turns that a log tells of: which session talked when, with what model, on which platform."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from statemend.formats import clock
from statemend.formats.log_lines import LogLines

#: How each release begins a turn in its log.
TURN = re.compile(
    r"conversation turn: session=(?P<session>\S+) model=(?P<model>\S*) provider=\S* "
    r"platform=(?P<platform>\S*) "
)
TURN_MARK = b"conversation turn: session="
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}")


class Turn(msgspec.Struct, frozen=True):
    """One turn. ``clock`` is the local time that the line bears, ``at`` the same in epoch seconds *as if the
    machine ran in UTC*. ``line`` counts from 1 in the unpacked file."""

    session_id: str
    clock: str
    at: float
    line: int


def turns(path: Path) -> Iterator[Turn]:
    """The turns that one log file tells of, streamed, in order. Raises ``Undetermined``."""
    for number, data in LogLines(path).marked([TURN_MARK]):
        text = data.decode("utf-8", "backslashreplace")
        found, begun = TURN.search(text), _CLOCK.match(text)
        at = clock.epoch_if_utc(begun[0]) if begun else None
        if found is not None and begun is not None and at is not None:
            yield Turn(found["session"], begun[0], at, number)
