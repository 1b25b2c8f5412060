"""Opens a session again that messages came into after its end.

After an end that a person or a schedule asked for, clearing the end stamp and its reason says that the
conversation is in use: no prune takes it, and it is resumed as it is. Whether that is meant, the rows cannot
tell: always a choice. It is not offered where the end alone tells what another session is to this one.

Turns that stand beside a line which a compression continues stay where they are: no plan changes whose a
message is, and which of them still matter only a reader knows. Where nothing continues the session, the
choice about the dead end settles both.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.candidates import lines
from statemend.audit.facts import is_time
from statemend.audit.finding import Finding, Verdict
from statemend.audit.rules.lineage.branch_without_marker import told_by_parent
from statemend.repair.foresight import family_reopened, new_faults, told_faults
from statemend.repair.marks import update_session
from statemend.repair.plan import Choice, Option, Source, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave, row_of
from statemend.store.lineage import Relation


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """To reopen or to leave it, or why it is no question."""
    session = finding.subject.session or ""
    row = row_of(context.store, "sessions", {"id": session})
    if finding.verdict is Verdict.FAULT:
        yield leave(finding, f"no plan changes whose a message is: {finding.remedy.text}")
    elif row is None:
        yield leave(finding, f"no row can be named by the id {session!a}")
    elif row.get("end_reason") == "compression":
        dead = next((one.id for one in context.of_rule("LIN001") if one.subject.session == session), "LIN001")
        yield leave(finding, f"settled by the choice for {dead}: whether the closed session goes on")
    elif why := _why_not(context, session):
        yield leave(finding, why)
    else:
        yield _choice(context, finding, session)


def _why_not(context: RecipeContext, session: str) -> str | None:
    """Why the session is not to be opened again."""
    if session not in context.graph.nodes:
        return None
    if told := list(_told_by_the_end(context, session)):
        return f"only its end tells what {', '.join(told[:3])} is to it: mark that first, or leave it ended"
    if clashes := new_faults(context, *family_reopened(context, session)):
        return f"opened again, it would make another fault: {told_faults(clashes)}; settle its family first"
    return None


def _told_by_the_end(context: RecipeContext, session: str) -> Iterator[str]:
    """The children without a mark that are known for a branch or a reset by how this session ended."""
    node = context.graph.nodes[session]
    for child in context.graph.children(session):
        if child.marked or child.reset_from is not None:
            continue
        edge = context.graph.edge(child.id)
        reset = edge is not None and edge.relation is Relation.RESET
        if reset or (is_time(child.started_at) and told_by_parent(node, child)):
            yield child.id


def _choice(context: RecipeContext, finding: Finding, session: str) -> Choice:
    cleared = {"ended_at": None, "end_reason": None}
    step = RECIPE.step(
        finding,
        StepClass.CHOICE,
        title=f"Open {session} again",
        why=finding.summary,
        operations=(update_session(context, session, cleared),),
        sessions=(session,),
        sources=tuple(Source(column=column, origin="cleared, as Hermes reopens it") for column in cleared),
    )
    return RECIPE.choice(
        finding,
        f"Is the conversation of {session} in use?",
        (
            Option(
                id="reopen",
                title="Open it again: clear the end stamp and its reason",
                evidence=(finding.summary, *lines(context.audit, session, None)),
                steps=(step,),
            ),
            Option(
                id="leave",
                title="Leave it ended",
                evidence=("right when the turns came into it by mistake; every row stays readable",),
            ),
        ),
    )


RECIPE = Recipe(name="late-turns", serves=("LIN010",), doc=__doc__ or "", propose=propose)
