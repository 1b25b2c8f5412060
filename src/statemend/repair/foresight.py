"""What the lineage rules would say, and where Hermes would go, if marks were other than they are.

A recipe asks this before it offers something: no option may mend one fault and make another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from statemend.audit.rules.lineage.export_resume_disagree import lawful, path, subagents_on
from statemend.audit.rules.lineage.fork import fits
from statemend.repair.marks import FIELDS
from statemend.repair.recipe import RecipeContext
from statemend.store.lineage import Graph, Node
from statemend.store.schema import Era

#: For each session, the marks that would be other; ``None`` for one that would be gone.
Marks = Mapping[str, Mapping[str, str | None]]
#: The releases that heed marks, by the era whose rules they follow.
MARKING = {Era.V18: "0.18 and 0.19", Era.V20: "0.20", Era.V22: "0.22"}
FORK, PARTING, DEAD_END = "LIN002", "LIN003", "LIN001"


def family_with(context: RecipeContext, session_id: str, marks: Marks) -> Graph:
    """The family of a session as it would be."""
    nodes = {}
    for each in context.graph.family(session_id):
        node = context.graph.nodes.get(each)
        if node is not None:
            fields = {FIELDS[key]: value for key, value in marks.get(each, {}).items()}
            nodes[each] = msgspec.structs.replace(node, **fields)
    return Graph(context.store, dict(sorted(nodes.items(), key=lambda item: item[1].position)))


def faults(context: RecipeContext, family: Graph) -> set[tuple[str, str]]:
    """Rule and session of what the rules for forks, for walks that part and for dead ends would say."""
    found: set[tuple[str, str]] = set()
    for node in family.nodes.values():
        following = family.continuations(node.id)
        if sum(fits(context.audit, node, child) for child in following) > 1:
            found.add((FORK, node.id))
        if node.compressed and not following:
            found.add((DEAD_END, node.id))
        if context.store.schema.era >= Era.V18 and _begins_a_chain(family, node) and _part(family, node.id):
            found.add((PARTING, node.id))
    return found


def _begins_a_chain(family: Graph, node: Node) -> bool:
    siblings = family.continuations(node.parent_id) if node.parent_id else ()
    return node.compressed and all(sibling.id != node.id for sibling in siblings)


def _part(family: Graph, first: str) -> bool:
    resumed = path(family, first, family.resume_tip(first, Era.V22))
    exported = family.export_chain(first, Era.V22) or (first,)
    if subagents_on(family, resumed):
        return True
    return resumed[-1] != exported[-1] and not lawful(family, resumed, exported)


def parting_point(family: Graph, start: str) -> str:
    """The session on the way from ``start`` where resume goes on with another session than export, or with
    one that does not qualify."""
    resumed = path(family, start, family.resume_tip(start, Era.V22))
    exported = family.export_chain(start, Era.V22) or (start,)
    exported = exported[exported.index(start) :]
    for place, here in enumerate(resumed):
        ahead = resumed[place + 1 : place + 2]
        qualified = {child.id for child in family.continuations(here)}
        if ahead != exported[place + 1 : place + 2] or (ahead and ahead[0] not in qualified):
            return here
    return start


def walks(family: Graph, start: str) -> Iterator[str]:
    """Where the releases that heed marks would go from ``start``, in words."""
    by_way: dict[tuple[str, str], list[str]] = {}
    for era, releases in MARKING.items():
        chain = family.export_chain(start, era) or (start,)
        by_way.setdefault((family.resume_tip(start, era), chain[-1]), []).append(releases)
    for (tip, last), alike in by_way.items():
        yield f"then resume goes to {tip}, and export ends in {last} ({', '.join(alike)})"
