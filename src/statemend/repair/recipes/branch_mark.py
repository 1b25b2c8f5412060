"""Gives a branch the mark that it lacks.

The key ``_branched_from`` with the id of the parent is written into ``model_config``; every other character
of it stays. Every release from 0.16 on then lists the session as a conversation of its own, whatever becomes
of the end of its parent, no upgrade takes it for a subagent's run, and 0.18 and newer no longer resume it in
place of its parent.

It is done without asking where the rule finds a fault, copied rows tell that it is a branch, and the mark
makes no other fault. While the way in which the parent ended still tells it, the releases that have opened
the store do well without the mark: then it is a choice, and so it is where what continues the branch must
bear the mark too.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.candidates import lines
from statemend.audit.finding import Finding, Verdict
from statemend.repair.foresight import Marks, as_branch, family_with, faults, walks
from statemend.repair.marks import BRANCH, remark
from statemend.repair.plan import Choice, Option, Source, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The mark, a choice whether to write it, or why it is not written."""
    session = finding.subject.session or ""
    parent = context.graph.nodes[session].parent_id or ""
    marks = _marks(context, session, parent)
    if not marks:
        yield leave(finding, "marked as a branch, it would make another fault; settle its family first")
        return
    asked = finding.verdict is not Verdict.FAULT or len(marks) > 1
    step = _step(context, finding, marks, StepClass.CHOICE if asked else StepClass.SAFE)
    if asked:
        yield _choice(context, finding, session, parent, marks, step)
    else:
        yield step


def _marks(context: RecipeContext, session: str, parent: str) -> Marks:
    """The marks that make it a branch: its own, or also those of what continues it. Nothing where either
    makes another fault."""
    family = family_with(context, session, {})
    before = faults(context, family)
    for chained in (False, True):
        marks = as_branch(family, session, parent, chained=chained)
        if not faults(context, family_with(context, session, marks)) - before:
            return marks
    return {}


def _step(context: RecipeContext, finding: Finding, marks: Marks, kind: StepClass) -> Step:
    session = finding.subject.session
    parent = context.graph.nodes[session or ""].parent_id
    return RECIPE.step(
        finding,
        kind,
        title=f"Mark {session} as a branch of {parent}",
        why=finding.summary,
        operations=tuple(remark(context, each, changed) for each, changed in marks.items()),
        sessions=tuple(marks),
        sources=(
            Source(column="model_config", origin=f"the text with {BRANCH}: its first rows are the parent's"),
        ),
    )


def _choice(
    context: RecipeContext, finding: Finding, session: str, parent: str, marks: Marks, step: Step
) -> Choice:
    after = family_with(context, session, marks)
    others = [each for each in marks if each != session]
    return RECIPE.choice(
        finding,
        f"Is {session} to bear the mark of a branch?",
        (
            Option(
                id="mark",
                title=step.title,
                evidence=(
                    *lines(context.audit, session, parent),
                    *([f"what continues it is marked too: {', '.join(others)}"] if others else []),
                    *walks(after, parent),
                ),
                steps=(step,),
            ),
            Option(
                id="leave",
                title="Leave it without a mark",
                evidence=tuple(
                    line.replace("then resume", "resume") for line in walks(context.graph, parent)
                ),
            ),
        ),
    )


RECIPE = Recipe(name="branch-mark", serves=("LIN006",), doc=__doc__ or "", propose=propose)
