"""The graph of sessions: every parent link with what it means, and where resume, export and delete would
go.

One column, ``parent_session_id``, carries continuations, branches, delegates and resets, and the releases
of Hermes tell them apart by different rules. The graph holds only sessions that are in a family; any other
session is its own tip, its own chain and its own family.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from statemend.store.ancestry import Ancestry, rings
from statemend.store.family import Activity, Deletion, Edge, Node, Relation, load_nodes, opens_with_summary
from statemend.store.relations import fits, is_candidate, relate
from statemend.store.resumption import Resumption
from statemend.store.schema import Era
from statemend.store.succession import Succession, deletion, oldest_first

if TYPE_CHECKING:
    from statemend.store.connection import Store

_HAS_MESSAGES = "SELECT 1 FROM messages WHERE session_id = ? LIMIT 1"

__all__ = ["Activity", "Deletion", "Edge", "Graph", "Node", "Relation"]


class Graph:
    """Families of sessions. Reads the opening rows of a session only when a link cannot be told without
    them, so it is usable as long as its store is open.
    """

    def __init__(self, store: Store, nodes: dict[str, Node]) -> None:
        self._store = store
        self._nodes = nodes
        self._children: dict[str, list[Node]] = {}
        self._delegates: dict[str, list[Node]] = {}
        for node in nodes.values():
            if node.parent_id:
                self._children.setdefault(node.parent_id, []).append(node)
            if node.delegate_from is not None:
                self._delegates.setdefault(node.delegate_from, []).append(node)
        self._openings: dict[str, bool] = {}
        self._holding: dict[str, bool] = {}
        self._edges: dict[str, Edge] = {}
        self._fitting: dict[str, bool] = {}
        self._continuations: dict[str, tuple[Node, ...]] = {}
        self._successions: dict[Era, Succession] = {}
        self._resumptions: dict[Era, Resumption] = {}
        self._ancestry: Ancestry | None = None

    @classmethod
    def load(cls, store: Store) -> Graph:
        """The families of a store: sessions with a parent or a child, those that compression ended, and
        those that carry a lineage marker.
        """
        return cls(store, load_nodes(store))

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Every session of a family, by id, in the order in which the rows lie."""
        return MappingProxyType(self._nodes)

    def children(self, session_id: str) -> tuple[Node, ...]:
        """The sessions whose rows name this one as parent, oldest first. The parent may have no row."""
        return tuple(oldest_first(self._rows(session_id)))

    def edge(self, child_id: str) -> Edge | None:
        """The link of a session to its parent; ``None`` for one without a parent and for an unknown one."""
        child = self._nodes.get(child_id)
        if child is None or not child.parent_id:
            return None
        edge = self._edges.get(child_id)
        if edge is None:
            parent = self._nodes.get(child.parent_id)
            one_fits = partial(self._one_fits, child.parent_id)
            edge = relate(parent, child, one_fits, self._opens_with_summary, self._store.schema.era)
            self._edges[child_id] = edge
        return edge

    def edges(self) -> Iterator[Edge]:
        """The links of all sessions that name a parent."""
        for session_id in self._nodes:
            edge = self.edge(session_id)
            if edge is not None:
                yield edge

    def continuations(self, session_id: str) -> tuple[Node, ...]:
        """The children that may continue a session which compression ended, oldest first; none for any
        other.

        Left out are those marked as branch, delegate or reset of this very session, runs of tools, and
        probable delegates from before there were markers.
        """
        parent = self._nodes.get(session_id)
        if parent is None or not parent.compressed:
            return ()
        if session_id not in self._continuations:
            self._continuations[session_id] = tuple(
                child
                for child in self.children(session_id)
                if is_candidate(parent, child) and self._is_continuation(child.id)
            )
        return self._continuations[session_id]

    def continues(self, parent_id: str | None, child_id: str) -> bool:
        """Whether a session is among the continuations of another."""
        parent, child = self._nodes.get(parent_id or ""), self._nodes.get(child_id)
        if parent is None or child is None or child.parent_id != parent.id:
            return False
        return is_candidate(parent, child) and self._is_continuation(child_id)

    def resumes_with(self, session_id: str, era: Era) -> str | None:
        """The child that a release of ``era`` resumes instead of this session, one step of
        :meth:`resume_tip`."""
        return self._succession(era).resumes_with(session_id)

    def exports_with(self, session_id: str, era: Era) -> str | None:
        """The child that a release of ``era`` exports behind this session, one step of
        :meth:`export_chain`."""
        return self._succession(era).exports_with(session_id)

    def resume_tip(self, session_id: str, era: Era) -> str:
        """The session that a release of ``era`` resumes instead of this one (``get_compression_tip``)."""
        return self._succession(era).resume_tip(session_id)

    def opened_by_id(self, session_id: str, era: Era) -> str:
        """The session that a release of ``era`` opens where this one is asked for by its id
        (``resolve_resume_session_id``). In this 0.16 is like 0.13, and ``Era.V16`` stands for 0.17."""
        if era not in self._resumptions:
            self._resumptions[era] = Resumption(
                self._nodes, self._rows, self._succession(era), self._holds_messages, era
            )
        return self._resumptions[era].opened(session_id)

    def export_chain(self, session_id: str, era: Era) -> tuple[str, ...] | None:
        """The sessions that a release of ``era`` exports as one conversation (``get_compression_lineage``),
        oldest first; ``None`` before 0.18, which could not.
        """
        return self._succession(era).export_chain(session_id)

    def deletion(self, session_id: str, era: Era) -> Deletion:
        """What ``delete_session`` of a release of ``era`` takes with this session, and whom it detaches."""
        return deletion(self._rows, self._marked_for, session_id, era)

    def family(self, session_id: str) -> tuple[str, ...]:
        """Every session connected with this one through parent links, itself included, sorted by id."""
        found = {session_id}
        waiting = [session_id]
        while waiting:
            current = waiting.pop()
            node = self._nodes.get(current)
            kin = {child.id for child in self._rows(current)}
            if node is not None and node.parent_id in self._nodes:
                kin.add(node.parent_id)
            waiting += kin - found
            found |= kin
        return tuple(sorted(found))

    def is_above(self, ancestor_id: str, session_id: str) -> bool:
        """Whether following parent links from a session leads to another, or round to itself."""
        if self._ancestry is None:
            self._ancestry = Ancestry(self._nodes, self._rows)
        return self._ancestry.is_above(ancestor_id, session_id)

    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """Rings of parent links, and of delegate markers, each once and beginning with its smallest id."""
        parents = {node.id: node.parent_id for node in self._nodes.values()}
        delegators = {node.id: node.delegate_from for node in self._nodes.values()}
        return tuple(sorted({*rings(parents), *rings(delegators)}))

    def _rows(self, session_id: str) -> list[Node]:
        return self._children.get(session_id, [])

    def _marked_for(self, session_id: str) -> list[Node]:
        return self._delegates.get(session_id, [])

    def _succession(self, era: Era) -> Succession:
        if era not in self._successions:
            self._successions[era] = Succession(self._nodes, self._rows, era)
        return self._successions[era]

    def _is_continuation(self, child_id: str) -> bool:
        edge = self.edge(child_id)
        return edge is not None and edge.relation is Relation.CONTINUATION

    def _one_fits(self, parent_id: str) -> bool:
        if parent_id not in self._fitting:
            parent = self._nodes[parent_id]
            self._fitting[parent_id] = any(
                fits(parent, child, self._opens_with_summary) for child in self._rows(parent_id)
            )
        return self._fitting[parent_id]

    def _holds_messages(self, session_id: str) -> bool:
        if session_id not in self._holding:
            self._holding[session_id] = self._store.one(_HAS_MESSAGES, (session_id,)) is not None
        return self._holding[session_id]

    def _opens_with_summary(self, session_id: str) -> bool:
        if session_id not in self._openings:
            self._openings[session_id] = opens_with_summary(self._store, session_id)
        return self._openings[session_id]
