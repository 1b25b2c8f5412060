"""Which sessions ended so long ago that they may be asked to go, and which of them stay all the same."""

from __future__ import annotations

from typing import Final

import msgspec

from statemend.store.connection import Store
from statemend.store.history import census
from statemend.store.lineage import Graph

#: Seconds.
DAY: Final = 86400.0
_ENDED = """
    SELECT id, ended_at, pinned FROM sessions
    WHERE typeof(ended_at) IN ('real', 'integer') AND ended_at < ?
    ORDER BY ended_at, id
"""


class Stays(msgspec.Struct, frozen=True):
    """A session that is old enough and stays, and why."""

    session: str
    reason: str


class Aged(msgspec.Struct, frozen=True):
    """The sessions that may be asked to go, in the order of their ends, and those that stay. Subagents that
    go with one of the ``sessions`` are not listed there; ``with_delegates`` lists them too."""

    sessions: tuple[str, ...]
    with_delegates: tuple[str, ...]
    kept: tuple[Stays, ...]


def select_aged(store: Store, graph: Graph, before: float) -> Aged:
    """The sessions that ended and were last written to before a moment (epoch seconds), but for those that
    somebody pinned and those whose conversation goes on in a session that stays."""
    kept: list[Stays] = []
    chosen: dict[str, None] = {}
    for session_id, _, pinned in store.rows(_ENDED, (before,)):
        counted = next(iter(census(store, session_id)), None) if isinstance(session_id, str) else None
        if not isinstance(session_id, str) or (counted and counted.last_at and counted.last_at >= before):
            continue
        if pinned:
            kept.append(Stays(session_id, "it is pinned"))
        else:
            chosen[session_id] = None
    going_on = True
    while going_on:
        going_on = False
        for session_id in list(chosen):
            onward = [child.id for child in graph.continuations(session_id) if child.id not in chosen]
            if onward:
                del chosen[session_id]
                kept.append(Stays(session_id, f"its conversation goes on in {', '.join(onward)}"))
                going_on = True
    era = store.schema.era
    deleted = {one: graph.deletion(one, era).deleted for one in chosen}
    follow = {each for one, gone in deleted.items() for each in gone if each != one}
    asked = tuple(one for one in chosen if one not in follow)
    everything = dict.fromkeys(each for one in asked for each in (one, *deleted[one]))
    return Aged(asked, tuple(everything), tuple(kept))
