"""The markers of a session say two things about its parent, and releases do not treat both alike.

What it means
A session is a branch of its parent, a subagent's run, a new conversation after a reset, or its continuation;
it cannot be two of these. The markers in model_config (_branched_from, _delegate_from, _reset_from), or a
marker and the way the session begins, say that it is. Releases then go by the marker that they happen to ask
for: resume and export leave out what goes on, or deleting the parent takes a conversation with it that was
to stay.

How it happens
0.20 and newer, when they reopen a session that ended by a reset, mark its children with the same routing key
as reset, continuations included (0.20 also branches and subagent runs). Tools outside Hermes, merges of
stores and rescued rows bring other pairs.

How we know
A marker counts when it names the parent. One that names another session was copied by a compression when the
parent bears the same or when it names a session further up; such markers are lawful and say nothing here. A
session that began at the end of its compressed parent, with a summary that the parent does not hold, is what
a continuation looks like; that counts when nothing else continues the parent. For each relation that is
claimed, resume, export and delete of 0.18 to 0.22 are computed with and without the other markers; the rule
speaks only if some release goes wrong because of them. It is a fault when the evidence makes one claim true:
rows copied from the parent (a branch), the source (a subagent), the end of the parent (branched, reset), a
new summary (a continuation), a routing key (no subagent's run). Otherwise it is undecidable. In a store that
only releases before 0.16 have opened, which heed no marker, it is a risk.

What to do
Remove the marker that is false. Until then do not delete the parent, and export this session by its own id.

When it is a false alarm
A session that a tool merged or moved under another parent on purpose. A continuation that was marked as a
branch on purpose, beside another that was deleted since, is told from a false mark only by the gap in the
row ids that the deletion left.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit import vanished
from statemend.audit.claims import MARKING, READS, RIGHT, Claim, Contradiction, contradiction, treatment
from statemend.audit.context import Context
from statemend.audit.facts import listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.store.lineage import Relation
from statemend.store.schema import Era

_SAID = {
    Relation.CONTINUATION: "its continuation",
    Relation.BRANCH: "a branch of it",
    Relation.DELEGATE: "a subagent's run",
    Relation.RESET: "a new conversation after a reset",
}


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session of which more than one thing is said, and it matters."""
    nodes = context.graph.nodes
    for node in sorted(nodes.values(), key=lambda node: node.id):
        if not node.parent_id or not (node.marked or node.reset_from is not None):
            continue
        found = contradiction(context, node)
        if found is not None:
            yield _finding(context, found)


def _finding(context: Context, found: Contradiction) -> Finding:
    verdict, severity = Verdict.UNDECIDABLE, Severity.MEDIUM
    if found.true is not None:
        verdict, severity = Verdict.FAULT, Severity.HIGH
        if context.store.schema.era < Era.V16:
            verdict = Verdict.RISK
    parent, child = found.parent, found.child
    return RULE.finding(
        context,
        session=child.id,
        verdict=verdict,
        severity=severity,
        summary=_summary(found),
        evidence=(
            ("title", words(child.title)),
            ("source", words(child.source, 40)),
            ("parent", parent.id),
            ("parent ended by", words(parent.end_reason, 40)),
            ("parent ended at", moment(parent.ended_at)),
            ("started at", moment(child.started_at)),
            *((f"says {_SAID[claim.relation]}", claim.by) for claim in found.claims),
            *_weights(found.claims),
            (
                "what would decide",
                "how the session begins, or what wrote the markers" if found.true is None else None,
            ),
            *(
                (f"{releases} now", _told(treatment(context.store, parent, child, era)))
                for era, releases in MARKING.items()
            ),
            *((f"right for {_SAID[claim.relation]}", _told(RIGHT[claim.relation])) for claim in found.claims),
        ),
        remedy=_remedy(found),
        command=context.command("show", context.store_label, child.id),
    )


def _weights(claims: tuple[Claim, ...]) -> Iterator[tuple[str, list[str]]]:
    for claim in claims:
        if claim.pro:
            yield f"for {_SAID[claim.relation]}", listed(claim.pro)
        if claim.contra:
            yield f"against {_SAID[claim.relation]}", listed(claim.contra)


def _told(now: tuple[bool, bool, bool]) -> str:
    resumed, exported, deleted = now
    return (
        f"resume {'goes on here' if resumed else 'leaves it out'}, "
        f"export {'goes on here' if exported else 'leaves it out'}, "
        f"deleting the parent {'takes it along' if deleted else 'keeps it'}"
    )


def _summary(found: Contradiction) -> str:
    both = " and ".join(_SAID[claim.relation] for claim in found.claims)
    told = f"Said to be {both}"
    if found.true is None:
        return f"{told}; the evidence does not tell which."
    return f"{told}; the evidence says {_SAID[found.true]}."


def _remedy(found: Contradiction) -> str:
    if found.true is None:
        return "Read how the session begins, decide what it is, and remove the other markers."
    return f"Remove from its model_config what does not say that it is {_SAID[found.true]}."


RULE = Rule(
    id="LIN005",
    slug="contradictory-markers",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="markers",
    reads=(READS_SESSIONS, READS_MESSAGES, *vanished.READS, *READS),
)
