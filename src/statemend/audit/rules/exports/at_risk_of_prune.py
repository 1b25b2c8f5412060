"""Archived messages are in no artifact, and Hermes prunes this home by itself.

What it means
The session was compacted in place; its older turns are in the store alone. It has ended, and automatic
pruning is on: when the session is old enough, the next start of Hermes deletes all its rows.

How it happens
`sessions.auto_prune` deletes ended sessions older than `sessions.retention_days` (90 unless set otherwise),
archived ones too, and up to 0.20.1 pinned ones. Up to 0.19 the age counts from the start of a session, even
if it was used yesterday; from 0.20 on from its last use. 0.22.2 keeps the older parts of a conversation while
a newer part stays. It is off by default up to 0.21.0, and on from 0.21.3 on.

How we know
config.yaml of the home says yes to `auto_prune`, or does not say no and the store records that pruning ran
(state_meta.last_auto_prune). Any value that is not empty is a yes to Hermes, even the quoted text "off"; a
retention that is no number makes pruning fail. The default of 0.21.3 and later alone, without any trace that
it ran, is no risk: EXP012 tells what it takes. The session has ended and is not pinned where that helps, no
later part of its conversation keeps it, and some of its messages are held by archived rows only and by no
artifact. Another store that lies here is asked too; one
that Hermes deletes in its turn (state-snapshots/, backups before an update) is named, and preserves nothing.
Where config.yaml is broken, the rule could not run.

What to do
Export the session with its archived history, pin it, or set `sessions.auto_prune: false`.

When it is a false alarm
When the older turns are not wanted any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from statemend.audit.context import Context
from statemend.audit.elsewhere import stores_with
from statemend.audit.facts import moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.pruning import LAST_RUN, PINNED, PRUNABLE, Prunable, Pruning, prunable, pruning, schedule
from statemend.audit.rule import READS_SESSIONS, Family, Level, Rule
from statemend.evidence.coverage import SessionCoverage, assess_unnamed
from statemend.store.history import RowState, display


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session whose archived messages the next pruning would take."""
    rows = prunable(context)
    plan = pruning(context) if any(row.has_archived for row in rows) else None
    if plan is None or not plan.certain:
        return
    dates = schedule(context, plan, rows)
    taken = [row for row in rows if row.has_archived and row.id in dates]
    covered = _covered(context, taken)
    for row in taken:
        yield from _at_risk(context, row, covered.get(row.id), plan, dates[row.id])


def _covered(context: Context, rows: Iterable[Prunable]) -> dict[str, SessionCoverage]:
    """What artifacts and other stores hold of the sessions, where there are any."""
    covered = {session.session_id: session for session in context.coverage}
    if context.inventory.stores:
        unnamed = [row.id for row in rows if row.id not in covered]
        found = assess_unnamed(context.store, context.inventory, unnamed)
        covered |= {session.session_id: session for session in found}
    return covered


def _at_risk(
    context: Context, row: Prunable, session: SessionCoverage | None, plan: Pruning, takes_from: float
) -> Iterator[Finding]:
    archived = tuple(
        logical.shown.id
        for logical in display(context.store, row.id)
        if logical.state is RowState.ARCHIVED and (session is None or logical.shown.id in session.unheld)
    )
    if not archived:
        return
    messages = f"{len(archived):,} archived message{'s are' if len(archived) > 1 else ' is'}"
    yield RULE.finding(
        context,
        session=row.id,
        message_ids=archived,
        summary=f"{messages} in no artifact, and pruning "
        + (
            "may take the session at any time."
            if takes_from <= context.now
            else f"takes the session from {moment(takes_from)} on."
        ),
        evidence=(
            ("title", words(row.title)),
            ("archived messages in no artifact", len(archived)),
            ("ended at", moment(row.ended_at)),
            ("may be pruned from", moment(takes_from)),
            ("days of retention", plan.days),
            ("how pruning is known", plan.told),
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
    reads=(PRUNABLE, PINNED, LAST_RUN, READS_SESSIONS),
)
