"""Logs: ``agent.log``, ``errors.log``, ``gateway.log``, their rotations (``.1`` …) and gzipped copies.

What matters in them is the lines that say a message did not reach the store. Hermes goes on talking after
such a failure, so the log can be the only trace of a turn.

A log line carries local time without a zone. ``AppendFailure.clock`` keeps it as written; ``at`` is the same
moment *as if the machine ran in UTC*, so it is off by the machine's offset: fit for order, not for comparison
with the store. One event goes to ``agent.log`` and, from WARNING up, to ``errors.log`` too: count with
``distinct``.

A log can be long, so it is read once, for its digest, its damage and all that it tells; what it tells is kept
and not looked up again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from statemend.formats import clock, files
from statemend.formats.artifact import Artifact, Kind
from statemend.formats.log_lines import CHUNK, LogLines, unpacked_head
from statemend.formats.log_patterns import MARKS, match_failure
from statemend.formats.log_turns import REMOVAL_MARK, TURN_MARK, Removal, TurnLines, Turns

#: Its lines are no messages of a session.
SHOWN: Final[frozenset[Kind]] = frozenset()
_LINE = re.compile(
    r"(?P<clock>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (?P<level>[A-Z]+)(?: \[(?P<session>[^\]]*)\])? "
    r"(?P<logger>[^\s:]+): (?P<message>.*)",
    re.DOTALL,
)
#: So many texts are kept once for all lines that have them.
_MOST_TEXTS = 1024
_ROTATION = re.compile(r"(?:\.gz|\.\d{1,4})+\Z")


class AppendFailure(msgspec.Struct, frozen=True, gc=False):
    """One line that says that something of a session did not reach the store.

    ``session_id`` is the one that the message names, else the tag of the line, else ``None``. ``operation``
    says what failed: ``append`` (messages), ``create`` (the session row), ``split`` (a compression's new
    session), ``drop`` (a queued message was given up). ``error`` is the cause as logged, ``""`` where none
    is given. ``line`` counts from 1 in the unpacked file.
    """

    session_id: str | None
    at: float | None
    clock: str
    error: str
    file: str
    line: int
    operation: str = "append"
    level: str = "WARNING"


class Log(Artifact, frozen=True):
    """A log as an artifact, without sections, and what it tells: ``failures`` in the order of the file, the
    ``turns`` of each session, and the ``removals``, at most one of each session."""

    failures: tuple[AppendFailure, ...] = ()
    turns: tuple[Turns, ...] = ()
    removals: tuple[Removal, ...] = ()


def recognise(head: bytes) -> Kind | None:
    """``Kind.LOG`` for a log or a gzipped log: its first line that says anything is a log line."""
    start = unpacked_head(head).lstrip(b"\0\r\n\t ")
    return Kind.LOG if _LINE.match(_decode(start.split(b"\n", 1)[0])) else None


def read(path: Path) -> Log:
    """Read the whole log, once. Raises ``Undetermined`` when the system cannot read it.

    Damage is a gzip that is cut, corrupt or unpacks to too much; a log that grows is alive, not damaged. Of a
    damaged gzip is told what could be unpacked.
    """
    scan, failures, turns = files.Scan(path), _FailureLines(str(path)), TurnLines()
    chunks = scan.chunks(CHUNK)
    lines = LogLines(chunks)
    for number, data in lines.marked((*MARKS, TURN_MARK, REMOVAL_MARK)):
        text = _decode(data)
        if TURN_MARK in data or REMOVAL_MARK in data:
            turns.take(number, text)
        if any(mark in data for mark in MARKS):
            failures.take(number, text)
    for _ in chunks:  # the digest is also over what lies behind a fault
        pass
    return Log(
        path=str(path),
        kind=Kind.LOG,
        size=scan.size,
        modified_at=scan.modified_at,
        sha256=scan.sha256,
        damage=lines.fault,
        failures=tuple(failures.found),
        turns=turns.turns(),
        removals=turns.removals(),
    )


class _FailureLines:
    """Gathers the failures of one log from its lines."""

    def __init__(self, file: str) -> None:
        self.found: list[AppendFailure] = []
        self._file = file
        self._texts: dict[str, str] = {}  # few causes and sessions, each any number of times

    def take(self, number: int, text: str) -> None:
        """Look at the line with this number."""
        parts = _LINE.match(text.rstrip("\r\n"))
        said = match_failure(parts["message"]) if parts is not None else None
        if parts is None or said is None:
            return
        if len(self._texts) > _MOST_TEXTS:
            self._texts.clear()
        session_id = said.session_id or parts["session"] or None
        self.found.append(
            AppendFailure(
                session_id=None if session_id is None else self._once(session_id),
                at=clock.epoch_if_utc(parts["clock"]),
                clock=parts["clock"],
                error=self._once(said.error),
                file=self._file,
                line=number,
                operation=said.operation,
                level=self._once(parts["level"]),
            )
        )

    def _once(self, text: str) -> str:
        return self._texts.setdefault(text, text)


def distinct(found: Iterable[AppendFailure]) -> list[AppendFailure]:
    """Each event once, in order of time, however many logs it was written to.

    Two lines are the same event when clock, session, operation and error agree and they stand in different
    logs. Repeats within one log and its rotations are events of their own.
    """
    in_order = sorted(found, key=lambda one: (*_event_of(one), _log_of(one.file), one.file, one.line))
    kept: list[AppendFailure] = []
    for _, copies in groupby(in_order, key=_event_of):
        by_log = [list(group) for _, group in groupby(copies, key=lambda one: _log_of(one.file))]
        most: list[AppendFailure] = max(by_log, key=len)
        kept += most
    return sorted(kept, key=lambda one: (one.clock, one.file, one.line))


def _event_of(failure: AppendFailure) -> tuple[str, str, str, str]:
    return failure.clock, failure.session_id or "", failure.operation, failure.error


@lru_cache(maxsize=1024)
def _log_of(file: str) -> str:
    """The log that a file is a rotation of."""
    return _ROTATION.sub("", file)


def render_line(clock_text: str, level: str, logger: str, message: str, session_id: str | None = None) -> str:
    """A log line as Hermes formats it, newline included. ``clock_text`` is ``2026-09-01 10:00:00,123``."""
    tag = f" [{session_id}]" if session_id else ""
    return f"{clock_text} {level}{tag} {logger}: {message}\n"


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
