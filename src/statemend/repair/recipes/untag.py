"""Takes a false subagent mark off a conversation.

The key ``_delegate_from`` is cut out of ``model_config``; every other character of it stays. Where it was the
only key, the column becomes NULL, which is what it was before the migration wrote the mark. The session is
listed again, and is no longer deleted together with the session that the mark named. In a store of 0.22 the
substring index leaves out what a marked session wrote, so it is rebuilt in the same step.

It is done without asking when the finding is a fault and taking the mark off is enough. It is a choice when
the evidence does not decide whether a person wrote this session, when the session is a child that no release
would list without any mark (its parent is not closed by compression), or when it would compete with another
continuation: then marking it as a branch is an option that keeps it listed.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.facts import words
from statemend.audit.finding import Finding, Verdict
from statemend.repair.foresight import family_with, faults
from statemend.repair.marks import BRANCH, DELEGATE, CannotChangeError, index_after, remark
from statemend.repair.plan import Choice, Option, Source, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, choice_id, leave, step_id
from statemend.store.lineage import Relation


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The removal, a choice that contains it, or why the mark stays."""
    session = finding.subject.session or ""
    if finding.verdict is Verdict.LEFTOVER:
        yield leave(finding, f"lawful as it is: {finding.summary}")
        return
    hidden = _stays_hidden(context, session)
    clashes = _clashes(context, session)
    enough = finding.verdict is Verdict.FAULT and not hidden and not clashes
    kind = StepClass.SAFE if enough else StepClass.CHOICE
    try:
        plain = _step(context, finding, session, kind)
        branch = _step(context, finding, session, kind, branch=True) if hidden or clashes else None
    except CannotChangeError as obstacle:
        yield leave(finding, str(obstacle))
        return
    if enough:
        yield plain
        return
    yield _choice(context, finding, session, plain, branch, hidden=hidden, clashes=clashes)


def _stays_hidden(context: RecipeContext, session: str) -> bool:
    """Whether releases would list the session neither by itself nor as the newest segment of its parent once
    the mark is off."""
    family = family_with(context, session, {session: {DELEGATE: None}})
    edge = family.edge(session)
    if edge is None or edge.relation in (Relation.BRANCH, Relation.RESET):
        return False
    parent = family.nodes.get(edge.parent_id)
    return parent is not None and not parent.compressed


def _clashes(context: RecipeContext, session: str) -> bool:
    """Whether the session without its mark would make a fork, or part the ways of resume and export."""
    before = faults(context, family_with(context, session, {}))
    return bool(faults(context, family_with(context, session, {session: {DELEGATE: None}})) - before)


def _step(
    context: RecipeContext, finding: Finding, session: str, kind: StepClass, *, branch: bool = False
) -> Step:
    marks: dict[str, str | None] = {DELEGATE: None}
    if branch:
        node = context.graph.nodes[session]
        marks[BRANCH] = node.parent_id
    return Step(
        id=step_id(RECIPE.name, finding, 2 if branch else 1),
        recipe=RECIPE.name,
        finding=finding.id,
        step_class=kind,
        title=f"Take the subagent mark off {session}" + (" and mark it as a branch" if branch else ""),
        why=finding.summary,
        operations=(remark(context, session, marks), *index_after(context, [session])),
        sessions=(session,),
        sources=(Source(column="model_config", origin=f"the text without {DELEGATE}"),),
    )


def _choice(
    context: RecipeContext,
    finding: Finding,
    session: str,
    plain: Step,
    branch: Step | None,
    *,
    hidden: bool,
    clashes: bool,
) -> Choice:
    options: list[Option] = []
    evidence = tuple(_evidence(context, finding, session))
    if branch is not None:
        parent = context.graph.nodes[session].parent_id
        told = f"listed as a conversation of its own, and kept when {parent} is deleted"
        options.append(Option(id="branch", title=branch.title, evidence=(*evidence, told), steps=(branch,)))
    if not clashes:
        told = "no release lists it before its parent is deleted; its id and the search lead to it"
        options.append(
            Option(
                id="untag",
                title=plain.title,
                evidence=(*evidence, *((told,) if hidden else ())),
                steps=(plain,),
            )
        )
    options.append(
        Option(
            id="leave",
            title="Leave the mark: it is a subagent run",
            evidence=("it stays hidden from every list",),
        )
    )
    if clashes:
        question = f"Another session continues its parent too. How is {session} to be kept?"
    elif hidden:
        question = f"Without a mark no list shows {session}. How is it to be kept?"
    else:
        question = f"Did a person write {session}, or is it a subagent's run?"
    return Choice(
        id=choice_id(RECIPE.name, finding), finding=finding.id, question=question, options=tuple(options)
    )


def _evidence(context: RecipeContext, finding: Finding, session: str) -> Iterator[str]:
    for fact in finding.evidence:
        value = fact.value
        if isinstance(value, list | tuple):
            value = ", ".join(map(str, value))
        yield f"{fact.label}: {'none' if value in (None, '') else value}"
    edge = context.graph.edge(session)
    if edge is not None:
        parent = context.graph.nodes.get(edge.parent_id)
        ended = words(parent.end_reason, 40) if parent is not None else None
        yield f"its parent {edge.parent_id} {f'ended by {ended}' if ended else 'is open'}"


RECIPE = Recipe(name="untag", serves=("LIN008",), doc=__doc__ or "", propose=propose)
