"""Takes a false subagent mark off a conversation.

The key ``_delegate_from`` is cut out of ``model_config``; every other character of it stays. Where it was the
only key, the column becomes NULL, which is what it was before the migration wrote the mark. The session is
listed again, and is no longer deleted together with the session that the mark named. In a store of 0.22 the
substring index leaves out what a marked session wrote, so it is rebuilt in the same step.

It is done without asking when the finding is a fault and taking the mark off is enough. It is a choice when
the evidence does not decide whether a person wrote this session, when the session is a child that no release
would list without any mark (its parent is not closed by compression), or when it would then make another
fault, such as a fork: then marking it as a branch is an option that keeps it listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from statemend.audit.facts import words
from statemend.audit.finding import Finding, Verdict
from statemend.repair.foresight import Fault, Marks, as_branch, family_with, new_faults, told_faults
from statemend.repair.marks import BRANCH, DELEGATE, index_after, remark
from statemend.repair.plan import Choice, Option, Source, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave
from statemend.store.lineage import Relation


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The removal, a choice that contains it, or why the mark stays."""
    session = finding.subject.session or ""
    if finding.verdict is Verdict.LEFTOVER:
        yield leave(finding, f"lawful as it is: {finding.summary}")
        return
    plain: Marks = {session: {DELEGATE: None}}
    clashes = _new_faults(context, session, plain)
    hidden = _stays_hidden(context, session)
    branch = _branch(context, session) if hidden or clashes else {}
    enough = finding.verdict is Verdict.FAULT and not hidden and not clashes
    kind = StepClass.SAFE if enough else StepClass.CHOICE
    steps = {
        name: _step(context, finding, session, marks, kind)
        for name, marks in (("branch", branch), ("untag", {} if clashes else plain))
        if marks
    }
    if enough:
        yield steps["untag"]
    elif steps:
        yield _choice(context, finding, session, steps, hidden=hidden, clashes=clashes)
    else:
        yield leave(
            finding, f"without the mark there would be {told_faults(clashes)}; settle its family first"
        )


def _branch(context: RecipeContext, session: str) -> Marks:
    """The marks that make the session a branch of its parent, or of the session that the false mark names
    where it has none; nothing when that would make another fault."""
    node = context.graph.nodes[session]
    origin = node.parent_id or node.delegate_from or ""
    family = family_with(context, session, {session: {DELEGATE: None}})
    for chained in (False, True):
        marks = as_branch(family, session, origin, chained=chained)
        marks[session] = {DELEGATE: None, **marks[session]}
        if not _new_faults(context, session, marks):
            return marks
    return {}


def _stays_hidden(context: RecipeContext, session: str) -> bool:
    """Whether releases would list the session neither by itself nor as the newest segment of its parent once
    the mark is off."""
    family = family_with(context, session, {session: {DELEGATE: None}})
    edge = family.edge(session)
    if edge is None or edge.relation in (Relation.BRANCH, Relation.RESET):
        return False
    parent = family.nodes.get(edge.parent_id)
    return parent is not None and not parent.compressed


def _new_faults(context: RecipeContext, session: str, marks: Marks) -> set[Fault]:
    """What the lineage rules would say of the family with these marks that they do not say now."""
    now, then = (family_with(context, session, each) for each in ({}, marks))
    return new_faults(context, now, then)


def _step(context: RecipeContext, finding: Finding, session: str, marks: Marks, kind: StepClass) -> Step:
    branch = BRANCH in marks[session]
    operations = [remark(context, each, changed) for each, changed in marks.items()]
    return RECIPE.step(
        finding,
        kind,
        2 if branch else 1,
        title=f"Take the subagent mark off {session}" + (" and mark it as a branch" if branch else ""),
        why=finding.summary,
        operations=tuple(operations),
        reindex=index_after(context, [session]),
        sessions=tuple(marks),
        sources=(
            Source(
                column="model_config",
                origin=f"the text without {DELEGATE}" + (f" and with {BRANCH}" if branch else ""),
            ),
        ),
    )


def _choice(
    context: RecipeContext,
    finding: Finding,
    session: str,
    steps: Mapping[str, Step],
    *,
    hidden: bool,
    clashes: Iterable[Fault],
) -> Choice:
    evidence = tuple(_evidence(context, finding, session))
    told = {
        "branch": ("listed as a conversation of its own, and kept when the one it came from is deleted",),
        "untag": ("no release lists it before its parent is deleted; its id leads to it",) if hidden else (),
    }
    options = [
        Option(id=name, title=step.title, evidence=(*evidence, *told[name]), steps=(step,))
        for name, step in steps.items()
    ]
    options.append(
        Option(
            id="leave",
            title="Leave the mark: it is a subagent run",
            evidence=("it stays hidden from every list",),
        )
    )
    if clashes:
        question = f"With no mark there would be {told_faults(clashes)}. How is {session} to be kept?"
    elif hidden:
        question = f"Without a mark no list shows {session}. How is it to be kept?"
    else:
        question = f"Did a person write {session}, or is it a subagent's run?"
    return RECIPE.choice(finding, question, tuple(options))


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


RECIPE = Recipe(name="untag", serves=("LIN007", "LIN008"), doc=__doc__ or "", propose=propose)
