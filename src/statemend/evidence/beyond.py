"""What files show of a session that is in the store, and the store does not show: what became of it.

A row that was undone is still in the store. Anything else that an export read from the store has been a row
of it, and was deleted or written anew since. What an agent held in memory may never have been one; what
Hermes put aside because it could not be stored has not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

from statemend.evidence.coverage import SessionCoverage
from statemend.evidence.inventory import Inventory
from statemend.evidence.salvage import Place, Salvage, Saved, salvage
from statemend.formats.artifact import IN_MEMORY, Kind
from statemend.store.connection import Store
from statemend.store.content import carried_request, plain_text
from statemend.store.history import RowState


class Fate(StrEnum):
    """What became of a message that a file shows."""

    UNDONE = "undone"  # its row is there, and hidden
    DELETED = "deleted"  # its row was there
    UNSTORED = "never stored"
    UNTOLD = "not told"  # deleted, or never stored, or of another store


#: What is put aside because it could not be stored.
_PUT_ASIDE = frozenset({Kind.PENDING, Kind.RESCUE_JSONL})
#: A trace is read from the store, whatever is cleaned from its texts.
_MEMORY = IN_MEMORY - {Kind.TRACE}


def beyond(store: Store, inventory: Inventory, session: SessionCoverage) -> Counter[Fate]:
    """How many messages of a present session, each once, files show beyond what the store shows, by what
    became of them. The messages of the session are held in memory. Raises ``StoreUnreadable``,
    ``Undetermined``."""
    covered = (*session.artifacts, *session.copies)
    more = {each.artifact for each in covered if each.extra}
    hidden = {each.artifact for each in covered if each.rewound}
    found: Counter[Fate] = Counter()
    if not session.present or not (more or hidden):
        return found
    left = salvage(store, inventory, session.session_id)
    absorbed = set(_absorbed(left))
    strangers = {each.artifact for each in left.strangers}
    for message in left.messages:
        places = (message.place, *message.others)
        files = [place for place in places if place.artifact != store.path]
        if len(files) < len(places):
            rewound = message.state is RowState.REWOUND and any(place.artifact in hidden for place in files)
            if rewound and _words(message) not in absorbed:
                found[Fate.UNDONE] += 1
        elif any(place.artifact in more for place in files):
            found[_fate(message, [place for place in files if place.artifact not in strangers])] += 1
    return found


def _absorbed(left: Salvage) -> Iterator[tuple[str, str]]:
    """The words that summaries took in: 0.22 hides the rows that had them, as if they were undone."""
    for message in left.messages:
        words = carried_request(message.record.content, None) if message.record.summary else None
        if isinstance(words, str):
            yield message.record.role, words.strip()


def _words(message: Saved) -> tuple[str, str]:
    return message.record.role, plain_text(message.record.content).strip()


def _fate(message: Saved, files: Iterable[Place]) -> Fate:
    """What became of a message of which the store has no row; ``files`` are those that share others with
    it."""
    shown = list(files)
    if any(place.kind not in _MEMORY or place.row_id is not None for place in shown):
        return Fate.DELETED
    return Fate.UNSTORED if shown and all(place.kind in _PUT_ASIDE for place in shown) else Fate.UNTOLD
