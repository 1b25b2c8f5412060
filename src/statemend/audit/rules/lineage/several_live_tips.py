"""One chat is talking in several open sessions at once.

What it means
The messages of one chat are spread over two or more sessions that are open and were in use at the same time.
Each knows a part of the conversation, so the model answers from half of it, and what routes the chat decides
with each message which half that is.

How it happens
Two gateways served one chat. A handoff was carried out twice when messages came in a burst (#56391). A route
was lost or set back while the session that it led to went on.

How we know
Open sessions with the same routing key and source, none of them archived, each with messages, and the time
from first to last message of one reaches into that of another by more than a minute. Of one conversation with
its branches only the session that was used last counts: a branch may leave its parent open on purpose, and of
continuations that compete the rule fork tells. One that was left open when the next began is no matter. Where
the store has the route of the chat, it is named; it does not tell which session is right.

What to do
Read both, decide in which the chat is to go on, and end the others. Their messages stay where they are.

When it is a false alarm
A program that gives one routing key to several conversations on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

from statemend.audit.candidates import READS, told
from statemend.audit.context import Context
from statemend.audit.facts import listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.store.lineage import Relation

OPEN = """
    SELECT s.session_key, s.source, s.id
    FROM sessions AS s
    WHERE s.session_key <> ''
      AND s.ended_at IS NULL
      AND s.end_reason IS NULL
      AND s.archived = 0
      AND s.source NOT IN ('subagent', 'tool', 'cron')
      AND typeof(s.id) = 'text'
      AND typeof(s.session_key) = 'text'
    ORDER BY s.session_key, s.source
"""
ROUTE = """
    SELECT CASE WHEN json_valid(entry_json) THEN json_extract(entry_json, '$.session_id') END
    FROM gateway_routing
    WHERE session_key = ?
"""
#: Sessions that were in use together overlap by more than this (seconds).
_TOGETHER = 60.0


class _Tip(NamedTuple):
    id: str
    first_at: float
    last_at: float
    rows: int


def check(context: Context) -> Iterator[Finding]:
    """One finding for each chat."""
    origins: dict[str, str] = {}
    for (key, source), members in groupby(context.store.rows(OPEN), key=itemgetter(0, 1)):
        tips = list(_together(_tips(context, sorted(session_id for *_, session_id in members), origins)))
        if tips:
            yield _finding(context, key, source, tips)


def _tips(context: Context, ids: list[str], origins: dict[str, str]) -> list[_Tip]:
    """Of each conversation the session that was used last, by their first messages."""
    if len(ids) < 2:
        return []
    found: dict[str, _Tip] = {}
    for session_id in ids:
        counted = context.census.get(session_id)
        if counted is None or counted.first_at is None or counted.last_at is None:
            continue
        tip = _Tip(session_id, counted.first_at, counted.last_at, counted.live)
        origin = _origin(context, session_id, origins)
        if origin not in found or found[origin].last_at < tip.last_at:
            found[origin] = tip
    return sorted(found.values(), key=attrgetter("first_at", "id"))


def _origin(context: Context, session_id: str, origins: dict[str, str]) -> str:
    """The first session of the conversation that one belongs to, branches included; a reset begins a new one.
    ``origins`` keeps what was found."""
    path: dict[str, None] = {}
    current = session_id
    while current not in origins and current not in path:
        path[current] = None
        edge = context.graph.edge(current)
        if edge is None or edge.relation is Relation.RESET:
            break
        current = edge.parent_id
    origin = origins.get(current, current)
    origins |= dict.fromkeys(path, origin)
    return origin


def _together(tips: list[_Tip]) -> Iterator[_Tip]:
    """Those that were in use while another was."""
    told: dict[str, _Tip] = {}
    longest = tips[0] if tips else None
    for _, tip in pairwise(tips):
        if longest is not None and min(longest.last_at, tip.last_at) - tip.first_at > _TOGETHER:
            told |= {longest.id: longest, tip.id: tip}
        if longest is None or tip.last_at > longest.last_at:
            longest = tip
    yield from told.values()


def _finding(context: Context, key: str, source: str, tips: list[_Tip]) -> Finding:
    routed = [session for (session,) in context.store.rows(ROUTE, (key,)) if isinstance(session, str)]
    return RULE.finding(
        context,
        key=f"{source}\0{key}",
        summary=f"One chat was talking in {len(tips)} open sessions at the same time.",
        evidence=(
            ("chat", words(key)),
            ("source", words(source, 40)),
            ("sessions", len(tips)),
            (
                "from first to last message",
                listed(
                    f"{tip.id}: {moment(tip.first_at)} to {moment(tip.last_at)}, {tip.rows:,} live rows"
                    for tip in tips
                ),
            ),
            ("its route leads to", listed(routed) or None),
            ("what would decide", "the messages of each, or which gateway served the chat at that time"),
            *told(context, [tip.id for tip in tips], parent=None),
        ),
        remedy="Read them, decide in which the chat is to go on, and end the others.",
        command=context.command("show", context.store_label, tips[-1].id),
    )


RULE = Rule(
    id="LIN012",
    slug="several-live-tips",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.MEDIUM,
    verdict=Verdict.UNDECIDABLE,
    doc=__doc__ or "",
    check=check,
    reads=(OPEN, READS_MESSAGES, *READS),
)
