"""Tool calls have no result, or tool results no call.

What it means
A call that was never answered, in a conversation that went on, says that the tool may have run and that
nobody knows how it ended. Hermes puts a note in its place for the model, or drops the call. A result that
answers no call of its session is dropped before each request: its text is kept, but the model does not see
it.

How it happens
Hermes was stopped, or crashed, while a tool ran, and the user went on later: the call is lawful residue.
Where two tools ran at once, one result may be there and the other not (#83015). A result without its call
means that a row is gone, by a salvage, by a program that deletes rows, or by one that stored results only.

How we know
Calls and results are paired by any id that a call bears, within the session, whatever became of the rows: a
partner that was archived or taken back is a partner. A call is settled when a live user or assistant row
stands behind it; the last one may still be running. A session with calls that cannot be read, or without
ids, is left alone (see MSG006), and one with as many results as calls is taken for whole.

What to do
Nothing about calls: the agent should look at what the tool did before it runs it again. For results, look
for the missing row in exports and snapshots made earlier; keep them until then.

When it is a false alarm
Tools that a provider runs by itself may be recorded as a call only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from statemend.audit.context import Context
from statemend.audit.facts import MOST_LISTED
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule
from statemend.store.message import OF_SESSION

#: Hermes makes a row without a state live.
_LIVE = "(active = 1 OR active IS NULL)"
#: In most sessions there are as many results as calls, which tells that nothing is missing without looking
#: at ids. Some rows were encoded twice.
_DECODED = "iif(json_type(tool_calls) = 'text', json_extract(tool_calls, '$'), tool_calls)"
UNEVEN = f"""
    COUNT(*) FILTER (WHERE role = 'tool') <> TOTAL(CASE
        WHEN typeof(tool_calls) <> 'text' OR NOT json_valid(tool_calls) THEN 0
        WHEN json_valid({_DECODED}) THEN json_array_length({_DECODED})
        ELSE 0
    END)
"""
PAIRS = f"""
    SELECT id, role, tool_call_id, tool_calls, {_LIVE}
    FROM messages
    WHERE {OF_SESSION} AND role IN ('user', 'assistant', 'tool')
    ORDER BY id
"""


class _Unpaired(msgspec.Struct, frozen=True):
    """The live rows of one session that lack a partner, by id."""

    calls: tuple[int, ...]
    results: tuple[int, ...]


def check(context: Context) -> Iterator[Finding]:
    """At most two findings for each session: calls without a result, results without a call."""
    for session_id in context.suspects(RULE):
        unpaired = _unpaired(context, session_id) if isinstance(session_id, str) else None
        if unpaired and unpaired.calls:
            yield _unanswered(context, session_id, unpaired.calls)
        if unpaired and unpaired.results:
            yield _unasked(context, session_id, unpaired.results)


def _unpaired(context: Context, session_id: str) -> _Unpaired | None:
    """``None`` where a call cannot be read, or has no id."""
    calls: list[tuple[int, frozenset[str]]] = []
    results: list[tuple[int, frozenset[str]]] = []
    asked: set[str] = set()
    answered: set[str] = set()
    last = 0
    for row_id, role, result_of, stored_calls, is_live in context.store.rows(PAIRS, (session_id,)):
        if role == "tool":
            names = _names(result_of)
            answered |= names
            if is_live and names:
                results.append((row_id, names))
            continue
        last = row_id if is_live else last
        if not stored_calls:
            continue
        each = _call_names(stored_calls)
        if each is None:
            return None
        asked = asked.union(*each)
        calls += ((row_id, names) for names in each if is_live)
    return _Unpaired(
        tuple(dict.fromkeys(row for row, names in calls if row < last and not names & answered)),
        tuple(row for row, names in results if not names & asked),
    )


def _call_names(stored: Any) -> list[frozenset[str]] | None:
    """The ids of each call of a row; ``None`` where one cannot be read or has none."""
    value = stored
    for _ in range(2):  # some rows were encoded twice
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return None
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(call, dict) for call in value):
        return None
    found = [_names(call.get("id"), call.get("call_id"), call.get("tool_call_id")) for call in value]
    return found if all(found) else None


def _names(*ids: Any) -> frozenset[str]:
    """What a call may be named by: each id, with and without the suffix of a bridge."""
    texts = [one.strip() for one in ids if isinstance(one, str)]
    return frozenset(name for text in texts for name in (text, text.partition("|")[0].strip()) if name)


def _unanswered(context: Context, session_id: str, found: tuple[int, ...]) -> Finding:
    many = len(found) != 1
    return RULE.finding(
        context,
        session=session_id,
        key="calls",
        message_ids=found[:MOST_LISTED],
        summary=f"{len(found):,} message{'s call tools' if many else ' calls a tool'} that never answered, "
        "and the conversation went on.",
        evidence=[("messages with a call that has no result", len(found))],
        remedy="Nothing is missing from the store; let the agent look at what the tool did before it runs it "
        "again.",
    )


def _unasked(context: Context, session_id: str, found: tuple[int, ...]) -> Finding:
    many = len(found) != 1
    return RULE.finding(
        context,
        session=session_id,
        key="results",
        message_ids=found[:MOST_LISTED],
        verdict=Verdict.UNDECIDABLE,
        summary=f"{len(found):,} tool result{'s answer' if many else ' answers'} no call of the session: the "
        "model is not given "
        f"{'them' if many else 'it'}.",
        evidence=[
            ("results that answer no call", len(found)),
            ("what would decide", "an export or a snapshot made earlier that holds the call"),
        ],
        remedy="Look for the row with the call in earlier exports and snapshots; keep the results meanwhile.",
    )


RULE = Rule(
    id="MSG007",
    slug="tool-pairs",
    family=Family.MESSAGES,
    level=Level.HISTORY,
    severity=Severity.LOW,
    verdict=Verdict.LEFTOVER,
    doc=__doc__ or "",
    check=check,
    reads=(PAIRS,),
    sign=UNEVEN,
)
