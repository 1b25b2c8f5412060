"""One session in two stores: which messages both have, told by content, and which one of them alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from statemend.store.connection import Store
from statemend.store.history import View, messages
from statemend.store.identity import message_digest

CELLS = """
    SELECT role, content, timestamp, tool_call_id, tool_calls, tool_name
    FROM messages WHERE session_id = ? ORDER BY id
"""


class Twins(NamedTuple):
    """``here`` and ``there`` are the ids of rows whose content the other store's session does not have, each
    copy of a repeated message counted; ``both`` is how many rows they share."""

    here: tuple[int, ...] = ()
    there: tuple[int, ...] = ()
    both: int = 0


def compare(here: Store, there: Store, session_id: str) -> Twins:
    """Compare a session in two stores, row by row whatever its state. Raises ``StoreUnreadable``.

    Copies are told from their cells as they are; only where these differ is the content itself looked at.
    """
    shared = _alike(here, there, session_id)
    if shared is not None:
        return Twins(both=shared)
    theirs = Counter(digest for _, digest in _digests(there, session_id))
    both = 0
    only_here = []
    for row_id, digest in _digests(here, session_id):
        if theirs[digest]:
            theirs[digest] -= 1
            both += 1
        else:
            only_here.append(row_id)
    left = +theirs
    only_there = []
    for row_id, digest in reversed(list(_digests(there, session_id))) if left else ():
        if left[digest] > 0:
            left[digest] -= 1
            only_there.append(row_id)
    return Twins(tuple(only_here), tuple(reversed(only_there)), both)


def _alike(here: Store, there: Store, session_id: str) -> int | None:
    """How many rows both have, when they are the same cell by cell; ``None`` when they are not."""
    count = 0
    ours, theirs = here.rows(CELLS, (session_id,)), there.rows(CELLS, (session_id,))
    try:
        for one, other in zip_longest(ours, theirs):
            if one != other or list(map(type, one)) != list(map(type, other)):
                return None
            count += 1
        return count
    finally:
        ours.close()
        theirs.close()


def _digests(store: Store, session_id: str) -> Iterator[tuple[int, bytes]]:
    for message in messages(store, session_id, View.RAW):
        yield message.id, message_digest(message)
