"""Which cut-off session may continue which dead end.

One broken handoff leaves both, and a store may hold thousands of either. So nothing is compared with
everything: the cut roots are sorted by title, by time and by the rows that they begin with, and each dead end
looks up the few that can fit.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from statemend.audit import handoff
from statemend.audit.context import Context
from statemend.audit.facts import is_time
from statemend.audit.handoff import HANDOFF_WINDOW, CutRoot, stem
from statemend.store.connection import Store
from statemend.store.lineage import Node

#: So many rows that stand in both sessions are no accident.
CARRIED = 2
#: So many rows behind the summary are compared with so many last rows of the parent: the carried tail.
_FIRST = 12
_LAST = 200
#: Of the roots that the time alone ties to a dead end, so many times are looked at, the nearest.
_NEAREST = 200

PEER = "SELECT source, user_id, session_key, title, ended_at FROM sessions WHERE id = ?"
FIRST_ROWS = """
SELECT role, content, tool_call_id
FROM messages
WHERE session_id = ? AND id > ?
ORDER BY id
LIMIT ?
"""
LAST_ROWS = """
SELECT role, content, tool_call_id
FROM messages
WHERE session_id = ?
ORDER BY id DESC
LIMIT ?
"""
#: What a rule that uses this module reads.
READS = (*handoff.READS, PEER, FIRST_ROWS, LAST_ROWS)

#: What exports say about who continues whom: (parent, child) to the path of the file that says so.
Links = Mapping[tuple[str, str], str]


class Match(msgspec.Struct, frozen=True):
    """A dead end and a cut root that may belong together, and why. ``carried`` rows stand in both."""

    parent: str
    child: str
    reasons: tuple[str, ...]
    carried: int


def exported_links(context: Context) -> dict[tuple[str, str], str]:
    """What the exports of this home say about who continues whom."""
    links: dict[tuple[str, str], str] = {}
    for artifact, section in context.inventory.sections():
        if section.parent_id:
            links.setdefault((section.parent_id, section.session_id), artifact.path)
        for parent, child in pairwise(section.lineage):
            links.setdefault((parent, child), artifact.path)
    return links


def pairings(store: Store, ends: Iterable[Node], roots: Sequence[CutRoot], links: Links) -> Iterator[Match]:
    """Every dead end with every cut root that may continue it, and why: something says so, and nothing says
    otherwise. In the order of ``ends``, for each in the order of ``roots``. Of roots that the time alone ties
    to a dead end only the nearest are looked at, ``_NEAREST`` of their times.

    ``links`` is what :func:`exported_links` found.
    """
    if not roots:
        return
    sorted_roots = _Roots(store, roots, links)
    for dead in ends:
        peer = store.one(PEER, (dead.id,))
        if peer is None or not is_time(peer[-1]):
            continue
        carried = sorted_roots.carrying(store.rows(LAST_ROWS, (dead.id, _LAST)))
        for place in sorted_roots.near(dead.id, peer, carried):
            found = _match(dead.id, peer, roots[place], links, carried[place])
            if found is not None:
                yield found


class _Roots:
    """The cut roots, by what can tie one to a dead end. A root is named by its place in the sequence."""

    def __init__(self, store: Store, roots: Sequence[CutRoot], links: Links) -> None:
        places = {root.id: place for place, root in enumerate(roots)}
        self._linked: dict[str, list[int]] = {}
        for parent, child in links:
            if child in places:
                self._linked.setdefault(parent, []).append(places[child])
        self._numbered: dict[tuple[str, int], list[int]] = {}
        self._times: dict[str | None, list[tuple[float, int]]] = {}
        self._all_times: list[tuple[float, int]] = []
        self._carrying: dict[bytes, list[int]] = {}
        for place, root in enumerate(roots):
            own, number = stem(root.title) if root.title else (None, 0)
            if own is not None:
                self._numbered.setdefault((own, number), []).append(place)
            times = [(root.started_at, place), (root.summary_at, place)]
            self._times.setdefault(own, []).extend(times)
            self._all_times += times
            for row in store.rows(FIRST_ROWS, (root.id, root.summary_row, _FIRST)):
                if row[1]:
                    self._carrying.setdefault(_digest(row), []).append(place)
        for times in (self._all_times, *self._times.values()):
            times.sort()

    def carrying(self, tail: Iterable[tuple[Any, ...]]) -> Counter[int]:
        """How many of its first rows each root has in common with the last rows of a dead end."""
        found: Counter[int] = Counter()
        for digest in {_digest(row) for row in tail if row[1]}:
            found.update(self._carrying.get(digest, ()))
        return found

    def near(self, dead: str, peer: tuple[Any, ...], carried: Mapping[int, int]) -> list[int]:
        """The roots that something ties to a dead end: an export, the next number of its title, the time, or
        carried rows."""
        title, ended_at = peer[-2:]
        found = set(self._linked.get(dead, ()))
        found |= {place for place, rows in carried.items() if rows >= CARRIED}
        comparable = [self._all_times]
        if isinstance(title, str) and title:
            own, number = stem(title)
            found.update(self._numbered.get((own, number + 1), ()))
            comparable = [self._times.get(own, []), self._times.get(None, [])]
        for times in comparable:
            found.update(_nearest(times, ended_at))
        return sorted(found)


def shared_rows(store: Store, parent: str, child: str) -> tuple[int, int]:
    """How many of the first rows of ``child`` that hold text stand among the last rows of ``parent``, and how
    many were looked for."""
    tail = {_digest(row) for row in store.rows(LAST_ROWS, (parent, _LAST)) if row[1]}
    first = [row for row in store.rows(FIRST_ROWS, (child, -1, _FIRST)) if row[1]]
    return sum(_digest(row) in tail for row in first), len(first)


def carried_rows(store: Store, parent: str, root: CutRoot) -> int:
    """How many of the first rows behind the summary of ``root`` stand among the last rows of ``parent``."""
    tail = {_digest(row) for row in store.rows(LAST_ROWS, (parent, _LAST)) if row[1]}
    first = store.rows(FIRST_ROWS, (root.id, root.summary_row, _FIRST))
    return sum(_digest(row) in tail for row in first if row[1])


def _nearest(times: list[tuple[float, int]], at: float) -> Iterator[int]:
    """The places whose time is within the window around ``at``, at most ``_NEAREST``, nearest first."""
    later = bisect_left(times, at, key=lambda entry: entry[0])
    earlier = later - 1
    for _ in range(_NEAREST):
        after = times[later][0] - at if later < len(times) else math.inf
        before = at - times[earlier][0] if earlier >= 0 else math.inf
        if min(before, after) > HANDOFF_WINDOW:
            return
        if after <= before:
            yield times[later][1]
            later += 1
        else:
            yield times[earlier][1]
            earlier -= 1


def _digest(row: tuple[Any, ...]) -> bytes:
    return hashlib.blake2b(repr(row).encode("utf-8", "backslashreplace"), digest_size=16).digest()


def _match(dead: str, peer: tuple[Any, ...], root: CutRoot, links: Links, carried: int) -> Match | None:
    source, user_id, session_key, title, ended_at = peer
    if dead == root.id or root.started_at < ended_at - HANDOFF_WINDOW:
        return None
    if root.source not in (source, "unknown"):
        return None
    if differ(user_id, root.user_id) or differ(session_key, root.session_key):
        return None
    reasons = ["an export shows it so"] if (dead, root.id) in links else []
    if isinstance(title, str) and title and root.title:
        (dead_stem, dead_number), (root_stem, root_number) = stem(title), stem(root.title)
        if dead_stem != root_stem:
            return None
        if root_number == dead_number + 1:
            reasons.append("the next number of the same title")
    if min(abs(root.summary_at - ended_at), abs(root.started_at - ended_at)) <= HANDOFF_WINDOW:
        reasons.append("begins where the other ends")
    if session_key and session_key == root.session_key:
        reasons.append("same routing key")
    if carried >= CARRIED:
        reasons.append("carries rows of the other")
    elif not root.certain and (dead, root.id) not in links:
        return None
    if not reasons or reasons == ["same routing key"]:
        return None
    return Match(dead, root.id, tuple(reasons), carried)


def differ(one: object, other: object) -> bool:
    """Whether two cells, of a user or a routing key, contradict each other."""
    return bool(one) and bool(other) and one != other
