"""Which cut-off session may continue which dead end, both seen at once.

One dead end may fit several cut roots and the other way round. Whatever hangs together is one decision: to
link two sessions to one parent would make a fork.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import msgspec

from statemend.audit.facts import is_time
from statemend.audit.handoff import CutRoot, Match, cut_roots, dead_ends, exported_links, match
from statemend.formats.artifact import Artifact
from statemend.repair.recipe import RecipeContext
from statemend.store.lineage import Node

#: So many carried rows are no accident when something else agrees with them.
_CARRIED = 2


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
        carried = self.match.carried >= _CARRIED and len(self.match.reasons) >= 2
        return carried or (self.export is not None and self.export.damage is None)

    @property
    def early(self) -> bool:
        """Whether the root was begun before the dead end's end was written. Up to 0.17 such a child is not
        taken for the continuation."""
        return is_time(self.dead.ended_at) and self.root.started_at < self.dead.ended_at


class Handoffs:
    """Every pair of a store, and what hangs together."""

    def __init__(self, pairs: tuple[Pair, ...]) -> None:
        self.pairs = pairs

    def of_root(self, session_id: str) -> tuple[Pair, ...]:
        """The pairs of a cut root."""
        return tuple(pair for pair in self.pairs if pair.root.id == session_id)

    def of_dead_end(self, session_id: str) -> tuple[Pair, ...]:
        """The pairs of a dead end."""
        return tuple(pair for pair in self.pairs if pair.dead.id == session_id)

    def together(self, session_id: str) -> tuple[Pair, ...]:
        """The pairs that are one decision with those of this cut root, in the order of the dead ends."""
        return next((group for group in self._groups if any(p.root.id == session_id for p in group)), ())

    @cached_property
    def _groups(self) -> tuple[tuple[Pair, ...], ...]:
        groups: list[tuple[Pair, ...]] = []
        waiting = list(self.pairs)
        while waiting:
            group = [waiting.pop(0)]
            for pair in group:
                near = [p for p in waiting if p.root.id == pair.root.id or p.dead.id == pair.dead.id]
                waiting = [p for p in waiting if p not in near]
                group += near
            groups.append(tuple(sorted(group, key=self.pairs.index)))
        return tuple(groups)


def handoffs(context: RecipeContext) -> Handoffs:
    """The pairs of the store that ``context`` is about, found once."""
    found: Handoffs = context.once("handoffs", lambda: Handoffs(tuple(_pairs(context))))
    return found


def _pairs(context: RecipeContext) -> Iterator[Pair]:
    roots = list(cut_roots(context.audit))
    links = exported_links(context.audit) if roots else {}
    artifacts = {artifact.path: artifact for artifact in context.inventory.artifacts} if links else {}
    for dead in dead_ends(context.audit) if roots else ():
        for root in roots:
            found = match(context.audit, dead, root, links)
            if found is not None and _possible(context, dead, root):
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
