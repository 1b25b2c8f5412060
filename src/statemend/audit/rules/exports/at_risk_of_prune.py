"""Archived messages are in no artifact, and Hermes prunes this home by itself.

What it means
The session was compacted in place; its older turns are in the store alone. It has ended, and automatic
pruning is on: when the session is old enough, the next start of Hermes deletes all its rows.

How it happens
`sessions.auto_prune` deletes ended sessions older than `sessions.retention_days` (90 unless set otherwise).
Up to 0.19 the age counts from the start of a session, even if it was used yesterday; from 0.20 on from its
last use. It is off by default up to 0.20 and on in 0.22.2.

How we know
config.yaml of the home says `auto_prune: true`; or it does not say false and the store records that pruning
ran (state_meta.last_auto_prune). The default of 0.22.2 alone, without any trace that it ran, is no finding.
The session has ended and is not pinned, and some of its messages are held by archived rows only and by no
artifact. Another store that lies here is asked too; one that Hermes deletes in its turn (state-snapshots/,
backups before an update) is named, and preserves nothing.

What to do
Export the session with its archived history, pin it, or set `sessions.auto_prune: false`.

When it is a false alarm
When the older turns are not wanted any more. 0.22.2 also keeps the older segments of a conversation while a
newer segment stays, so the date given may come later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from statemend.audit.context import Context
from statemend.audit.elsewhere import stores_with
from statemend.audit.facts import is_time, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_SESSIONS, Family, Level, Rule
from statemend.evidence.coverage import SessionCoverage, assess_unnamed
from statemend.store.history import RowState, display
from statemend.store.schema import Era

DEFAULT_RETENTION_DAYS = 90.0
_DAY = 86400.0

LAST_RUN = "SELECT value FROM state_meta WHERE key = 'last_auto_prune'"
COMPACTED = """
SELECT s.id, s.title, s.started_at, s.ended_at, s.last_activity_at,
       (SELECT MAX(m.timestamp) FROM messages AS m WHERE m.session_id = s.id)
FROM sessions AS s
WHERE s.ended_at IS NOT NULL
  AND typeof(s.id) = 'text'
  AND COALESCE(s.pinned, 0) = 0
  AND EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id AND m.active = 0 AND m.compacted = 1)
ORDER BY s.id
"""


class Compacted(NamedTuple):
    """A session that may be pruned: a row of ``COMPACTED``."""

    id: str
    title: str | None
    started_at: float
    ended_at: float
    last_activity_at: float | None
    last_message_at: float | None


def pruning(context: Context) -> str | None:
    """How it is known that Hermes prunes this home, or ``None`` when it does not, or nothing says so."""
    settings = context.inventory.settings
    if settings.auto_prune:
        return f"{settings.source} says auto_prune: true"
    last_run = context.store.value(LAST_RUN) if settings.auto_prune is None else None
    if last_run is None:
        return None
    try:
        return f"pruning ran last at {moment(float(last_run))}, and nothing turns it off"
    except ValueError:
        return "pruning ran before, and nothing turns it off"


def age_from(row: Compacted, era: Era) -> float | None:
    """The time from which the age of a session counts (epoch seconds)."""
    if era < Era.V20:
        return row.started_at if is_time(row.started_at) else None
    used = [at for at in (row.last_activity_at, row.last_message_at) if at is not None and is_time(at)]
    return max(used) if used else row.started_at if is_time(row.started_at) else None


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session whose archived messages the next pruning would take."""
    evidence = pruning(context)
    if evidence is None:
        return
    settings = context.inventory.settings
    days = DEFAULT_RETENTION_DAYS if settings.retention_days is None else settings.retention_days
    rows = [Compacted(*values) for values in context.store.rows(COMPACTED)]
    covered = _covered(context, rows)
    for row in rows:
        session = covered.get(row.id)
        counted_from = age_from(row, context.store.schema.era)
        if counted_from is None:
            continue
        archived = tuple(
            logical.shown.id
            for logical in display(context.store, row.id)
            if logical.state is RowState.ARCHIVED and (session is None or logical.shown.id in session.unheld)
        )
        if archived:
            yield _finding(context, row, session, archived, evidence, days, counted_from + days * _DAY)


def _covered(context: Context, rows: Iterable[Compacted]) -> dict[str, SessionCoverage]:
    """What artifacts and other stores hold of the sessions, where there are any."""
    covered = {session.session_id: session for session in context.coverage}
    if context.inventory.stores:
        unnamed = [row.id for row in rows if row.id not in covered]
        found = assess_unnamed(context.store, context.inventory, unnamed)
        covered |= {session.session_id: session for session in found}
    return covered


def _finding(
    context: Context,
    row: Compacted,
    session: SessionCoverage | None,
    archived: tuple[int, ...],
    evidence: str,
    days: float,
    eligible_at: float,
) -> Finding:
    due = eligible_at <= context.now
    messages = f"{len(archived):,} archived message{'s are' if len(archived) > 1 else ' is'}"
    return RULE.finding(
        context,
        session=row.id,
        message_ids=archived,
        summary=f"{messages} in no artifact, and pruning "
        + (
            "may take the session at any time."
            if due
            else f"takes the session from {moment(eligible_at)} on."
        ),
        evidence=(
            ("title", words(row.title)),
            ("archived messages in no artifact", len(archived)),
            ("ended at", moment(row.ended_at)),
            ("may be pruned from", moment(eligible_at)),
            ("days of retention", days),
            ("how pruning is known", evidence),
            *stores_with(context, session, archived),
        ),
        remedy="Export the session with its archived history, pin it, or set sessions.auto_prune to false.",
        command=context.command("export", context.store_label, row.id, output="exports"),
    )


RULE = Rule(
    id="EXP010",
    slug="at-risk-of-prune",
    family=Family.EXPORTS,
    level=Level.EXPORTS,
    severity=Severity.HIGH,
    verdict=Verdict.RISK,
    doc=__doc__ or "",
    check=check,
    reads=(COMPACTED, LAST_RUN, READS_SESSIONS),
)
