"""Which session each release opens where one is asked for by its id (``resolve_resume_session_id``).

That goes further than the tip of a compressed line, where lists lead: from it on to the newest child,
whatever its parent ended by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from statemend.store.family import Node
from statemend.store.order import sqlite_order
from statemend.store.relations import RESET_REASONS
from statemend.store.schema import Era
from statemend.store.succession import Children

#: So many sessions are asked for messages; up to 0.17 the first is not counted.
_HOPS = 32


def opened_by_id(
    start: str, nodes: Mapping[str, Node], children: Children, holds: Callable[[str], bool], era: Era
) -> str:
    """The session that a release of ``era`` opens from ``start``, which from 0.17 on is the tip. ``holds``
    tells whether a session has messages. On the way from child to child 0.18 and newer open the last session
    that has some, and older ones the first.
    """
    found = start
    current, seen = start, {start}
    for _ in range(_HOPS if era >= Era.V18 else _HOPS + 1):
        if holds(current):
            found = current
            if era < Era.V18:
                break
        following = _newest_child(nodes.get(current), children(current), era)
        if following is None or following in seen:
            break
        current = following
        seen.add(current)
    return found


def _newest_child(parent: Node | None, children: Sequence[Node], era: Era) -> str | None:
    """The child that began last, but for those that a release of ``era`` takes for other conversations."""
    if era >= Era.V18:
        children = [each for each in children if not each.marked and each.source != "tool"]
    if era >= Era.V20:
        ended = parent is not None and parent.end_reason in RESET_REASONS
        key = parent.session_key if parent is not None and ended else None
        children = [each for each in children if each.reset_from is None and not _same(each.session_key, key)]
    order = [(sqlite_order(each.started_at), sqlite_order(each.id), each.id) for each in children]
    return max(order)[-1] if order else None


def _same(key: str | None, other: str | None) -> bool:
    """Whether two chats are the same; a key that is empty names none."""
    return bool(key) and key == other
