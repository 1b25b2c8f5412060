"""A session went on after its newest export.

What it means
The session has messages that no artifact holds because they came later. That is what happens to every
export of a conversation that goes on; it is said so that nobody takes the export for the whole.

How it happens
Somebody exported the session and went on talking, with any release from 0.13 on.

How we know
The missing messages are newer than the export says it is, or newer than the newest message that it holds.
Only messages that no other artifact holds are counted. The finding names the export that lacks the fewest.

What to do
Nothing, unless the session is to be deleted: then export it again first.

When it is a false alarm
It claims no fault, so there is none to be wrong about.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.evidence.coverage import Cause


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that grew."""
    for session in context.coverage:
        unheld = frozenset(session.unheld)
        best: tuple[int, str] | None = None
        later: set[int] = set()
        for artifact in session.artifacts:
            missing = {each.message_id for each in artifact.missing if each.cause is Cause.LATER} & unheld
            later |= missing
            if missing:
                best = min(best or (len(missing), artifact.artifact), (len(missing), artifact.artifact))
        if best is None:
            continue
        ids = tuple(message_id for message_id in session.unheld if message_id in later)
        yield RULE.finding(
            context,
            session=session.session_id,
            artifact=best[1],
            message_ids=ids,
            summary=f"{len(ids):,} message{'s' if len(ids) > 1 else ''} came after the newest export.",
            evidence=(
                ("messages in no artifact", len(ids)),
                ("messages of the session", session.display),
                ("artifacts of this session", len(session.artifacts)),
            ),
            remedy="Export the session again before it is deleted.",
        )


RULE = Rule(
    id="EXP004",
    slug="appended-since-export",
    family=Family.EXPORTS,
    level=Level.EXPORTS,
    severity=Severity.INFO,
    verdict=Verdict.LEFTOVER,
    doc=__doc__ or "",
    check=check,
    reads=(READS_SESSIONS, READS_MESSAGES),
)
