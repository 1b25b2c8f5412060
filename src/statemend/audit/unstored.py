"""What became of a turn that a log says was not stored: told from the store, as far as it tells."""

from __future__ import annotations

import msgspec

from statemend.audit.context import Context
from statemend.audit.facts import is_time, moment
from statemend.audit.finding import Severity, Value, Verdict
from statemend.audit.zone import AHEAD, BEHIND
from statemend.formats.logs import AppendFailure
from statemend.store.history import Census, census

SESSION = "SELECT source FROM sessions WHERE id = ?"

#: A turn's messages may bear times from so long before the line that says they were not stored, in seconds.
TURN = 600.0
#: Where turns may be that the store never had. An export is made from the store, and so has none of them.
LOOK = (
    "What was not stored is in no export: look for it in what Hermes wrote from its memory (snapshots, "
    "request dumps and saved conversations in sessions/, pending_messages/) and on the chat platform."
)
#: What SQLite says when the session row is missing.
MISSING_ROW = "FOREIGN KEY constraint failed"


class Judgement(msgspec.Struct, frozen=True):
    """How the failed writes of one session stand. ``facts`` is the evidence that the store gave."""

    verdict: Verdict
    severity: Severity
    summary: str
    remedy: str
    facts: tuple[tuple[str, Value], ...] = ()


def judge(context: Context, session_id: str | None, group: list[AppendFailure]) -> Judgement | None:
    """Judge the failures of one session, in order of time. ``None`` when they were of no consequence."""
    if session_id is None:
        return Judgement(
            Verdict.UNDECIDABLE,
            Severity.HIGH if row_was_missing(group) else Severity.MEDIUM,
            f"{_writes(group)}, and the lines name no session.",
            "The lines around them in the log tell which conversation was running.",
        )
    if not context.trusts("sessions", "messages"):
        return Judgement(
            Verdict.UNDECIDABLE,
            Severity.HIGH,
            f"{_writes(group)}; whether that was made good cannot be told, for the store cannot be read.",
            "Audit again when the store is readable.",
        )
    row = context.store.one(SESSION, (session_id,))
    if row is not None and not any(failure.operation in ("append", "drop") for failure in group):
        return None  # a row that could not be made at once was made later: nothing was lost by that
    counted = next(iter(census(context.store, session_id)), None)
    clock = max((failure.at for failure in group if failure.at is not None), default=None)
    offsets = () if row is None or clock is None else context.clocks.offsets_near(clock, row[0])
    if row is None:
        judgement = _gone(group, counted)
    elif counted is None:
        judgement = Judgement(
            Verdict.FAULT,
            Severity.CRITICAL,
            f"{_writes(group)}: the session is in the store without a single message.",
            LOOK,
        )
    else:
        judgement = _present(group, counted, clock, offsets, rebuilt=row[0] == "unknown")
    facts: list[tuple[str, Value]] = [
        ("session is in the store", row is not None),
        ("rows in the store", rows(counted)),
        ("last time in the store", moment(counted.last_at if counted else None)),
        ("local time ahead of UTC in hours", _hours(offsets)),
    ]
    return msgspec.structs.replace(judgement, facts=tuple(facts))


def _gone(group: list[AppendFailure], counted: Census | None) -> Judgement:
    """The session row is not there."""
    look = LOOK
    if counted is not None:
        left = rows(counted)
        kept = f"{left:,} message{'' if left == 1 else 's'}"
        look = f"Rebuild the session row (ORP001), of which the store still has {kept}. {look}"
    if row_was_missing(group):
        return Judgement(
            Verdict.FAULT,
            Severity.CRITICAL,
            f"{_writes(group)} because the session's row had gone from the store; it is still missing.",
            look,
        )
    return Judgement(
        Verdict.UNDECIDABLE,
        Severity.MEDIUM,
        f"{_writes(group)}, and the session is not in the store today.",
        f"{look} If the session was deleted on purpose since, nothing is to be done.",
    )


def _present(
    group: list[AppendFailure],
    counted: Census,
    clock: float | None,
    offsets: tuple[float, ...],
    *,
    rebuilt: bool,
) -> Judgement:
    """The session has rows: are there any from after the last failure? ``offsets`` are those from UTC that
    the clock of the log may have had; none where that is not told."""
    look = f"Compare the last turns in the store with what the user saw. {LOOK}"
    last = counted.last_at
    if clock is None or last is None or not is_time(last):
        return _open(f"{_writes(group)}; when, or when the rows were written, is not told.", look)
    earliest, latest = clock - max(offsets, default=AHEAD), clock - min(offsets, default=-BEHIND)
    if last < earliest - TURN:
        return Judgement(
            Verdict.FAULT,
            Severity.HIGH,
            f"{_writes(group)}, and the session has no row from that time or later.",
            look,
        )
    if last < latest:
        return _open(f"{_writes(group)}; whether the last rows are from before or after is open.", look)
    if rebuilt:
        return _open(
            f"{_writes(group)}; the row of the session was then made anew by usage accounting.",
            f"Its earlier turns may have been stored under the row that is gone. {look}",
        )
    return Judgement(
        Verdict.LEFTOVER,
        Severity.INFO,
        f"{_writes(group)}, and later rows of the session were stored.",
        "Nothing is to be done unless a turn is missed.",
    )


def _open(summary: str, remedy: str) -> Judgement:
    return Judgement(Verdict.UNDECIDABLE, Severity.MEDIUM, summary, remedy)


def _hours(offsets: tuple[float, ...]) -> Value:
    told = [offset / 3600 for offset in offsets]
    return told[0] if len(told) == 1 else " or ".join(f"{hours:g}" for hours in told) or "unknown"


def row_was_missing(group: list[AppendFailure]) -> bool:
    """Whether a write failed because the session row was not there."""
    return any(MISSING_ROW in failure.error for failure in group)


def rows(counted: Census | None) -> int:
    """All rows of a session, whatever their state."""
    return counted.total if counted else 0


def _writes(group: list[AppendFailure]) -> str:
    number = len(group)
    return f"{number:,} write{'' if number == 1 else 's'} to the store failed"
