"""Who is above whom along parent links, told without walking up, in whatever shape a damaged store is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from statemend.store.family import Node


class Ancestry:
    """The order of a graph of sessions. Those below a root, or below a session of a ring, are counted through
    once: of two of them one is above the other when the count of the other lies within its own. The sessions
    of a ring are above each other, and above all that hangs below any of them.
    """

    def __init__(self, nodes: Mapping[str, Node], children: Callable[[str], Sequence[Node]]) -> None:
        self._children = children
        parents = {node.id: node.parent_id for node in nodes.values()}
        self._ring = {each: number for number, ring in enumerate(rings(parents)) for each in ring}
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._below_ring: dict[str, int] = {}
        for node in nodes.values():
            if node.id in self._ring or node.parent_id not in nodes:
                self._count(node.id)

    def is_above(self, ancestor_id: str, session_id: str) -> bool:
        """Whether following parent links from a session leads to another, or round to itself."""
        if session_id not in self._first or ancestor_id not in self._first:
            return False
        ring = self._below_ring.get(session_id)
        if ring is not None and self._ring.get(ancestor_id) == ring:
            return True
        first = self._first[session_id]
        return self._first[ancestor_id] < first <= self._last[ancestor_id]

    def _count(self, root: str) -> None:
        """Count through a tree; another session of a ring is the root of its own."""
        ring = self._ring.get(root)
        waiting = [root]
        while waiting:
            current = waiting.pop()
            if current in self._first:
                self._last[current] = len(self._first) - 1
                continue
            self._first[current] = len(self._first)
            if ring is not None:
                self._below_ring[current] = ring
            waiting.append(current)
            waiting += [child.id for child in self._children(current) if child.id not in self._ring]


def rings(onward: Mapping[str, str | None]) -> Iterator[tuple[str, ...]]:
    """The rings of a graph in which each node points to at most one other."""
    settled: set[str] = set()
    for start in onward:
        path: dict[str, None] = {}
        current: str | None = start
        while current is not None and current in onward and current not in settled and current not in path:
            path[current] = None
            current = onward[current]
        if current is not None and current in path:
            ring = list(path)[list(path).index(current) :]
            smallest = ring.index(min(ring))
            yield (*ring[smallest:], *ring[:smallest])
        settled.update(path)
