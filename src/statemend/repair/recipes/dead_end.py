"""Reopens a session that a compression ended and that nothing continues.

Clearing the end stamp and its reason is what Hermes from 0.20 on does itself before the next turn of such a
session. Every row stays, and the conversation can go on where it stopped. Whether it should is the operator's
choice: a continuation that was deleted on purpose, or not imported with it, leaves the same picture. A live
lease or lock refuses the change when it is carried out.

Where a cut-off session fits as the continuation, linking that one is the repair, and this recipe leaves the
finding to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from statemend.audit.facts import moment
from statemend.audit.finding import Finding, Verdict
from statemend.repair.foresight import family_reopened, new_faults, told_faults
from statemend.repair.handoffs import handoffs
from statemend.repair.marks import update_session
from statemend.repair.plan import Option, Source, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave
from statemend.store.holders import leases


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """To reopen or to leave it, or why it is no question."""
    session = finding.subject.session or ""
    fitting = handoffs(context).of_dead_end(session)
    if fitting:
        named = ", ".join(dict.fromkeys(_cut_finding(context, pair.root.id) for pair in fitting))
        yield leave(finding, f"served by the relink of {named}")
        return
    if finding.verdict is Verdict.LEFTOVER:
        yield leave(finding, f"lawful as it is: {finding.summary}")
        return
    if clashes := new_faults(context, *family_reopened(context, session)):
        told = told_faults(clashes)
        yield leave(finding, f"reopened, it would make another fault: {told}; settle its family first")
        return
    cleared = {"ended_at": None, "end_reason": None}
    operation = update_session(context, session, cleared)
    step = RECIPE.step(
        finding,
        StepClass.CHOICE,
        title=f"Reopen {session}",
        why="It was ended by compression, and nothing continues it; reopened, the conversation can go on.",
        operations=(operation,),
        sessions=(session,),
        sources=tuple(
            Source(column=column, origin="cleared, as Hermes 0.20 and newer do when nothing continues it")
            for column in cleared
        ),
    )
    yield RECIPE.choice(
        finding,
        f"Is the conversation of {session} to go on where it stopped?",
        (
            Option(
                id="reopen",
                title="Reopen it: clear the end stamp and its reason",
                evidence=tuple(_evidence(context, finding, session)),
                steps=(step,),
            ),
            Option(
                id="leave",
                title="Leave it closed",
                evidence=(
                    "right when its continuation was deleted, or not imported; every row stays readable",
                ),
            ),
        ),
    )


def _cut_finding(context: RecipeContext, root: str) -> str:
    found: Mapping[str | None, str] = context.once(
        "findings of cut roots", lambda: {one.subject.session: one.id for one in context.of_rule("LIN009")}
    )
    return f"{root} ({found[root]})" if root in found else root


def _evidence(context: RecipeContext, finding: Finding, session: str) -> Iterator[str]:
    yield finding.summary
    facts = {fact.label: fact.value for fact in finding.evidence}
    for label in ("title", "ended at", "last message at", "live rows"):
        if label in facts:
            yield f"{label}: {facts[label] if facts[label] is not None else 'none'}"
    children = len(context.graph.children(session))
    if children:
        yield f"{children} other session(s) name it as parent; they stay as they are"
    for lease in leases(context.store, context.now):
        if lease.key == session and lease.live is False:
            yield f"a {lease.kind} of {lease.holder} ran out {moment(lease.expires_at)}; it is left there"


RECIPE = Recipe(name="dead-end", serves=("LIN001",), doc=__doc__ or "", propose=propose)
