"""Whether a session ran in this store, or may have been brought into it.

An import (``SessionDB.import_sessions``, 0.19 and newer) takes any part of a conversation. It writes the rows
of a session in one piece, and leaves out what only a running agent writes. So what it cannot have written
shows that the session ran here, if it is from before the session ended. ``repair-profiles`` (0.21.4 and
newer) moves the session of a chat to the store of its profile, in one piece as well, and brings along what
the agent wrote into its row and its account.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statemend.audit.anew import of_home
from statemend.audit.context import Context
from statemend.audit.facts import is_time, moment, words
from statemend.audit.zone import BEHIND
from statemend.evidence.inventory import DEFAULT
from statemend.store.connection import Store
from statemend.store.schema import Era

#: What the first release that imports adds to a store: one without any of it, no such release has opened.
SINCE_IMPORTS = (("session_model_usage", None), ("sessions", "compression_fallback_streak"))
#: From this number on the upgrade has been done that carries older accounts of tokens over, once.
CARRIED_OVER_BY = 20

#: When tokens of a session were first counted while it ran (0.19 and newer, after each answer).
COUNTED = """
SELECT MIN(first_seen)
FROM session_model_usage
WHERE session_id = :session
  AND first_seen > :began
  AND first_seen <= :until
"""
#: The upgrade to 0.19 gives the sessions of older releases such an account, from start to end.
CARRIED_OVER = """
SELECT 1
FROM session_model_usage
WHERE session_id = :session
  AND first_seen = :began
  AND last_seen IN (:began, :until)
LIMIT 1
"""
#: Another session whose row was written between those of this one.
AMONG_ITS_ROWS = """
WITH own AS (
  SELECT MIN(id) AS first_id, MAX(id) AS last_id, MIN(timestamp) AS first_at, MAX(timestamp) AS last_at
  FROM messages
  WHERE session_id = :session
    AND timestamp BETWEEN :began AND :until
)
SELECT m.session_id
FROM own
CROSS JOIN messages AS m ON m.id > own.first_id AND m.id < own.last_id
WHERE m.session_id <> :session
  AND m.timestamp BETWEEN own.first_at AND own.last_at
LIMIT 1
"""
#: A lock of a compression (0.16 and newer) that was never given back.
LOCKED = """
SELECT MAX(acquired_at)
FROM compression_locks
WHERE session_id = :session
  AND acquired_at BETWEEN :began AND :until
"""
#: The note that an agent leaves of itself while it works (0.20 and newer).
AT_WORK = """
SELECT last_activity_at
FROM sessions
WHERE id = :session
  AND last_activity_at BETWEEN :began AND :until
"""
#: The source of a session, its first row, and when the row right before that was written.
BEGINNING = """
SELECT s.source,
       f.id,
       (SELECT timestamp FROM messages WHERE id = f.id - 1)
FROM sessions AS s
JOIN messages AS f ON f.id = (SELECT MIN(id) FROM messages WHERE session_id = s.id)
WHERE s.id = ?
"""
#: The profile of a session that may be moved between stores: of a chat, by its key. The move notes it.
OF_A_CHAT = "SELECT profile_name FROM sessions WHERE id = ? AND session_key GLOB 'agent:*'"
#: What a rule that uses this module reads, beside tables that older stores lack.
READS = (AMONG_ITS_ROWS, AT_WORK, BEGINNING, OF_A_CHAT)


def signs_of_life(context: Context, session_id: str, began: object, until: object) -> Iterator[str]:
    """What shows that a session ran in this store between two times, each in a few words. Epoch seconds as
    stored; where one is no time, or lies ahead, nothing can be dated."""
    store = context.store
    if not any(store.schema.has(table, column) for table, column in SINCE_IMPORTS):
        yield "no release that can import has opened the store"
    if not is_time(began) or not is_time(until) or until > context.now:  # type: ignore[operator]
        return
    life = {"session": session_id, "began": began, "until": until}
    moved = _may_have_been_moved(context, session_id)
    if context.trusts("session_model_usage") and not moved:
        yield from _counted(store, life)
    if (other := store.value(AMONG_ITS_ROWS, life)) is not None:
        yield f"rows of {words(other)} were written between its own"
    if context.trusts("compression_locks") and (taken := store.value(LOCKED, life)) is not None:
        yield f"a compression locked it at {moment(taken)}"
    if not moved and (noted := store.value(AT_WORK, life)) is not None:
        yield f"its agent was at work at {moment(noted)}"
    if not moved:
        yield from _logged(context, session_id, began, until)  # type: ignore[arg-type]


def _logged(context: Context, session_id: str, began: float, until: float) -> Iterator[str]:
    """A turn that a log of the home tells of. It is none of a session that was deleted and brought in again
    since: its rows had no place before those that are here."""
    at, clock = context.once("first turns", lambda: _first_turns(context)).get(session_id, (None, ""))
    if at is None:
        return
    source, first, written = context.store.one(BEGINNING, (session_id,)) or (None, None, None)
    if first != 1 and not (is_time(written) and written <= began):
        return
    latest = at - min(context.clocks.offsets_near(at, source), default=-BEHIND)
    if latest <= until:
        yield f"a log tells of a turn of it at {clock}, local time"


def _first_turns(context: Context) -> Mapping[str, tuple[float, str]]:
    """Of each session that the home's logs tell of its first turn: as if in UTC, and as the log has it."""
    found: dict[str, tuple[float, str]] = {}
    for log in context.inventory.logs:
        for told in log.turns if of_home(context, log) else ():
            first = min(told.times), told.first
            found[told.session_id] = min(first, found.get(told.session_id, first))
    return found


def _may_have_been_moved(context: Context, session_id: str) -> bool:
    """Whether the session may come from the store of another profile, with all that is noted of it."""
    if context.store.schema.era < Era.V22:
        return False
    profile = context.store.value(OF_A_CHAT, (session_id,))
    return profile is not None and (context.home.profile is not None or profile != DEFAULT)


def _counted(store: Store, life: Mapping[str, Any]) -> Iterator[str]:
    counted = store.value(COUNTED, life)
    if counted is not None:
        yield f"tokens of it were counted at {moment(counted)}"
    elif (store.schema.version or 0) >= CARRIED_OVER_BY and store.value(CARRIED_OVER, life):
        yield "the upgrade to 0.19 or newer found its account of tokens"
