"""Which sessions each release of Hermes would follow from one: on resume, on export, on delete.

The rules differ from release to release, and within one release between resume and export. They are stated
here as each release applies them, over the same nodes, so that their answers can be set side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from statemend.store.family import Deletion, Node, last_active
from statemend.store.order import sqlite_order
from statemend.store.schema import Era

Nodes = Mapping[str, Node]
#: The children of a session in the order in which their rows lie.
Children = Callable[[str], Sequence[Node]]

_HOPS = {Era.V13: 100, Era.V16: 100, Era.V18: 100, Era.V20: 100, Era.V22: 1000}


class Succession:
    """Where one era goes from each session. Each step is found once."""

    def __init__(self, nodes: Nodes, children: Children, era: Era) -> None:
        self._nodes = nodes
        self._children = children
        self._era = era
        self._resumed = cache(self._find_resumed)
        self._exported = cache(self._find_exported)
        self._continued = cache(self._find_continued)
        self._tip = cache(self._find_tip)
        self._ends: dict[str, tuple[str, int] | None] = {}

    def resumes_with(self, session_id: str) -> str | None:
        """The child that resume goes on with from a session, ``None`` where it stops there."""
        return self._resumed(session_id)

    def exports_with(self, session_id: str) -> str | None:
        """The child that export goes on with from a session, ``None`` where it stops there, and before 0.18.
        A session of which export takes none of the others may still be exported alone."""
        return self._exported(session_id) if self._era >= Era.V18 and session_id in self._nodes else None

    def resume_tip(self, session_id: str) -> str:
        """The session that ``get_compression_tip`` returns; the session itself where nothing continues it."""
        return self._tip(session_id)

    def export_chain(self, session_id: str) -> tuple[str, ...] | None:
        """The sessions that ``get_compression_lineage`` returns, oldest first; ``None`` before 0.18, which
        had no such export. 0.18 itself would not end on a cycle; the answer is that of 0.19.
        """
        if self._era < Era.V18:
            return None
        node = self._nodes.get(session_id)
        if node is None or _is_fork(node, self._era):
            return (session_id,)
        root = session_id
        ancestors = {root}
        while (previous := self._continued(root)) is not None and previous not in ancestors:
            root = previous
            ancestors.add(root)
        chain = {root: None}
        current = root
        while (following := self._exported(current)) is not None and following not in chain:
            current = following
            chain[current] = None
        return tuple(chain) if session_id in chain else (session_id,)

    def _find_tip(self, session_id: str) -> str:
        end = self._end(session_id)
        if end is not None and end[1] <= _HOPS[self._era]:
            return end[0]
        current = session_id
        seen = {current}
        for _ in range(_HOPS[self._era]):
            following = self._resumed(current)
            if following is None or (self._era >= Era.V18 and following in seen):
                return current
            current = following
            seen.add(current)
        return current

    def _end(self, session_id: str) -> tuple[str, int] | None:
        """Where resume would end if it never gave up, and after how many steps; ``None`` where it would go
        round. Every session on the way learns it too, so that a long line is walked once."""
        way: dict[str, None] = {}
        current = session_id
        while current not in self._ends and current not in way:
            way[current] = None
            following = self._resumed(current)
            if following is None:
                self._ends[current] = (current, 0)
                break
            current = following
        end = self._ends.get(current)
        for each in reversed(way):
            if each not in self._ends:
                end = None if end is None else (end[0], end[1] + 1)
                self._ends[each] = end
        return self._ends[session_id]

    def _find_resumed(self, session_id: str) -> str | None:
        """The child that resume goes on with."""
        parent = self._nodes.get(session_id)
        if parent is None or not parent.compressed:
            return None
        if self._era < Era.V18:
            later = [child for child in self._children(session_id) if _starts_after(child, parent)]
            newest = max(later, key=lambda child: sqlite_order(child.started_at), default=None)
        else:
            candidates = [
                child
                for child in self._children(session_id)
                if not child.marked
                and child.source != "tool"
                and (self._era < Era.V22 or child.reset_from is None)
            ]
            newest = max(candidates, key=lambda child: _preference(child, self._era), default=None)
        return None if newest is None else newest.id

    def _find_exported(self, session_id: str) -> str | None:
        """The child that export goes on with: the oldest that it takes for a segment."""
        if not self._nodes[session_id].compressed:
            return None
        for child in oldest_first(self._children(session_id)):
            if not _is_fork(child, self._era, resets=self._era >= Era.V22):
                return child.id
        return None

    def _find_continued(self, session_id: str) -> str | None:
        """The parent that export goes back to."""
        node = self._nodes[session_id]
        parent = self._nodes.get(node.parent_id or "")
        if parent is None or not parent.compressed or _is_fork(node, self._era, resets=self._era >= Era.V22):
            return None
        return parent.id


def deletion(children: Children, delegates: Children, session_id: str, era: Era) -> Deletion:
    """What ``delete_session`` of the era takes beside the session: up to 0.16 nothing, from 0.17 its
    delegates and theirs. Every other child of a session that goes loses its parent link. A store of 0.16 is
    taken for one of 0.17, which deletes more. ``delegates`` are the sessions that are marked as delegates of
    one.
    """
    doomed = {session_id}
    waiting = [session_id] if era >= Era.V16 else []
    while waiting:
        gone = waiting.pop()
        marked = [child for child in children(gone) if child.delegate_from is not None]
        for node in (*delegates(gone), *marked):
            if node.id not in doomed:
                doomed.add(node.id)
                waiting.append(node.id)
    detached = {child.id for gone in doomed for child in children(gone) if child.id not in doomed}
    return Deletion(tuple(sorted(doomed)), tuple(sorted(detached)))


def oldest_first(siblings: Sequence[Node]) -> list[Node]:
    """Siblings by start, those of one start in the order in which their rows lie."""
    return sorted(siblings, key=lambda node: sqlite_order(node.started_at))


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
