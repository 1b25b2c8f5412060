"""A session names a parent that is not in the store.

What it means
The conversation before this one, or the session that this one was delegated or branched from, cannot be
reached. Where it is a continuation, what was said before the compression is gone or orphaned. And the row
breaks a foreign key: from 0.18 on each update that touches the link fails.

How it happens
Hermes clears the link of each child when it deletes a session. A program that does not enforce foreign
keys does not; nor does a partial salvage of the sessions table.

How we know
parent_session_id holds an id that sessions does not have. Rows of the missing parent in messages are
counted: if there are any, its text survives (messages-without-session).

What to do
If the parent's messages are still there, rebuild the parent row first: then the link is right again.
Otherwise look for the parent in exports and snapshots, and only then detach the child.

When it is a false alarm
The parent lives in the store of another profile. Hermes does not link across stores, but a session moved
by hand can look like this.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.facts import moment
from statemend.audit.finding import Finding, Severity, Value, Verdict
from statemend.audit.rule import Family, Level, Rule

DANGLING = """
    SELECT s.id, s.parent_session_id, s.source, s.title, s.started_at
    FROM sessions AS s
    WHERE s.parent_session_id IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = s.parent_session_id)
    ORDER BY s.started_at, s.id
"""
ROWS_OF_PARENT = "SELECT COUNT(*) FROM messages WHERE session_id = ?"


def check(context: Context) -> Iterator[Finding]:
    store = context.store
    for session_id, parent_id, source, title, started_at in store.rows(DANGLING):
        orphaned = int(store.value(ROWS_OF_PARENT, (parent_id,)))
        evidence: list[tuple[str, Value]] = [
            ("missing parent", str(parent_id)),
            ("rows of the missing parent", orphaned),
            ("source", str(source)[:40]),
            ("started", moment(started_at)),
        ]
        if title is not None:
            evidence.insert(2, ("title", str(title)[:200]))
        yield RULE.finding(
            context,
            session=str(session_id),
            key=str(parent_id),
            summary="The parent of this session is not in the store"
            + (f"; {orphaned:,} of its messages are." if orphaned else ", and neither are its messages."),
            evidence=evidence,
            remedy="Rebuild the parent's row first: its messages are still there."
            if orphaned
            else "Look for the parent in exports and snapshots. If it is gone for good, detach this session.",
        )


RULE = Rule(
    id="ORP002",
    slug="missing-parent",
    family=Family.ORPHANS,
    level=Level.REFERENCES,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__,
    reads=(DANGLING, ROWS_OF_PARENT),
    check=check,
    recipe="parents",
)
