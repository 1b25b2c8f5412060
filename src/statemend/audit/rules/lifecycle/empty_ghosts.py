"""Sessions without a message, of a kind that no healthy day leaves.

What it means
They hold no text and nobody can return to them, but lists and searches of titles show them, and a person may
take them for lost conversations. Nothing is lost.

How it happens
An account of tokens that arrives for a session which was deleted meanwhile makes the row again, with the
source unknown. A client that opens a session again and again, without writing to it, leaves a flood: some
messaging adapters did so several times a second (#43212).

How we know
An opened session that was never used is ordinary, so a session without messages alone says nothing. Told are
those of source unknown, made by no person, and floods: ten or more of one source begun within one hour, each
without a message, a title, a child and a pin. A session whose message_count says that it had messages is left
to message-count-drift, one that was begun in the last day is left alone.

What to do
Nothing, or delete them in Hermes. Those of source unknown tell that their sessions were deleted while an
agent still ran: see whether the deletion was meant.

When it is a false alarm
Sessions opened in advance by a program that has not used them yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from statemend.audit.context import Context
from statemend.audit.facts import is_time, listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule

EMPTY = """
    SELECT s.source, s.id, s.started_at, COALESCE(s.input_tokens, 0) + COALESCE(s.output_tokens, 0)
    FROM sessions AS s
    WHERE s.title IS NULL
      AND COALESCE(s.message_count, 0) = 0
      AND s.pinned = 0
      AND s.parent_session_id IS NULL
      AND typeof(s.id) = 'text'
      AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id)
      AND NOT EXISTS (SELECT 1 FROM sessions AS c WHERE c.parent_session_id = s.id)
"""
#: The source of a row that an account of tokens made.
_ACCOUNT = "unknown"
_DAY, _HOUR, _MANY = 86400.0, 3600.0, 10


class _Ghost(NamedTuple):
    id: str
    started_at: float
    tokens: int


def check(context: Context) -> Iterator[Finding]:
    """One finding for the rows that accounts of tokens made, and one for each source with a flood."""
    ghosts: dict[str, list[_Ghost]] = {}
    for source, session_id, started_at, tokens in context.store.rows(EMPTY):
        if is_time(started_at) and context.now - started_at > _DAY:
            ghosts.setdefault(str(source), []).append(_Ghost(session_id, started_at, tokens))
    for source, found in ghosts.items():
        found.sort(key=attrgetter("started_at", "id"))
        told = found if source == _ACCOUNT else _flood(found)
        if told:
            yield _finding(context, source, told)


def _flood(ghosts: Sequence[_Ghost]) -> list[_Ghost]:
    """Those of the ghosts, which come by time, that stand in an hour with many."""
    flooded: dict[str, _Ghost] = {}
    first = 0
    for last, ghost in enumerate(ghosts):
        while ghost.started_at - ghosts[first].started_at > _HOUR:
            first += 1
        if last - first + 1 == _MANY:
            flooded |= {each.id: each for each in ghosts[first : last + 1]}
        elif last - first + 1 > _MANY:
            flooded[ghost.id] = ghost
    return list(flooded.values())


def _finding(context: Context, source: str, ghosts: Sequence[_Ghost]) -> Finding:
    number, name = len(ghosts), words(source, 40)
    again = f"{number:,} session{' was' if number == 1 else 's were'} made again by an account of tokens"
    return RULE.finding(
        context,
        key=source,
        summary=f"{again}, without a message."
        if source == _ACCOUNT
        else f"{number:,} {name} sessions without a message were begun in floods.",
        evidence=(
            ("source", name),
            ("sessions", number),
            ("first begun", moment(min(ghost.started_at for ghost in ghosts))),
            ("last begun", moment(max(ghost.started_at for ghost in ghosts))),
            ("tokens counted", sum(ghost.tokens for ghost in ghosts if isinstance(ghost.tokens, int))),
            ("ids", listed(ghost.id for ghost in ghosts)),
        ),
        remedy="Nothing, or delete them in Hermes.",
    )


RULE = Rule(
    id="LIF003",
    slug="empty-ghosts",
    family=Family.LIFECYCLE,
    level=Level.HOUSEKEEPING,
    severity=Severity.INFO,
    verdict=Verdict.LEFTOVER,
    doc=__doc__ or "",
    check=check,
    reads=(EMPTY, READS_MESSAGES),
)
