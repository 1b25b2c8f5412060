"""What the lineage rules would say, and where Hermes would go, if marks were other than they are.

A recipe asks this before it offers something: no option may mend one fault and make another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from statemend.audit.claims import MARKING
from statemend.audit.context import Context
from statemend.audit.handoff import ORPHANED, dead_ends, is_false_delegate, opening_summary
from statemend.audit.rules.lineage import contradictory_markers, cycle, export_resume_disagree, fork
from statemend.audit.rules.lineage.continuation_not_followed import unfollowed
from statemend.audit.rules.lineage.delegate_marker_on_routed import is_routed_run
from statemend.audit.rules.lineage.export_resume_disagree import parting, path
from statemend.repair.cells import SqlValue
from statemend.repair.marks import BRANCH, FIELDS
from statemend.repair.recipe import RecipeContext
from statemend.store.family import lone_node
from statemend.store.history import Census
from statemend.store.lineage import Graph, Node
from statemend.store.schema import Era

#: For each session, the marks that would be other; ``None`` for one that would be gone.
Marks = Mapping[str, Mapping[str, str | None]]
#: Rule and session of a finding.
Fault = tuple[str, str]
DEAD_END, FORK, PARTING, MARKERS, ROUTED, FALSE_MARK, CUT, UNFOLLOWED = (
    "LIN001",
    "LIN002",
    "LIN003",
    "LIN005",
    "LIN007",
    "LIN008",
    "LIN009",
    "LIN014",
)


class _Imagined(Context):
    """An audit of the same store, in which a family is other than its rows say."""

    def __init__(self, real: Context, family: Graph) -> None:
        super().__init__(
            home=real.home, bundle=real.bundle, store=real.store, inventory=real.inventory, now=real.now
        )
        self._real = real
        self._family = family

    @property
    def graph(self) -> Graph:
        return self._family

    @property
    def census(self) -> Mapping[str, Census]:
        return self._real.census


def family_with(context: RecipeContext, session_id: str, marks: Marks) -> Graph:
    """The family of a session as it would be."""
    nodes = {each: context.graph.nodes[each] for each in _kin(context, session_id)}
    for each in nodes.keys() & marks.keys():
        fields = {FIELDS[key]: value for key, value in marks[each].items()}
        nodes[each] = msgspec.structs.replace(nodes[each], **fields)
    return _graph(context, nodes)


def families_linked(context: RecipeContext, parents: Mapping[str, str]) -> tuple[Graph, Graph]:
    """What new parents of some sessions could make a difference to, as it is and as it would be."""
    nodes = {each: context.graph.nodes[each] for each in _around(context, parents)}
    for child in parents.keys() - nodes.keys():
        node = lone_node(context.store, child)
        if node is not None:
            nodes[child] = node
    linked = {
        each: msgspec.structs.replace(node, parent_id=parents.get(each, node.parent_id))
        for each, node in nodes.items()
    }
    return _graph(context, nodes), _graph(context, linked)


def families_chained(
    context: RecipeContext, changes: Mapping[str, Mapping[str, SqlValue]]
) -> tuple[Graph, Graph]:
    """The families of some sessions as they are and as they would be with these columns changed."""
    found: dict[str, Node] = {}
    for session in changes:
        if session not in found:
            found |= {each: context.graph.nodes[each] for each in _kin(context, session)}
            lone = None if session in found else lone_node(context.store, session)
            found |= {} if lone is None else {session: lone}
    after = dict(found)
    for session in changes.keys() & found.keys():
        fields = {
            "parent_id" if name == "parent_session_id" else name: v for name, v in changes[session].items()
        }
        after[session] = msgspec.structs.replace(found[session], **fields)
    return _graph(context, found), _graph(context, after)


def families_changed(
    context: RecipeContext, sessions: Iterable[str], fields: Mapping[str, Mapping[str, str | None]]
) -> Graph:
    """The families of some sessions as they would be with other ``fields`` of their nodes."""
    found: dict[str, Node] = {}
    for session in sessions:
        if session not in found:
            found |= {each: context.graph.nodes[each] for each in _kin(context, session)}
    for each in found.keys() & fields.keys():
        found[each] = msgspec.structs.replace(found[each], **fields[each])
    return _graph(context, found)


def family_reopened(context: RecipeContext, session_id: str) -> tuple[Graph, Graph]:
    """What the end of a session makes a difference to, as it is and as it would be without its end."""
    nodes = {each: context.graph.nodes[each] for each in _around(context, {session_id: session_id})}
    node = msgspec.structs.replace(nodes[session_id], ended_at=None, end_reason=None)
    return _graph(context, nodes), _graph(context, {**nodes, session_id: node})


def _around(context: RecipeContext, parents: Mapping[str, str]) -> set[str]:
    """What lies below the sessions and above their new parents, and every session that a walk from there
    comes by: the children of what compression ended. Others keep their ways, whoever their kin is."""
    graph = context.graph
    below = set[str]()
    waiting = list(parents)
    while waiting:
        each = waiting.pop()
        if each not in below:
            below.add(each)
            waiting += [child.id for child in graph.children(each)]
    found = set[str]()
    waiting = [*below, *parents.values()]
    while waiting:
        node = graph.nodes.get(waiting.pop())
        if node is not None and node.id not in found:
            found.add(node.id)
            waiting += filter(None, (node.parent_id, node.delegate_from))
            if node.compressed:
                waiting += [child.id for child in graph.children(node.id)]
    return found


def _kin(context: RecipeContext, session_id: str) -> list[str]:
    return [each for each in context.graph.family(session_id) if each in context.graph.nodes]


def _graph(context: RecipeContext, nodes: Mapping[str, Node]) -> Graph:
    return Graph(context.store, dict(sorted(nodes.items(), key=lambda item: item[1].position)))


def faults(context: RecipeContext, family: Graph) -> set[Fault]:
    """What the lineage rules would say of a family."""
    imagined = _Imagined(context.audit, family)
    found = {
        (one.rule, one.subject.session or "")
        for rule in (fork.RULE, export_resume_disagree.RULE, cycle.RULE, contradictory_markers.RULE)
        for one in rule.check(imagined)
    }
    found |= {(DEAD_END, node.id) for node in dead_ends(imagined)}
    found |= {(ROUTED, node.id) for node in family.nodes.values() if is_routed_run(imagined, node)}
    found |= {(FALSE_MARK, node.id) for node in family.nodes.values() if is_false_delegate(imagined, node)}
    found |= {(CUT, node.id) for node in family.nodes.values() if _cut(imagined, node)}
    found |= {(UNFOLLOWED, each.child.id) for each in unfollowed(imagined)}
    return found


def new_faults(context: RecipeContext, now: Graph, then: Graph) -> set[Fault]:
    """What the lineage rules would say of a family ``then`` that they do not say of it ``now``."""
    return faults(context, then) - faults(context, now)


def told_faults(found: Iterable[Fault]) -> str:
    """Faults in one line, in order."""
    return ", ".join(f"{rule} for {session}" for rule, session in sorted(found))


def _cut(imagined: Context, node: Node) -> bool:
    if node.parent_id or node.branched_from is not None or node.delegate_from not in (None, ORPHANED):
        return False
    return opening_summary(imagined.store, node.id, node.started_at) is not None


def as_branch(
    family: Graph, session_id: str, origin: str, *, chained: bool
) -> dict[str, dict[str, str | None]]:
    """The marks that make a session a branch of ``origin``; ``chained`` gives the same mark to those that
    continue it, where they bear none. Export takes a branch for one segment, and only so does resume too."""
    marks: dict[str, dict[str, str | None]] = {session_id: {BRANCH: origin}}
    following = family.continuations(session_id) if chained else ()
    while len(following) == 1 and following[0].id not in marks:
        (segment,) = following
        if not (segment.marked or segment.reset_from):
            marks[segment.id] = {BRANCH: origin}
        following = family.continuations(segment.id)
    return marks


def parting_point(family: Graph, start: str) -> str:
    """The session on the way from ``start`` where resume goes on with another session than export, or with
    one that does not qualify."""
    resumed = path(family, start, family.resume_tip(start, Era.V22))
    return parting(family, resumed, family.export_chain(start, Era.V22) or (start,))[0]


def walks(family: Graph, start: str) -> Iterator[str]:
    """Where the releases that heed marks would go from ``start``, in words."""
    by_way: dict[tuple[str, str], list[str]] = {}
    for era, releases in MARKING.items():
        chain = family.export_chain(start, era) or (start,)
        by_way.setdefault((family.resume_tip(start, era), chain[-1]), []).append(releases)
    for (tip, last), alike in by_way.items():
        yield f"then resume goes to {tip}, and export ends in {last} ({', '.join(alike)})"
