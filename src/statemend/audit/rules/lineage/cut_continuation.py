"""A session begins with a compaction summary, and the session it continues is not linked to it.

What it means
The first row of this session sums up an older conversation, but the session has no parent: what came before
cannot be reached from here. Resume and export start in the middle.

How it happens
Up to 0.19 a compression ended the old session before it made the new one. When making it failed, the agent
went on under the new id and stored it later without its parent. Deleting or pruning the older session leaves
the same: its children lose their parent link. So does an import (0.19 and newer) without the older session,
or before it. Up to 0.17 (and once more in 0.18) the gateway's automatic compression replaced all rows of a
session by summary and tail: then the session began long before its first row, the older text is gone from the
store, and there is nothing to link. Up to 0.18 a continuation of which the older session was deleted looks
the same where a long turn stored its first rows.

How we know
The row with the lowest id of a session without a parent is a compaction summary, by its flag or by the way
its text begins. An in-place compaction from 0.18 on keeps the older rows, with lower ids; where it came
within two seconds of these and another followed, only rows of the older session, or an export that names it,
tell. Branches and subagent runs are left out, and chains that were never linked are told by the rule
unlinked-chain. It is a fault when the store holds a session that a compression ended, that nothing continues,
and that fits: same source, no different user or routing key, and this one begins where that one ends, carries
rows of it, or has the next number of its title. Where rows are missing between the two, a segment may have
been deleted of which this is a branch that bears no mark (0.13 to 0.15, and forks by the API up to 0.20):
that, and all else, is undecidable, unless an export names the two. It is a leftover where the session is
older than its first row, or where an export names the parent that is not here.

What to do
Where a candidate fits, relink: set the parent of this session to it. Where the parent was deleted, an
export of it can be kept beside this session; the store needs nothing.

When it is a false alarm
Two conversations of one user that were compressed within the same minutes, of which one lost its
continuation and the other its parent by deletion. The carried rows in the evidence tell them apart: they
stand in both sessions.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit import unlinked, vanished
from statemend.audit.candidates import deleting, told
from statemend.audit.context import Context
from statemend.audit.facts import listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.handoff import REWRITTEN_AFTER, CutRoot, cut_roots, dead_ends
from statemend.audit.pairing import READS, Match, exported_links, pairings
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.audit.unlinked import never_linked


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that begins in the middle."""
    roots = list(cut_roots(context))
    if not roots:
        return
    links = exported_links(context)
    matches: dict[str, list[Match]] = {}
    for found in pairings(context.store, dead_ends(context), roots, links):
        matches.setdefault(found.child, []).append(found)
    elsewhere = never_linked(context, roots)
    parents: dict[str, dict[str, str]] = {}
    for (parent, child), path in links.items():
        parents.setdefault(child, {})[parent] = path
    for root in roots:
        fitting, named = matches.get(root.id, []), parents.get(root.id, {})
        if root.id not in elsewhere and (root.certain or fitting or named):
            yield _finding(context, root, fitting, named)


def _finding(context: Context, root: CutRoot, matches: list[Match], parents: dict[str, str]) -> Finding:
    late = root.summary_at - root.started_at >= REWRITTEN_AFTER
    doubted = [
        found.parent
        for found in matches
        if found.parent not in parents and vanished.one_may_have_stood_between(context, found.parent, root.id)
    ]
    if matches and len(doubted) == len(matches):
        verdict, severity = Verdict.UNDECIDABLE, Severity.MEDIUM
        summary = "It fits a session that is here, or is a branch of one that stood between and was deleted."
        fitting = ", ".join(doubted[:3])
        remedy = f"Compare it with {fitting}; if one fits, make that one its parent."
    elif matches:
        verdict, severity = Verdict.FAULT, Severity.HIGH
        summary = "A continuation lost the link to the session it continues; that session is still here."
        fitting = ", ".join(found.parent for found in matches[:3])
        remedy = f"Compare it with {fitting}; if one fits, make that one its parent."
    elif parents:
        verdict, severity = Verdict.LEFTOVER, Severity.LOW
        summary = "The session that this one continues is not here; an export names it."
        remedy = "Keep the export that names that session; the store needs nothing."
    elif late:
        verdict, severity = Verdict.LEFTOVER, Severity.LOW
        summary = "It began long before its first row, a summary: what that sums up was replaced, or deleted."
        remedy = (
            "The older text is not in the store; look for it in transcripts and backups of the time before."
        )
    else:
        verdict, severity = Verdict.UNDECIDABLE, Severity.LOW
        summary = "The session begins with a summary of one that is not here: deleted, or never linked."
        remedy = "If the older session was not deleted on purpose, look for it in backups and exports."
    return RULE.finding(
        context,
        session=root.id,
        verdict=verdict,
        severity=severity,
        message_ids=(root.summary_row,),
        summary=summary,
        evidence=(
            ("title", words(root.title)),
            ("source", words(root.source, 40)),
            ("started at", moment(root.started_at)),
            ("summary stored at", moment(root.summary_at)),
            ("candidates", len(matches)),
            ("candidate parents", listed(f"{m.parent}: {', '.join(m.reasons)}" for m in matches)),
            ("rows are missing between it and", listed(doubted) or None),
            ("rows carried over from the best candidate", max((m.carried for m in matches), default=0)),
            ("parents named by exports", listed(f"{key}: {path}" for key, path in parents.items())),
            (
                "what would decide",
                "a backup, an export or a log that names the session before it"
                if verdict is Verdict.UNDECIDABLE
                else None,
            ),
            *deleting(context.graph, root.id),
            *told(context, [match.parent for match in matches], parent=None),
        ),
        remedy=remedy,
        command=context.command("show", context.store_label, root.id),
    )


RULE = Rule(
    id="LIN009",
    slug="cut-continuation",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="relink",
    reads=(READS_SESSIONS, READS_MESSAGES, *unlinked.READS, *vanished.READS, *READS),
)
