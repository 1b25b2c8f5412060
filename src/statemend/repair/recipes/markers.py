"""Settles what a session is to its parent by clearing the markers that say otherwise.

Markers are keys of ``model_config``; only those that contradict go, and every other character of that text
stays. Segments that a compression made of the session afterwards bear copies of the false marker, which stop
resume or spread a deletion just the same: they lose them too. No marker is added, no row is lost, and the
parent is not touched.

It is done without asking when the evidence makes one claim true. Otherwise it is a choice with one option for
each relation that is claimed. Nothing is offered that would make another fault, such as a fork.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.claims import RIGHT, Claim, Contradiction, contradiction, fields_of_others
from statemend.audit.finding import Finding
from statemend.repair.foresight import MARKERS, Marks, family_with, faults, walks
from statemend.repair.marks import DELEGATE, FIELDS, index_after, remark
from statemend.repair.plan import Choice, Option, Source, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave
from statemend.store.lineage import Graph, Node, Relation

_KEYS = {field: key for key, field in FIELDS.items()}


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The settlement, a choice among the relations, or why there is none."""
    child = context.graph.nodes.get(finding.subject.session or "")
    found = contradiction(context.audit, child) if child is not None else None
    if found is None:
        yield leave(finding, "its markers no longer contradict each other")
        return
    relations = [claim.relation for claim in found.claims] if found.true is None else [found.true]
    ways = {relation: marks_for(context.graph, found, relation) for relation in relations}
    ways = {relation: marks for relation, marks in ways.items() if _settles(context, found.child, marks)}
    kind = StepClass.SAFE if found.true is not None else StepClass.CHOICE
    steps = {relation: _step(context, finding, relation, ways[relation], kind) for relation in ways}
    if not steps:
        yield leave(finding, "without the markers there would be another fault; settle its family first")
    elif found.true is not None:
        yield from steps.values()
    else:
        yield _choice(context, finding, found, steps)


def marks_for(graph: Graph, found: Contradiction, relation: Relation) -> Marks:
    """What is cleared when ``relation`` is true: the markers of the session that claim another, and the
    copies of these in what continues it."""
    child = found.child
    others = fields_of_others(relation, [claim.relation for claim in found.claims])
    false = {field: getattr(child, field) for field in others}
    marks: dict[str, dict[str, str | None]] = {child.id: dict.fromkeys(map(_KEYS.__getitem__, false))}
    waiting = [child.id]
    while waiting:
        for heir in graph.children(waiting.pop()):
            copied = [field for field, value in false.items() if getattr(heir, field) == value]
            if copied and heir.id not in marks:
                marks[heir.id] = dict.fromkeys(map(_KEYS.__getitem__, copied))
                waiting.append(heir.id)
    return marks


def _settles(context: RecipeContext, child: Node, marks: Marks) -> bool:
    """Whether the markers then agree, and the lineage rules say nothing of the family that they do not say
    now."""
    before = faults(context, family_with(context, child.id, {}))
    after = faults(context, family_with(context, child.id, marks))
    return (MARKERS, child.id) not in after and not after - before


def _step(
    context: RecipeContext, finding: Finding, relation: Relation, marks: Marks, kind: StepClass
) -> Step:
    session = finding.subject.session or ""
    cleared = ", ".join(marks[session])
    return RECIPE.step(
        finding,
        kind,
        list(RIGHT).index(relation) + 1,
        title=f"Keep {session} as {relation.value}: clear {cleared}",
        why=finding.summary,
        operations=tuple(remark(context, each, changed) for each, changed in marks.items()),
        reindex=index_after(context, [each for each, changed in marks.items() if DELEGATE in changed]),
        sessions=tuple(marks),
        sources=(Source(column="model_config", origin=f"the text without {cleared}"),),
    )


def _choice(
    context: RecipeContext, finding: Finding, found: Contradiction, steps: dict[Relation, Step]
) -> Choice:
    options = [
        Option(
            id=claim.relation.value,
            title=steps[claim.relation].title,
            evidence=tuple(_evidence(context, found, claim)),
            steps=(steps[claim.relation],),
        )
        for claim in found.claims
        if claim.relation in steps
    ]
    options.append(Option(id="leave", title="Leave the markers as they are"))
    return RECIPE.choice(
        finding,
        f"What is {found.child.id} to its parent {found.parent.id}?",
        tuple(options),
    )


def _evidence(context: RecipeContext, found: Contradiction, claim: Claim) -> Iterator[str]:
    yield claim.by
    yield from (f"for it: {reason}" for reason in claim.pro)
    yield from (f"against it: {reason}" for reason in claim.contra)
    goes = RIGHT[claim.relation].deleted
    yield f"deleting {found.parent.id} {'takes it along' if goes else 'keeps it'}"
    marks = marks_for(context.graph, found, claim.relation)
    yield from walks(family_with(context, found.child.id, marks), found.parent.id)


RECIPE = Recipe(name="markers", serves=(MARKERS,), doc=__doc__ or "", propose=propose)
