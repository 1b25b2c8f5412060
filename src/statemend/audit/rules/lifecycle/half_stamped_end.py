"""A session has an end without a reason, or a reason without an end.

What it means
Hermes writes both columns together, or clears both. Each half alone misleads another part of it. With an
end and no reason the session counts as over (it can be pruned), and no later end can name the reason. With
a reason and no end it counts as open (no prune ever takes it), the next end overwrites the reason, and if
that was 'compression', the conversation then no longer leads to its continuation.

How it happens
A repair by hand that cleared one column, a salvage that lost or mistook a cell, another program. 0.19 and
newer import an ended_at and an end_reason as a file says, so a file with half an end brings it along.

How we know
Exactly one of ended_at and end_reason is NULL. No release writes that by itself: every statement that sets or
clears one sets or clears the other.

What to do
Complete the end (its time is that of the last message, or its reason is plain from what came after), or
clear both if the conversation goes on.

When it is a false alarm
A tool that keeps such sessions on purpose. To Hermes they are what is said above all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.facts import moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule

HALVES = """
    SELECT id, source, title, started_at, ended_at, end_reason
    FROM sessions
    WHERE (ended_at IS NULL) <> (end_reason IS NULL)
      AND typeof(id) = 'text'
    ORDER BY id
"""
#: The reasons by which a parent's children are told apart: losing one changes where resume goes.
LEADING = frozenset({"compression", "branched"})


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that is half ended."""
    for session_id, source, title, started_at, ended_at, reason in context.store.rows(HALVES):
        rows = context.census.get(session_id)
        yield RULE.finding(
            context,
            session=session_id,
            severity=Severity.MEDIUM if reason in LEADING else Severity.LOW,
            summary="It ended, and no reason says why."
            if reason is None
            else f"It has a reason for its end ({words(reason, 40)}), and no end.",
            evidence=(
                ("title", words(title)),
                ("source", words(source, 40)),
                ("started at", moment(started_at)),
                ("ended at", None if ended_at is None else moment(ended_at)),
                ("ended by", words(reason, 40)),
                ("last message at", moment(rows.last_at if rows else None)),
                ("live rows", rows.live if rows else 0),
            ),
            remedy="Give it a reason, or clear its end if it goes on."
            if reason is None
            else "Give it an end, the time of its last message, or clear the reason if it goes on.",
        )


RULE = Rule(
    id="LIF001",
    slug="half-stamped-end",
    family=Family.LIFECYCLE,
    level=Level.HOUSEKEEPING,
    severity=Severity.LOW,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="half-end",
    reads=(HALVES, READS_MESSAGES),
    columns=("sessions.ended_at", "sessions.end_reason"),
)
