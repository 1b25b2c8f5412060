"""Which cut-off session may continue which dead end, both seen at once.

One dead end may fit several cut roots and the other way round. Whatever hangs together is one decision: to
link two sessions to one parent would make a fork.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec

from statemend.audit.facts import is_time
from statemend.audit.handoff import CutRoot, cut_roots, dead_ends
from statemend.audit.pairing import CARRIED, Match, exported_links, pairings
from statemend.formats.artifact import Artifact
from statemend.repair.recipe import RecipeContext
from statemend.store.lineage import Node


class Pair(msgspec.Struct, frozen=True):
    """A dead end and a cut root that may be its continuation. ``export`` is the file that names the link."""

    dead: Node
    root: CutRoot
    match: Match
    export: Artifact | None

    @property
    def strong(self) -> bool:
        """Whether the evidence decides: an undamaged export, made when the link was there, names it; or rows
        stand in both sessions and something else (time, title, routing key) agrees."""
        carried = self.match.carried >= CARRIED and len(self.match.reasons) >= 2
        return carried or (self.export is not None and self.export.damage is None)

    @property
    def early(self) -> bool:
        """Whether the root was begun before the dead end's end was written. Up to 0.17 such a child is not
        taken for the continuation."""
        return is_time(self.dead.ended_at) and self.root.started_at < self.dead.ended_at


class Handoffs:
    """Every pair of a store, and what hangs together."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._of_root: dict[str, list[Pair]] = {}
        self._of_dead_end: dict[str, list[Pair]] = {}
        for pair in pairs:
            self._of_root.setdefault(pair.root.id, []).append(pair)
            self._of_dead_end.setdefault(pair.dead.id, []).append(pair)

    def of_root(self, session_id: str) -> tuple[Pair, ...]:
        """The pairs of a cut root."""
        return tuple(self._of_root.get(session_id, ()))

    def of_dead_end(self, session_id: str) -> tuple[Pair, ...]:
        """The pairs of a dead end."""
        return tuple(self._of_dead_end.get(session_id, ()))

    def together(self, session_id: str) -> tuple[Pair, ...]:
        """The pairs that are one decision with those of this cut root, in the order of the dead ends."""
        return self._groups.get(session_id, ())

    @cached_property
    def _groups(self) -> dict[str, tuple[Pair, ...]]:
        """For each cut root, the pairs that hang together with its own."""
        groups: dict[str, tuple[Pair, ...]] = {}
        order = {end: place for place, end in enumerate(self._of_dead_end)}
        for start in self._of_root:
            if start not in groups:
                roots, ends = self._joined(start)
                in_order = sorted(ends, key=order.__getitem__)
                group = tuple(pair for end in in_order for pair in self._of_dead_end[end])
                groups.update(dict.fromkeys(roots, group))
        return groups

    def _joined(self, root: str) -> tuple[set[str], set[str]]:
        """The cut roots and the dead ends that a chain of pairs leads to from a cut root."""
        roots, ends = {root}, set[str]()
        waiting = [root]
        while waiting:
            for near in self._of_root[waiting.pop()]:
                if near.dead.id not in ends:
                    ends.add(near.dead.id)
                    found = {pair.root.id for pair in self._of_dead_end[near.dead.id]} - roots
                    roots |= found
                    waiting += found
        return roots, ends


def handoffs(context: RecipeContext) -> Handoffs:
    """The pairs of the store that ``context`` is about, found once."""
    found: Handoffs = context.once("handoffs", lambda: Handoffs(_pairs(context)))
    return found


def _pairs(context: RecipeContext) -> Iterator[Pair]:
    roots = list(cut_roots(context.audit))
    if not roots:
        return
    ends = list(dead_ends(context.audit))
    links = exported_links(context.audit)
    artifacts = {artifact.path: artifact for artifact in context.inventory.artifacts} if links else {}
    root_of, end_of = {root.id: root for root in roots}, {dead.id: dead for dead in ends}
    for found in pairings(context.store, ends, roots, links):
        dead, root = end_of[found.parent], root_of[found.child]
        if _possible(context, dead, root):
            yield Pair(dead, root, found, artifacts.get(links.get((dead.id, root.id), "")))


def _possible(context: RecipeContext, dead: Node, root: CutRoot) -> bool:
    """Whether the link would not lead from a session back to itself, or to one that is younger."""
    if is_time(dead.started_at) and dead.started_at > root.started_at:
        return False
    seen: set[str] = set()
    above: str | None = dead.id
    while above is not None and above not in seen:
        if above == root.id:
            return False
        seen.add(above)
        node = context.graph.nodes.get(above)
        above = node.parent_id if node is not None else None
    return True


def matchings(pairs: tuple[Pair, ...], limit: int) -> list[tuple[Pair, ...]]:
    """Every way to link some of ``pairs`` so that no session is in two of them, most links first; beyond
    ``limit`` ways, only each pair by itself."""
    ways: list[tuple[Pair, ...]] = [()]
    for pair in pairs:
        ways += [(*way, pair) for way in ways if not any(_share(pair, other) for other in way)]
        if len(ways) > limit + 1:
            return [(each,) for each in pairs]
    return sorted(filter(None, ways), key=len, reverse=True)


def _share(one: Pair, other: Pair) -> bool:
    return one.root.id == other.root.id or one.dead.id == other.dead.id
