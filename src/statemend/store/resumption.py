"""Which session each release opens where one is asked for by its id (``resolve_resume_session_id``).

That goes further than the tip of a compressed line, where lists lead: from it on to the newest child,
whatever its parent ended by.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from statemend.store.order import sqlite_order
from statemend.store.relations import RESET_REASONS
from statemend.store.schema import Era
from statemend.store.succession import Children, Nodes, Succession

#: So many sessions are asked for messages; up to 0.17 the first is not counted.
_HOPS = 32


class Resumption:
    """Where the releases of one era resume a session that is asked for by its id. ``holds`` tells whether a
    session has messages. Each step is found once."""

    def __init__(
        self,
        nodes: Nodes,
        children: Children,
        succession: Succession,
        holds: Callable[[str], bool],
        era: Era,
    ) -> None:
        self._nodes = nodes
        self._children = children
        self._tip = succession.resume_tip
        self._holds = holds
        self._era = era
        self._newest = cache(self._newest_child)
        self._opened = cache(self._find_opened)

    def opened(self, session_id: str) -> str:
        """The session that is opened. On the way from child to child 0.18 and newer open the last session
        that has messages, and older ones the first; 0.17 and newer start at the tip."""
        return self._opened(session_id)

    def _find_opened(self, session_id: str) -> str:
        current = session_id if self._era < Era.V16 else self._tip(session_id)
        found, seen = current, {current}
        for _ in range(_HOPS if self._era >= Era.V18 else _HOPS + 1):
            if self._holds(current):
                found = current
                if self._era < Era.V18:
                    break
            following = self._newest(current)
            if following is None or following in seen:
                break
            current = following
            seen.add(current)
        return found

    def _newest_child(self, session_id: str) -> str | None:
        """The child that began last, but for those that the era takes for other conversations."""
        children = self._children(session_id)
        if self._era >= Era.V18:
            children = [each for each in children if not each.marked and each.source != "tool"]
        if self._era >= Era.V20:
            parent = self._nodes.get(session_id)
            reset = parent is not None and parent.end_reason in RESET_REASONS
            key = parent.session_key if parent is not None and reset else None
            children = [
                each for each in children if each.reset_from is None and not (key and each.session_key == key)
            ]
        order = [(sqlite_order(each.started_at), sqlite_order(each.id), each.id) for each in children]
        return max(order)[-1] if order else None
