"""Which sessions each release of Hermes would follow from one: on resume, on export, on delete.

The rules differ from release to release, and within one release between resume and export. They are stated
here as each release applies them, over the same nodes, so that their answers can be set side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statemend.store.family import Deletion, Node, last_active
from statemend.store.order import sqlite_order
from statemend.store.schema import Era

Nodes = Mapping[str, Node]
#: The children of a session in the order in which their rows lie.
Children = Callable[[str], Sequence[Node]]

_HOPS = {Era.V13: 100, Era.V16: 100, Era.V18: 100, Era.V20: 100, Era.V22: 1000}


def resume_tip(nodes: Nodes, children: Children, session_id: str, era: Era) -> str:
    """The session that ``get_compression_tip`` of the era returns; the session itself where nothing
    continues it.
    """
    current = session_id
    seen = {current}
    for _ in range(_HOPS[era]):
        parent = nodes.get(current)
        step = None if parent is None or not parent.compressed else _next_tip(parent, children(current), era)
        if step is None or (era >= Era.V18 and step.id in seen):
            return current
        current = step.id
        seen.add(current)
    return current


def export_chain(nodes: Nodes, children: Children, session_id: str, era: Era) -> tuple[str, ...] | None:
    """The sessions that ``get_compression_lineage`` of the era returns, oldest first; ``None`` before 0.18,
    which had no such export. 0.18 itself would not end on a cycle; the answer is that of 0.19.
    """
    if era < Era.V18:
        return None
    node = nodes.get(session_id)
    if node is None or _is_fork(node, era):
        return (session_id,)
    root = node
    ancestors = {root.id}
    while _is_segment(nodes, root, era):
        parent = nodes[root.parent_id or ""]
        if parent.id in ancestors:
            break
        root = parent
        ancestors.add(root.id)
    chain = [root.id]
    while nodes[chain[-1]].compressed:
        eldest = next(
            (child for child in oldest_first(children(chain[-1])) if _follows(nodes, child, era)), None
        )
        if eldest is None or eldest.id in chain:
            break
        chain.append(eldest.id)
    return tuple(chain) if session_id in chain else (session_id,)


def deletion(nodes: Nodes, children: Children, session_id: str, era: Era) -> Deletion:
    """What ``delete_session`` of the era takes beside the session: up to 0.16 nothing, from 0.17 its
    delegates and theirs. Every other child of a session that goes loses its parent link. A store of 0.16 is
    taken for one of 0.17, which deletes more.
    """
    doomed = {session_id}
    frontier = [session_id] if era >= Era.V16 else []
    while frontier:
        names = set(frontier)
        frontier = [
            node.id
            for node in nodes.values()
            if node.id not in doomed
            and node.delegate_from is not None
            and (node.delegate_from in names or node.parent_id in names)
        ]
        doomed.update(frontier)
    detached = [child.id for gone in doomed for child in children(gone) if child.id not in doomed]
    return Deletion(tuple(sorted(doomed)), tuple(sorted(detached)))


def oldest_first(siblings: Sequence[Node]) -> list[Node]:
    """Siblings by start, those of one start in the order in which their rows lie."""
    return sorted(siblings, key=lambda node: sqlite_order(node.started_at))


def _next_tip(parent: Node, siblings: Sequence[Node], era: Era) -> Node | None:
    """The child that the era's resume would go on with."""
    if era < Era.V18:
        later = [child for child in siblings if _starts_after(child, parent)]
        return max(later, key=lambda child: sqlite_order(child.started_at), default=None)
    candidates = [
        child
        for child in siblings
        if not child.marked and child.source != "tool" and (era < Era.V22 or child.reset_from is None)
    ]
    return max(candidates, key=lambda child: _preference(child, era), default=None)


def _starts_after(child: Node, parent: Node) -> bool:
    if child.started_at is None or parent.ended_at is None:
        return False
    return sqlite_order(child.started_at) >= sqlite_order(parent.ended_at)


def _preference(child: Node, era: Era) -> tuple[Any, ...]:
    standing = 2 if child.compressed else 1 if child.ended_at is None else 0
    times = (last_active(child, era), child.started_at, child.id)
    return (standing, *map(sqlite_order, times))


def _is_fork(node: Node, era: Era, *, resets: bool = False) -> bool:
    """Whether the era's export takes the session for a conversation of its own."""
    if era < Era.V20:
        return node.branched_from is not None
    if node.source == "tool":
        return True
    markers = [node.branched_from, node.delegate_from, *([node.reset_from] if resets else [])]
    if node.parent_id:
        return node.parent_id in markers
    return any(marker is not None for marker in markers)


def _is_segment(nodes: Nodes, node: Node, era: Era) -> bool:
    """Whether the era's export goes on from the session to its parent."""
    parent = nodes.get(node.parent_id or "")
    return parent is not None and parent.compressed and not _is_fork(node, era, resets=era >= Era.V22)


def _follows(nodes: Nodes, child: Node, era: Era) -> bool:
    """Whether the era's export goes on from a compressed session to this child of it."""
    return not _is_fork(child, era) if era < Era.V20 else _is_segment(nodes, child, era)
