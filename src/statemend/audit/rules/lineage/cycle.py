"""Sessions are each other's ancestor.

What it means
The links of these sessions lead back to where they began: through parent_session_id, through the delegate
marker (_delegate_from in model_config), or through both. No history is lost yet. But 0.17.0 deletes a
session by collecting, again and again, whatever names a collected session as the one it was delegated from:
in a ring that takes the parent with all its messages. Newer releases stop at a session they have seen, and
then show a conversation whose beginning depends on where one enters it.

How it happens
A subagent run or a rescue wrote a marker that names a descendant (#49148), a tool outside Hermes edited
the links, or two stores with the same ids were merged.

How we know
Every session points at its parent and at the session it was delegated from. In a sound store each of these
is older than the session itself, so following them must end. Here it does not.

What to do
Do not delete any session of the ring with 0.17.0. Decide which session is the oldest (started_at and the
first message say so) and clear its parent link.

When it is a false alarm
Never: no release writes a ring on purpose, and a marker copied to a continuation names an older session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from statemend.audit.candidates import READS, deleting, told
from statemend.audit.context import Context
from statemend.audit.facts import is_time, listed, moment
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.store.lineage import Graph, Node


def pointers(graph: Graph) -> dict[str, set[str]]:
    """For each session its parent and the one that it was delegated from, where they have rows."""
    nodes = graph.nodes
    return {
        node.id: {target for target in (node.parent_id, node.delegate_from) if target and target in nodes}
        for node in nodes.values()
    }


def _settled(onward: Mapping[str, Collection[str]]) -> set[str]:
    """The sessions from which every way ends."""
    sorter = TopologicalSorter(onward)
    with suppress(CycleError):
        sorter.prepare()
    settled: set[str] = set()
    while ready := sorter.get_ready():
        settled.update(ready)
        sorter.done(*ready)
    return settled


def rings(onward: Mapping[str, Collection[str]]) -> Iterator[tuple[str, ...]]:
    """Each set of sessions that lead round to each other, sorted. What only leads into a ring is left out."""
    behind: dict[str, set[str]] = {session_id: set() for session_id in onward}
    for session_id, targets in onward.items():
        for target in targets:
            behind.setdefault(target, set()).add(session_id)
    left = set(onward) - _settled(onward) - _settled(behind)
    for first in sorted(left):
        ring: set[str] = set()
        reached = {first} & left
        while reached:
            session_id = reached.pop()
            ring.add(session_id)
            reached |= (left & {*onward[session_id], *behind[session_id]}) - ring
        left -= ring
        if ring:
            yield tuple(sorted(ring))


def check(context: Context) -> Iterator[Finding]:
    """One finding for each ring, named after its oldest session."""
    nodes = context.graph.nodes
    for ring in rings(pointers(context.graph)):
        members = [nodes[session_id] for session_id in ring]
        oldest = min(members, key=lambda node: (_started(node), node.id))
        yield RULE.finding(
            context,
            session=oldest.id,
            key="|".join(ring),
            summary="Following the parent or delegate links of this session leads back to it.",
            evidence=(
                ("sessions in the ring", len(ring)),
                ("links", listed(_links(node) for node in members)),
                ("oldest session", oldest.id),
                ("oldest started at", moment(oldest.started_at)),
                ("release that deletes the whole ring", "0.17.0 by its marks; 0.18 and newer stop"),
                *deleting(context.graph, oldest.id),
                *told(context, list(ring), parent=None),
            ),
            remedy=f"Clear the parent link of {oldest.id}; until then do not delete any of these sessions.",
        )


def _started(node: Node) -> float:
    return float(node.started_at) if is_time(node.started_at) else 0.0


def _links(node: Node) -> str:
    return f"{node.id}: parent {node.parent_id or 'none'}, delegated from {node.delegate_from or 'none'}"


RULE = Rule(
    id="LIN004",
    slug="cycle",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="cycle",
    reads=(READS_SESSIONS, READS_MESSAGES, *READS),
)
