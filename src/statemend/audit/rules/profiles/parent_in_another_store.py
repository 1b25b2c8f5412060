"""A session names a parent that is in the store of another profile.

What it means
What came before is not lost, but this store does not lead there: no release follows a link into another
store. The conversation seems to begin in its middle, and the link breaks a foreign key, as one to nothing
does.

How it happens
A program that worked for one profile went on in another's store (#102526, ended by #108074): a compression, a
branch or a subagent then begins there. Or a part of a line was moved or copied to another store, and the rest
was not.

How we know
parent_session_id holds an id that this store has neither as a session nor in a message. The other stores of
the home are asked for it, and those that have it are named. Of a parent that no store has, missing-parent
tells.

What to do
Do not detach the session: its beginning is there. Decide which of the two stores the conversation belongs to.
`hermes sessions repair-profiles` of 0.22 moves sessions whose keys decide it; the others are moved by
exporting the line from one store and importing it into the other.

When it is a false alarm
A store that was copied in part, on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.company import Member
from statemend.audit.context import Context
from statemend.audit.facts import listed, moment, words
from statemend.audit.finding import Finding, Severity, Value, Verdict
from statemend.audit.known import KNOWN
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.audit.rules.orphans.missing_parent import DANGLING, Dangling, dangling

ROW = "SELECT title, source, session_key, profile_name, ended_at, end_reason FROM sessions WHERE id = ?"
ROWS = "SELECT COUNT(*) FROM messages WHERE session_id = ?"


def check(context: Context) -> Iterator[Finding]:
    lost = False
    for link in dangling(context):
        if link.elsewhere:
            yield _finding(context, link, link.elsewhere)
        lost |= not link.elsewhere and not link.orphaned
    if lost and context.company is not None:
        context.company.require_all()


def _finding(context: Context, link: Dangling, members: tuple[Member, ...]) -> Finding:
    first = members[0]
    named = " and ".join(words(member.profile, 64) or "" for member in members[:3])
    return RULE.finding(
        context,
        session=link.session_id,
        key=link.parent_id,
        summary=f"The parent of this session is in the store of profile {named}, not in this one.",
        evidence=(
            ("parent", link.parent_id),
            ("stores that have it", listed(member.path for member in members)),
            *_described(first, link.parent_id),
            ("title", words(link.title)),
            ("source", words(link.source, 40)),
            ("started", moment(link.started_at)),
        ),
        remedy="Do not detach it: what came before is there. Decide first in which store it belongs.",
        command=context.command("show", first.path, link.parent_id),
    )


def _described(member: Member, parent_id: str) -> Iterator[tuple[str, Value]]:
    row = member.store.one(ROW, (parent_id,))
    yield "rows of the parent there", member.store.value(ROWS, (parent_id,))
    if row is None:
        yield "session row of the parent there", False
        return
    title, source, key, label, ended_at, reason = row
    yield "title of the parent", words(title)
    yield "source of the parent", words(source, 40)
    yield "key of the parent", words(key)
    yield "label of the parent", words(label, 64)
    yield "end reason of the parent", words(reason, 60)
    yield "parent ended", None if ended_at is None else moment(ended_at)


RULE = Rule(
    id="PRO004",
    slug="parent-in-another-store",
    family=Family.PROFILES,
    level=Level.REFERENCES,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    reads=(DANGLING, ROW, ROWS, KNOWN, READS_MESSAGES),
    check=check,
    needs_company=True,
)
