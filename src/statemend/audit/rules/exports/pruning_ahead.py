"""Pruning soon takes sessions that no export or transcript holds.

What it means
Hermes deletes ended sessions of this home by itself when they are old enough. For these that is so now, or
within thirty days. They then go for good: no export or transcript beside the store holds them whole.

How it happens
`sessions.auto_prune` deletes ended sessions older than `sessions.retention_days` (90 unless set otherwise),
archived ones too, and up to 0.20.1 pinned ones. Up to 0.19 the age counts from the start of a session, from
0.20 on from its last use. 0.22.2 keeps the older parts of a conversation while a newer part stays. It is off
by default up to 0.21.0, and on from 0.21.3 on, so that an upgrade alone turns it on.

How we know
As for EXP010: config.yaml says yes to `auto_prune`, or the store records that pruning ran, or the store has
the columns of 0.21.3 or later and nothing turns it off. The sessions have messages, have ended and are not
pinned, and no file that was looked at shows each of their messages. Other stores beside it are not asked.
Where config.yaml is broken, the rule could not run.

What to do
Nothing, if these conversations are not wanted any more. Else export them, pin them, or set
`sessions.auto_prune: false`.

When it is a false alarm
It is none: deleting old sessions is what pruning is for.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.facts import listed, moment
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.pruning import LAST_RUN, PINNED, PRUNABLE, prunable, pruning, schedule
from statemend.audit.rule import READS_SESSIONS, Family, Level, Rule

#: So far ahead (seconds) is told one by one: what goes later is counted.
SOON = 30 * 86400.0


def check(context: Context) -> Iterator[Finding]:
    """One finding for the home: how many sessions, which, and from when."""
    rows = prunable(context)
    plan = pruning(context) if any(row.has_messages for row in rows) else None
    if plan is None:
        return
    dates = schedule(context, plan, rows)
    covered = {session.session_id: session for session in context.coverage}
    ahead = sorted(
        (dates[row.id], row.id)
        for row in rows
        if row.has_messages and row.id in dates and (row.id not in covered or covered[row.id].unheld)
    )
    due = [(at, id_) for at, id_ in ahead if at <= context.now + SOON]
    if not due:
        return
    now = sum(takes_from <= context.now for takes_from, _ in due)
    sessions = f"{len(due):,} ended session{'s' if len(due) > 1 else ''}"
    yield RULE.finding(
        context,
        summary=f"Within 30 days pruning takes {sessions} that no export or transcript holds whole, "
        + (f"{now:,} of them at its next run." if now else f"the first from {moment(due[0][0])} on."),
        evidence=(
            ("sessions", len(due)),
            ("of these old enough now", now),
            ("sessions that go later", len(ahead) - len(due)),
            ("which, and from when", listed(f"{id_} from {moment(at)}" for at, id_ in due)),
            ("days of retention", plan.days),
            ("how pruning is known", plan.told),
            ("other stores here, not asked", len(context.inventory.stores) or None),
        ),
        remedy="Export what is to be kept, pin it, or set sessions.auto_prune to false.",
    )


RULE = Rule(
    id="EXP012",
    slug="pruning-ahead",
    family=Family.EXPORTS,
    level=Level.EXPORTS,
    severity=Severity.INFO,
    verdict=Verdict.LEFTOVER,
    doc=__doc__ or "",
    check=check,
    reads=(PRUNABLE, PINNED, LAST_RUN, READS_SESSIONS),
)
