"""Segments of one conversation that no release ever linked: each begins with a summary of the one before.

Releases before 0.13 made a continuation an independent session: no parent link, and the older one did not end
by compression. What holds them together is the number that Hermes gave to the title of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from statemend.audit import lived
from statemend.audit.context import Context
from statemend.audit.facts import is_time
from statemend.audit.handoff import HANDOFF_WINDOW, CutRoot, dead_ends, stem
from statemend.audit.holes import GAPS
from statemend.audit.pairing import CARRIED, carried_rows, differ, exported_links, pairings
from statemend.audit.vanished import row_missing_between
from statemend.store.lineage import Relation

#: How a session ends that another follows by a link: where that one is gone, the link was not forgotten.
_FOLLOWED = ("compression", "branched")

TITLED = """
SELECT id, source, user_id, session_key, title, started_at, ended_at, end_reason
FROM sessions
WHERE title IS NOT NULL
ORDER BY id
"""


#: The last row of a session that stands before a row.
LAST_BEFORE = "SELECT MAX(id) FROM messages WHERE session_id = ? AND id < ?"
#: What a rule that uses this module reads.
READS = (TITLED, LAST_BEFORE, GAPS, *lived.READS)


class Segment(NamedTuple):
    """A session with a title: a row of ``TITLED``."""

    id: str
    source: object
    user_id: object
    session_key: object
    title: object
    started_at: object
    ended_at: object
    end_reason: object


class Link(NamedTuple):
    """A session and the one that seems to be its continuation. ``reasons`` beside their titles, each in a few
    words; ``carried`` rows stand in both. ``doubt`` is why another session may have stood between them."""

    before: Segment
    root: CutRoot
    reasons: tuple[str, ...]
    carried: int
    doubt: str | None


def never_linked(context: Context, roots: Sequence[CutRoot]) -> Mapping[str, Link]:
    """For each cut root that follows another session by the number of its title, and that no dead end fits,
    the link that is missing."""
    wanted: dict[tuple[str, int], CutRoot] = {}
    for root in roots:
        name, number = stem(root.title) if root.title else ("", 1)
        if number > 1 and root.certain:
            wanted[name, number - 1] = root
    if not wanted:
        return {}
    found: dict[str, Link] = {}
    for segment in map(Segment._make, context.store.rows(TITLED)):
        root_after = wanted.get(stem(segment.title)) if isinstance(segment.title, str) else None
        if root_after is not None and _fits(context, segment, root_after):
            found.setdefault(root_after.id, _link(context, segment, root_after))
    if found:
        links = exported_links(context)
        for match in pairings(context.store, dead_ends(context), roots, links):
            found.pop(match.child, None)
    return found


def _fits(context: Context, segment: Segment, root: CutRoot) -> bool:
    if not isinstance(segment.id, str) or segment.id == root.id or segment.end_reason in _FOLLOWED:
        return False
    if not is_time(segment.started_at) or segment.started_at > root.started_at:  # type: ignore[operator]
        return False
    if root.source not in (segment.source, "unknown"):
        return False
    if differ(segment.user_id, root.user_id) or differ(segment.session_key, root.session_key):
        return False
    edges = (context.graph.edge(child.id) for child in context.graph.children(segment.id))
    return not any(edge is not None and edge.relation is Relation.CONTINUATION for edge in edges)


def _link(context: Context, segment: Segment, root: CutRoot) -> Link:
    counts = context.census.get(segment.id)
    stops = (segment.ended_at, counts.last_at if counts else None)
    reasons = []
    if any(_near(stop, begin) for stop in stops for begin in (root.started_at, root.summary_at)):
        reasons.append("begins where the other stops")
    carried = carried_rows(context.store, segment.id, root)
    if carried >= CARRIED:
        reasons.append("carries rows of the other")
    return Link(segment, root, tuple(reasons), carried, _doubt(context, segment, root))


def _doubt(context: Context, segment: Segment, root: CutRoot) -> str | None:
    last = context.store.value(LAST_BEFORE, (segment.id, root.summary_row))
    if last is not None and row_missing_between(context, last, root.summary_row):
        return "rows are missing between them"
    until = segment.ended_at if is_time(segment.ended_at) else root.started_at
    if not any(lived.signs_of_life(context, segment.id, segment.started_at, until)):
        return "the first may have been brought in without what followed it"
    return None


def _near(stop: object, begin: float) -> bool:
    return isinstance(stop, int | float) and is_time(stop) and abs(begin - stop) <= HANDOFF_WINDOW
