"""Messages hold cells that Hermes cannot decode.

What it means
Structured content that is no JSON any more, as that of a picture, is shown and sent to the model raw, marker
and all. Tool calls that are no JSON count as none: their results then answer nothing. Bytes in place of text
end every JSONL export of the session, and text that is not valid in the encoding of the store ends everything
that reads the session, with "Could not decode to UTF-8".

How it happens
A text copy of the store that stopped at a NUL or at a length, a salvage of a damaged file, a program that
wrote bytes or another encoding, a flipped bit on the disk. No release writes such a cell.

How we know
Structured content is the marker, then a JSON list or object; text that merely begins like the marker is left
alone. JSON is what Hermes' own parser takes, NaN and calls that were encoded twice included. Only text and
NULL belong into these columns. Whether text is valid is looked at with --deep, since that takes reading all
of it.

What to do
Take the message from an export or a snapshot made earlier. Bytes that are UTF-8 become text again by a cast.
What cannot be restored, keep: it may be the only trace of the message.

When it is a false alarm
Where somebody sent a text that begins like structured content and is not: up to 0.21.5 it is stored as it
stands, and means itself. A plugin that stores bytes on purpose has to read them by itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from statemend.audit.context import Context
from statemend.audit.facts import MOST_LISTED, rows
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule
from statemend.store.content import STRUCTURED_MARKER
from statemend.store.order import sqlite_order

#: Neither text functions nor comparisons see what follows a NUL alike, so the marker is compared as bytes,
#: which in a store in UTF-16 are twice as many.
_MARKER = "CAST(char(0) || 'json:' AS BLOB)"
_BODY = f"CAST(substr(CAST(content AS BLOB), length({_MARKER}) + 1) AS TEXT)"
_CUT_CONTENT = f"""
    content < char(1) AND content <> ''
    AND substr(CAST(content AS BLOB), 1, length({_MARKER})) = {_MARKER}
    AND {_BODY} GLOB '[[{{]*' AND NOT json_valid({_BODY})
"""
_BYTES = " OR ".join(
    f"typeof({column}) = 'blob'"
    for column in ("role", "content", "tool_call_id", "tool_calls", "tool_name", "reasoning")
)
#: SQLite's idea of JSON is narrower than Hermes', so the cells in doubt are parsed once more.
_ODD = f"{_BYTES} OR ({_CUT_CONTENT}) OR (tool_calls <> '' AND NOT json_valid(tool_calls))"
ODD_CELLS = f"""
    SELECT session_id, id, {_BYTES}, iif({_CUT_CONTENT}, content, NULL), tool_calls
    FROM messages
    WHERE {_ODD}
"""
ALL_TEXT = """
    SELECT session_id, id, role, content, tool_call_id, tool_calls, tool_name, reasoning, reasoning_content
    FROM messages
"""


class _Oddity(StrEnum):
    """What is wrong with a row, worst first, as the evidence words it."""

    INVALID = "with text that is not valid in the encoding of the store"
    BYTES = "with bytes in place of text"
    CONTENT = "with structured content that is no JSON"
    CALLS = "with tool calls that are no JSON"


_SEVERITY = {
    _Oddity.INVALID: Severity.HIGH,
    _Oddity.BYTES: Severity.HIGH,
    _Oddity.CONTENT: Severity.MEDIUM,
    _Oddity.CALLS: Severity.MEDIUM,
}


class _Odd(msgspec.Struct):
    """The odd rows of one session: how many of each kind, and the ids of the first."""

    counted: Counter[_Oddity] = msgspec.field(default_factory=Counter)
    first: list[int] = msgspec.field(default_factory=list)


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that has such rows."""
    sessions: dict[Any, _Odd] = {}
    for session_id, row_id, oddity in _odd_rows(context):
        odd = sessions.setdefault(session_id, _Odd())
        odd.counted[oddity] += 1
        if row_id not in odd.first and len(odd.first) < MOST_LISTED:
            odd.first.append(row_id)
    for session_id in sorted(sessions, key=sqlite_order):
        yield _finding(context, session_id, sessions[session_id])


def _odd_rows(context: Context) -> Iterator[tuple[Any, int, _Oddity]]:
    for session_id, row_id, has_bytes, content, calls in _odd_cells(context):
        if has_bytes:
            yield session_id, row_id, _Oddity.BYTES
        if isinstance(content, str) and _is_no_json(content[len(STRUCTURED_MARKER) :]):
            yield session_id, row_id, _Oddity.CONTENT
        if calls and isinstance(calls, str) and _is_no_json(calls):
            yield session_id, row_id, _Oddity.CALLS
    if context.deep:
        context.report("reading the text of every message")
        for session_id, row_id, *cells in context.store.rows(ALL_TEXT, exact=True):
            if any(isinstance(cell, str) and _is_invalid(cell) for cell in cells):
                yield session_id, row_id, _Oddity.INVALID


def _odd_cells(context: Context) -> Iterator[tuple[Any, ...]]:
    return context.store.rows(ODD_CELLS) if context.suspects(RULE) else iter(())


def _is_no_json(text: str) -> bool:
    try:
        json.loads(text)
    except RecursionError:
        return False
    except ValueError:
        return True
    return False


def _is_invalid(text: str) -> bool:
    """Whether a cell that was read exactly holds bytes that are no text."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _finding(context: Context, session_id: Any, odd: _Odd) -> Finding:
    worst = next(oddity for oddity in _Oddity if odd.counted[oddity])
    return RULE.finding(
        context,
        session=str(session_id),
        message_ids=sorted(odd.first),
        severity=_SEVERITY[worst],
        summary=f"Hermes cannot decode {rows(odd.counted[worst])} {worst}.",
        evidence=[(f"rows {oddity}", odd.counted[oddity]) for oddity in _Oddity if odd.counted[oddity]],
        remedy="Take these messages from an export or a snapshot made earlier; keep what cannot be restored.",
    )


RULE = Rule(
    id="MSG006",
    slug="undecodable-content",
    family=Family.MESSAGES,
    level=Level.VALUES,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    reads=(ODD_CELLS, ALL_TEXT),
    sign=f"COUNT(*) FILTER (WHERE {_ODD})",
)
