"""A session names a parent that is not in the store.

What it means
The conversation before this one, or the session that this one was delegated or branched from, cannot be
reached. Where it is a continuation, what was said before the compression is gone or orphaned. And the row
breaks a foreign key: from 0.18 on each update that touches the link fails.

How it happens
No release leaves it so: each, from 0.13 on, clears the link of the children when it deletes a session. A
program that does not enforce foreign keys does not; nor does a partial salvage of the sessions table.

How we know
parent_session_id holds an id that sessions does not have. Rows of the missing parent in messages are
counted: if there are any, its text survives (messages-without-session).

What to do
If the parent's messages are still there, rebuild the parent row first: then the link is right again.
Otherwise look for the parent in exports and snapshots, and only then detach the child.

When it is a false alarm
The parent lives in the store of another profile, and this store was audited alone. When its home is audited
with all its stores, parent-in-another-store tells of it instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from statemend.audit.company import Member
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


class Dangling(NamedTuple):
    """A link to nothing. ``orphaned`` counts the messages of the missing parent that are still here;
    ``elsewhere`` are other stores of the home that have the parent, where nothing of it is here."""

    session_id: str
    parent_id: str
    source: object
    title: object
    started_at: object
    orphaned: int
    elsewhere: tuple[Member, ...]


def dangling(context: Context) -> Iterator[Dangling]:
    """Every session whose parent has no row here, oldest first."""
    for session_id, parent_id, source, title, started_at in context.store.rows(DANGLING):
        orphaned = int(context.store.value(ROWS_OF_PARENT, (parent_id,)))
        elsewhere = () if orphaned else context.elsewhere(str(parent_id))
        yield Dangling(str(session_id), str(parent_id), source, title, started_at, orphaned, tuple(elsewhere))


def check(context: Context) -> Iterator[Finding]:
    for link in dangling(context):
        if not link.elsewhere:
            yield _finding(context, link)


def _finding(context: Context, link: Dangling) -> Finding:
    evidence: list[tuple[str, Value]] = [
        ("missing parent", link.parent_id),
        ("rows of the missing parent", link.orphaned),
        ("source", str(link.source)[:40]),
        ("started", moment(link.started_at)),
    ]
    if link.title is not None:
        evidence.insert(2, ("title", str(link.title)[:200]))
    return RULE.finding(
        context,
        session=link.session_id,
        key=link.parent_id,
        summary="The parent of this session is not in the store"
        + (
            f"; {link.orphaned:,} of its messages are."
            if link.orphaned
            else ", and neither are its messages."
        ),
        evidence=evidence,
        remedy="Rebuild the parent's row first: its messages are still there."
        if link.orphaned
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
