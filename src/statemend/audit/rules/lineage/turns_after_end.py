"""Messages came into the session after its end.

What it means
After a compression the conversation goes on in another session, and resume goes there. Turns that were
written into the closed one afterwards stand beside the line: the model does not read them when the
conversation is resumed. After another end the session is in use and counts as over: a prune may take it, and
where a chat was reset, what was said there went into the old conversation.

How it happens
A second window, gateway or program still had the session open when it was ended, and wrote on. 0.13 to 0.19
accept a message into any ended session; 0.20 and newer refuse it after a compression alone.

How we know
Live messages are younger than the end by more than a minute; what is written together with an end differs by
less. After a compression it is a fault where one of them stands in no session that continues this one, by
role and text, and undecidable where nothing continues it. One that was stored before the first row of that
session, and yet bears a later time than it, is from before the clock was set back. After an end that Hermes
sets by itself (an agent or a window was closed, a process was gone) such messages are its daily work, and
nothing is said. After an end that a person or a schedule asked for, it is undecidable whether these turns
were meant to be here.

What to do
Read them. After a compression, carry what matters into the conversation that goes on. After another end,
clear ended_at and end_reason if the conversation is in use.

When it is a false alarm
The clock was set back between these messages and the end, and nothing continues the session that could show
it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import NamedTuple

from statemend.audit.context import Context
from statemend.audit.eras import written_by
from statemend.audit.facts import MOST_LISTED, is_time, listed, moment, rows, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.store.history import first_row

#: Sessions that ended in a way that somebody asked for. Other ends Hermes sets by itself, or a client does.
ENDED = """
    SELECT id, ended_at, end_reason, title, source
    FROM sessions
    WHERE ended_at IS NOT NULL
      AND end_reason IN ('compression', 'branched', 'new_session', 'session_reset', 'session_switch', 'idle',
                         'daily', 'suspended')
      AND typeof(id) = 'text'
    ORDER BY id
"""
_LATE = """session_id = :session AND active = 1 AND typeof(timestamp) = 'real' AND timestamp > :ended
      AND NOT (id < :first_id AND timestamp > :begun)"""
LATER = f"SELECT id FROM messages WHERE {_LATE} ORDER BY id"
#: How many of those texts stand in none of some sessions.
ASTRAY = f"""
    SELECT COUNT(*)
    FROM (
        SELECT role, content
        FROM messages
        WHERE {_LATE} AND role IN ('user', 'assistant') AND content <> ''
        EXCEPT
        SELECT role, content FROM messages WHERE session_id IN (SELECT value FROM json_each(:onward))
    )
"""
#: Whether a time is that of a row of some session.
OF_A_ROW = "SELECT 1 FROM messages WHERE session_id = ? AND timestamp = ? LIMIT 1"
#: What is written together with an end differs from it by less (seconds).
_TOGETHER = 60.0
#: So many sessions of a line are searched at most.
_LONGEST = 100


class _Ended(NamedTuple):
    id: str
    ended_at: float
    reason: str
    title: object
    source: object


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that was written into after its end."""
    for found in map(_Ended._make, context.store.rows(ENDED)):
        counted = context.census.get(found.id)
        last = counted.last_at if counted else None
        if not is_time(found.ended_at) or last is None or last <= found.ended_at + _TOGETHER:
            continue
        finding = _judged(context, found, last)
        if finding is not None:
            yield finding


def _judged(context: Context, found: _Ended, last: float) -> Finding | None:
    onward = _continued(context, found.id) if found.reason == "compression" else []
    first_id, begun = _begun(context, found.id, onward)
    late = {
        "session": found.id,
        "ended": found.ended_at + _TOGETHER,
        "first_id": first_id,
        "begun": begun,
    }
    later = [row for (row,) in context.store.rows(LATER, late)]
    texts = {**late, "onward": json.dumps(onward)}
    astray = context.store.value(ASTRAY, texts) if later and onward else None
    if not later or (onward and not astray):
        return None
    return RULE.finding(
        context,
        session=found.id,
        message_ids=later[:MOST_LISTED],
        verdict=Verdict.FAULT if onward else Verdict.UNDECIDABLE,
        severity=Severity.MEDIUM if onward else Severity.LOW,
        summary=f"{rows(len(later))} came after its end by {found.reason}"
        + (", beside the line that continues it." if onward else "; whether they belong here is open."),
        evidence=(
            ("title", words(found.title)),
            ("source", words(found.source, 40)),
            ("ended by", found.reason),
            ("ended at", moment(found.ended_at)),
            ("last message at", moment(last)),
            ("live rows after the end", len(later)),
            ("texts that stand in no continuation", astray),
            ("continued by", listed(onward) or None),
            (
                "releases that accept such a message",
                "0.13 to 0.19" if found.reason == "compression" else "all: 0.13 and newer",
            ),
            (
                "what would decide",
                None
                if onward
                else "these turns themselves, or whether the chat is still led to this session",
            ),
            written_by(context.store),
        ),
        remedy="Read these turns; what matters of them has to be said again in the session that goes on."
        if onward
        else "Read these turns. If the session is in use, clear ended_at and end_reason.",
        command=context.command("show", context.store_label, found.id),
    )


def _begun(context: Context, ended: str, onward: list[str]) -> tuple[int, float]:
    """The first row of these sessions, and when it was stored. One that was carried over from the session
    before may bear the time that it has there."""
    found = []
    for session_id in onward:
        row = first_row(context.store, session_id)
        if row is not None:
            carried = context.store.value(OF_A_ROW, (ended, row.timestamp)) is not None
            stored_at = context.graph.nodes[session_id].started_at if carried else row.timestamp
            found += [(row.id, stored_at)] if is_time(stored_at) else []
    return min(found, default=(0, math.inf))


def _continued(context: Context, session_id: str) -> list[str]:
    """The sessions that continue one, and those that continue these."""
    found: dict[str, None] = {}
    waiting = [session_id]
    while waiting and len(found) < _LONGEST:
        for child in context.graph.continuations(waiting.pop(0)):
            if child.id not in found and child.id != session_id:
                found[child.id] = None
                waiting.append(child.id)
    return list(found)


RULE = Rule(
    id="LIN010",
    slug="turns-after-end",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="late-turns",
    reads=(ENDED, READS_MESSAGES),
)
