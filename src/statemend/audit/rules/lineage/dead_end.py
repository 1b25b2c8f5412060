"""A compression ended this session, and nothing continues it.

What it means
A rotating compression ends the old session with reason 'compression' and goes on in a new one. Here the new
one is missing. The messages are all still there, but the conversation cannot go on where it stopped: 0.20
and newer refuse every append to a session closed by compression, and resume finds no newer segment and
opens the closed one. 0.13 to 0.19 accept the append and leave stray turns behind the end. The agent loop of
0.20 and newer reopens such a session before its next turn; other writers (gateway transcripts, imports,
delivery of background results) do not.

How it happens
Up to 0.19 the old session was ended before the new one was created. A crash, a title clash or a lock in
between left the first half. Where the agent lived on, it often created the new session later without its
parent: then the finding lists that session as a candidate, and cut-continuation reports it from the other
side. Deleting or pruning the newest segment alone leaves the same picture.

How we know
No child of the session qualifies as its continuation: markers are read as bound to the parent (a copied
marker that names another session does not disqualify), branches, delegates, resets and tool runs do not
count, and neither does an unmarked subagent run of 0.13 to 0.16. It is a fault when a session that begins
with a summary fits: it begins where this one ends, carries rows of it, or has the next number of its title;
but not where rows are missing between the two, for then it may be a branch without a mark of what was
deleted. It is one as well when every row id given out in the hour after the end still exists, so that no
continuation can have been stored and deleted, and when the session shows that it ran in this store. An import
(0.19 and newer) may bring any part of a conversation; it writes the rows of a session in one piece and leaves
out what only a running agent writes. So these are signs of life, each from before the end: tokens counted by
model (0.19 and newer; the upgrade to 0.19 counts those of older sessions), a lock of a compression that was
never given back (0.16 and newer), the agent's note of its last activity (0.20 and newer), rows of another
session between its own, a turn that a log of the home tells of; or no release from 0.19 on has opened the
store. Tokens, note and log count for nothing in the session of a chat where a home has profiles:
`repair-profiles` (0.21.4 and newer) takes such a session out of another profile's store, without what
followed, and brings its account along. Without any sign it is undecidable. So it is where the session lies
behind rows that are younger than its end, and where rows are missing from that hour: a deleted continuation
leaves exactly this picture. Where an export shows the continuation, that is not here any more or was never
brought in, and the finding is a leftover. Where a session in the store of another profile names this one as
its parent, or has none and begins at its end with a summary, it may be the continuation: that store is named,
and the finding is undecidable.

What to do
If a candidate is right, relink it: its parent is this session. If there is none and the conversation is to go
on, reopen this session (clear ended_at and end_reason). If its newest segment was deleted on purpose, or not
imported with it, leave it. If what continues it is in the store of another profile, decide first in which of
the two both belong; where that one names it as its parent, parent-in-another-store says how.

When it is a false alarm
A compression that is being carried out right now looks like this for a moment. While a lease or lock that has
not expired holds the conversation, the rule is silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from statemend.audit import candidates, lived, vanished
from statemend.audit.candidates import deleting, told
from statemend.audit.company import Company, Member
from statemend.audit.context import Context
from statemend.audit.eras import written_by
from statemend.audit.facts import is_time, listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.handoff import HANDOFF_WINDOW, OPENING, cut_roots, dead_ends, opening_summary
from statemend.audit.pairing import READS, Links, Match, exported_links, pairings
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.store.connection import Store
from statemend.store.lineage import Node

PRESENT = "SELECT 1 FROM sessions WHERE id = ?"
CHILDREN = "SELECT id FROM sessions WHERE parent_session_id = ? AND typeof(id) = 'text' ORDER BY id"
BEGUN_THEN = """
SELECT id, started_at
FROM sessions
WHERE parent_session_id IS NULL
  AND source = ?
  AND started_at BETWEEN ? AND ?
  AND typeof(id) = 'text'
ORDER BY id
"""


class _Away(NamedTuple):
    """A session in another store of the home that may continue the one that was ended."""

    id: str
    member: Member


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that ends in nothing."""
    ends = list(dead_ends(context))
    if not ends:
        return
    links = exported_links(context)
    fitting: dict[str, list[Match]] = {}
    for found in pairings(context.store, ends, list(cut_roots(context)), links):
        fitting.setdefault(found.parent, []).append(found)
    followed: dict[str, dict[str, str]] = {}
    for (parent, child), path in links.items():
        followed.setdefault(parent, {})[child] = path
    for node in ends:
        matches = fitting.get(node.id, [])
        deleted = {
            child: path
            for child, path in followed.get(node.id, {}).items()
            if context.store.one(PRESENT, (child,)) is None and not context.elsewhere(child)
        }
        away = list(_elsewhere(context, node, named=True))
        if not away and not matches:
            away = list(_elsewhere(context, node, named=False))
        verdict, severity = Verdict.FAULT, Severity.HIGH
        signs, instead = list[str](), None
        if away or (matches and all(_doubted(context, found, links) for found in matches)):
            verdict, severity = Verdict.UNDECIDABLE, Severity.MEDIUM
        elif not matches and deleted:
            verdict, severity = Verdict.LEFTOVER, Severity.LOW
        elif not matches:
            signs = list(lived.signs_of_life(context, node.id, node.started_at, node.ended_at))
            instead = _instead(context, node, signs)
            if instead is not None:
                verdict, severity = Verdict.UNDECIDABLE, Severity.MEDIUM
        counts = context.census.get(node.id)
        yield RULE.finding(
            context,
            session=node.id,
            verdict=verdict,
            severity=severity,
            summary=_summary(verdict, len(matches), away, instead),
            evidence=(
                ("title", words(node.title)),
                ("ended at", moment(node.ended_at)),
                ("last message at", moment(counts.last_at if counts else None)),
                ("live rows", counts.live if counts else 0),
                ("children that do not continue it", len(context.graph.children(node.id))),
                (
                    "sessions in other stores that may continue it",
                    listed(f"{each.id}: {each.member.path}" for each in away) or None,
                ),
                ("candidates", len(matches)),
                ("candidate sessions", listed(f"{m.child}: {', '.join(m.reasons)}" for m in matches)),
                (
                    "continuations known from exports",
                    listed(f"{key}: {path}" for key, path in deleted.items()),
                ),
                ("signs that it ran in this store", signs or (instead and "none")),
                ("releases that refuse an append", "0.20 and newer; older ones write behind the end"),
                written_by(context.store),
                ("what would decide", _deciding(away) if verdict is Verdict.UNDECIDABLE else None),
                *deleting(context.graph, node.id),
                *told(context, [found.child for found in matches], parent=node.id),
            ),
            remedy=_remedy(verdict, [found.child for found in matches], away),
            command=context.command("show", context.store_label, node.id),
        )
    if context.company is not None:
        context.company.require_all()


def _elsewhere(context: Context, node: Node, *, named: bool) -> Iterator[_Away]:
    """The sessions in the other stores of the home that name this one as their parent, or else those without
    a parent that begin at its end with a summary: a move to another store takes the link away."""

    def children(store: Store) -> list[str]:
        return [child for (child,) in store.rows(CHILDREN, (node.id,))]

    def begun_then(store: Store) -> list[str]:
        if not is_time(node.ended_at):
            return []
        window = node.ended_at - HANDOFF_WINDOW, node.ended_at + HANDOFF_WINDOW
        begun = store.rows(BEGUN_THEN, (node.source, *window))
        return [session_id for session_id, at in begun if opening_summary(store, session_id, at)]

    company = context.company or Company()
    for member in company:
        for session_id in company.ask(member, children if named else begun_then, otherwise=list[str]()):
            yield _Away(session_id, member)


def _doubted(context: Context, found: Match, links: Links) -> bool:
    """Whether what fits may be a branch, without a mark, of a continuation that was deleted."""
    named = (found.parent, found.child) in links
    return not named and vanished.one_may_have_stood_between(context, found.parent, found.child)


def _deciding(away: list[_Away]) -> str:
    if away:
        return "how those sessions begin: a compression begins one with its summary"
    return "an export, a backup or a log that names what followed it, or tells of an import"


def _instead(context: Context, node: Node, signs: list[str]) -> str | None:
    """What else than a handoff that broke off may have left this picture; ``None`` where nothing may."""
    if vanished.brought_in_later(context, node):
        return "this session was brought in without it"
    if vanished.rows_vanished(context, node):
        return "it was deleted"
    return None if signs else "this session was brought in without it"


def _summary(verdict: Verdict, candidates: int, away: list[_Away], instead: str | None) -> str:
    opening = "Ended by compression, and no session continues it"
    if away:
        number = f"{len(away):,} session{'s' if len(away) > 1 else ''}"
        return f"{opening} in this store; {number} in another store may."
    if candidates:
        return f"{opening}; {candidates} cut-off session{'s fit' if candidates > 1 else ' fits'}."
    if verdict is Verdict.LEFTOVER:
        return f"{opening}: an export shows the continuation, which is not here."
    if instead is not None:
        return f"{opening}: it was never stored, or {instead}."
    return f"{opening}: none was ever stored."


def _remedy(verdict: Verdict, candidates: list[str], away: list[_Away]) -> str:
    if away:
        named = " and ".join(sorted({words(each.member.profile, 64) or "" for each in away})[:3])
        return f"Do not reopen it: look first into the store of profile {named}, and decide where it belongs."
    if candidates:
        return (
            f"Compare {', '.join(candidates[:3])} with it; if one is its continuation, relink that one to it."
        )
    if verdict is Verdict.LEFTOVER:
        return "Nothing, if the continuation was deleted or left out on purpose; else rebuild it from there."
    return (
        "To go on with it, clear ended_at and end_reason. If what followed was deleted or left out, leave it."
    )


RULE = Rule(
    id="LIN001",
    slug="dead-end",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="dead-end",
    reads=(
        *(READS_SESSIONS, READS_MESSAGES, CHILDREN, BEGUN_THEN, OPENING),
        *(*vanished.READS, *lived.READS, *candidates.READS, *READS),
    ),
)
