"""Sessions whose row was made again: deleted under a live agent, and written anew from its memory.

Hermes never changes when a session began. A row that says later than a file that was written from it is
another row, and messages in it that are older than itself were not said to it: they were put back.
"""

from __future__ import annotations

from statemend.evidence.inventory import Inventory
from statemend.evidence.wording import WHOLE
from statemend.store.connection import Store

#: The row of a session, where it began after a time (epoch seconds) and after one of its messages.
REMADE = """
SELECT s.started_at
FROM sessions AS s
WHERE s.id = ?
  AND typeof(s.started_at) IN ('real', 'integer')
  AND s.started_at > ?
  AND EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id AND m.timestamp < s.started_at)
"""
#: Files in which a time is cut are not taken for older (seconds).
_ROUNDING = 1.0


def remade_sessions(store: Store, inventory: Inventory) -> dict[str, float]:
    """The sessions whose row is younger than its own messages and than a file says that it is, and when each
    row began (epoch seconds)."""
    remade: dict[str, float] = {}
    for session_id, born in _births(inventory).items():
        begun = store.value(REMADE, (session_id, born + _ROUNDING))
        if begun is not None:
            remade[session_id] = float(begun)
    return remade


def _births(inventory: Inventory) -> dict[str, float]:
    """The earliest time at which a copy of its row says that a session began."""
    births: dict[str, float] = {}
    for sections in (inventory.by_session(), inventory.stores_by_session()):
        for session_id, named in sections.items():
            for artifact, section in named:
                began = section.started_at
                if artifact.kind in WHOLE and not section.lineage and began is not None:
                    births[session_id] = min(began, births.get(session_id, began))
    return births
