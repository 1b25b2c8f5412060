"""Opens a ring of sessions at one of them, which becomes the first.

The links of that one session that lead into the ring are cleared: its parent, its delegate mark, or both. All
others keep theirs and hang below it, in the order in which the ring ran. No row is lost, and the change can
be undone.

Which session is the first, the links cannot tell, since each has one before it: always a choice, with an
option for each session, the oldest first, and with what each would leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from statemend.audit.candidates import lines
from statemend.audit.facts import is_time
from statemend.audit.finding import Finding
from statemend.audit.rules.lineage.cycle import pointers, rings
from statemend.repair.foresight import families_changed, faults, walks
from statemend.repair.marks import DELEGATE, index_after, remark, update_session
from statemend.repair.plan import Operation, Option, Source, Step, StepClass
from statemend.repair.recipe import Proposal, Recipe, RecipeContext, leave
from statemend.store.lineage import Graph, Node

#: So many sessions are offered as the first of a ring, and so many of what hangs below one are named.
_MOST, _NAMED = 20, 6

#: The fields of a node that are cleared.
Cut = Mapping[str, None]


def propose(context: RecipeContext, finding: Finding) -> Iterator[Proposal]:
    """The choice among the sessions of the ring, or why there is none."""
    ring = _ring(context, finding.subject.session or "")
    ordered = sorted(ring, key=lambda each: _age(context.graph.nodes[each]))
    options = list(_options(context, finding, ordered))
    if not options:
        yield leave(
            finding, "opened at any one session, it would make another fault; settle its family first"
        )
        return
    shown = f" (only the {_MOST} oldest are listed)" if len(ordered) > _MOST else ""
    yield RECIPE.choice(
        finding,
        f"Which of the {len(ordered)} sessions of the ring is the first?{shown}",
        (*options, Option(id="leave", title="Leave the ring as it is")),
    )


def _ring(context: RecipeContext, session: str) -> tuple[str, ...]:
    found: Mapping[str, tuple[str, ...]] = context.once(
        "rings", lambda: {each: ring for ring in rings(pointers(context.graph)) for each in ring}
    )
    return found.get(session, ())


def _age(node: Node) -> tuple[float, str]:
    return (float(node.started_at) if is_time(node.started_at) else 0.0, node.id)


def _options(context: RecipeContext, finding: Finding, ordered: list[str]) -> Iterator[Option]:
    ring = set(ordered)
    before = faults(context, families_changed(context, ordered, {}))
    for number, first in enumerate(ordered[:_MOST], 1):
        cut = _cut(context.graph.nodes[first], ring)
        after = families_changed(context, ordered, {first: cut})
        if list(rings(pointers(after))) or faults(context, after) - before:
            continue
        yield Option(
            id=f"first:{first}",
            title=f"{first} is the first: {_named(context.graph.nodes[first], cut)}",
            evidence=tuple(_evidence(context, after, first)),
            steps=(_step(context, finding, first, cut, number),),
        )


def _cut(node: Node, ring: set[str]) -> Cut:
    """The links of a session that lead into its ring."""
    return {field: None for field in ("parent_id", "delegate_from") if getattr(node, field) in ring}


def _named(node: Node, cut: Cut) -> str:
    cleared = [f"its parent {node.parent_id}"] * ("parent_id" in cut)
    cleared += [f"its delegate mark, which names {node.delegate_from}"] * ("delegate_from" in cut)
    return f"clear {' and '.join(cleared)}"


def _step(context: RecipeContext, finding: Finding, first: str, cut: Cut, number: int) -> Step:
    marked = "delegate_from" in cut
    return RECIPE.step(
        finding,
        StepClass.CHOICE,
        number,
        title=f"Open the ring at {first}",
        why=finding.summary,
        operations=(_operation(context, first, cut),),
        reindex=index_after(context, [first]) if marked else (),
        sessions=(first,),
        sources=(Source(column="parent_session_id, model_config", origin="decided by the operator"),),
    )


def _operation(context: RecipeContext, first: str, cut: Cut) -> Operation:
    orphaned = {"parent_session_id": None} if "parent_id" in cut else {}
    if "delegate_from" in cut:
        return remark(context, first, {DELEGATE: None}, also=orphaned)
    return update_session(context, first, orphaned)


def _evidence(context: RecipeContext, after: Graph, first: str) -> Iterator[str]:
    yield from lines(context.audit, first, None)
    below = _below(after, first)
    named = ", ".join(below[:_NAMED]) + (f" and {len(below) - _NAMED} more" if len(below) > _NAMED else "")
    yield f"then below it by their parents: {named or 'none'}"
    yield from walks(after, first)


def _below(family: Graph, first: str) -> list[str]:
    """The sessions that hang below one, nearest first."""
    found = {first: None}
    waiting = [first]
    while waiting:
        nearest = [child.id for each in waiting for child in family.children(each) if child.id not in found]
        found |= dict.fromkeys(nearest)
        waiting = nearest
    return list(found)[1:]


RECIPE = Recipe(name="cycle", serves=("LIN004",), doc=__doc__ or "", propose=propose)
