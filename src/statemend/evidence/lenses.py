"""The lens of each format that is compared record by record."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from statemend.evidence.carried import frozen
from statemend.evidence.matching import Lens
from statemend.evidence.rows import Fidelity, SessionRows
from statemend.evidence.zones import Zone, epoch_second, solve
from statemend.formats.artifact import Record
from statemend.formats.clock import finite
from statemend.formats.html import message_text
from statemend.formats.prompts import prompt_text
from statemend.store.history import Message

#: Rows of this role are bookkeeping; an HTML page never shows them.
BOOKKEEPING = "session_meta"


def _identity(role: Any, content: Any, timestamp: Any, call_id: Any, calls: Any, name: Any) -> Hashable:
    return role, frozen(content), finite(timestamp), call_id or None, frozen(calls), name or None


def _row_identity(row: Message) -> Hashable:
    # A blob stands in a line as ``jsonl_writer`` puts it there.
    content = {"blob": row.content.hex()} if isinstance(row.content, bytes) else row.content
    return _identity(row.role, content, row.timestamp, row.tool_call_id, row.tool_calls, row.tool_name)


def _record_identity(record: Record) -> Iterable[Hashable]:
    row = record.row or {}
    calls = row.get("tool_calls", record.tool_calls)
    yield _identity(
        record.role, record.content, record.timestamp, record.tool_call_id, calls, record.tool_name
    )


def _words(content: Any, calls: Any) -> str:
    """All words of a message in one text, for telling a mask."""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=repr)
    return f"{text}\n{json.dumps(calls, ensure_ascii=False)}" if calls else text


JSONL = Lens(
    fidelity=Fidelity.EXACT,
    row_keys=lambda row: [_row_identity(row)],
    record_keys=_record_identity,
    row_places=lambda row: [(row.role, finite(row.timestamp))],
    record_places=lambda record: [(record.role, record.timestamp)],
    row_text=lambda row: _words(row.content, row.tool_calls),
    record_text=lambda record: _words(record.content, record.tool_calls),
)


def _unix(shown: Any) -> Any:
    """What is shown, with the line ends of Unix: something may have converted those of the whole file."""
    if isinstance(shown, tuple):
        return tuple(map(_unix, shown))
    return shown.replace("\r\n", "\n").replace("\r", "\n") if isinstance(shown, str) else shown


PROMPTS = Lens(
    fidelity=Fidelity.LOSSY,
    row_keys=lambda row: [(_unix(prompt_text(row.content)), epoch_second(row.timestamp))],
    record_keys=lambda record: [(_unix(record.content or ""), epoch_second(record.timestamp))],
    row_places=lambda row: [epoch_second(row.timestamp)],
    record_places=lambda record: [epoch_second(record.timestamp)],
    row_text=lambda row: prompt_text(row.content),
    record_text=lambda record: str(record.content or ""),
    shows=lambda row: row.role == "user",
)


def page_row(row: Message) -> Hashable:
    """What an HTML page shows of a row, apart from its time."""
    text = message_text(row.content or "")
    calls = tuple(_page_call(call) for call in row.tool_calls) if isinstance(row.tool_calls, list) else ()
    reasoning = row.reasoning or row.reasoning_content
    return row.role, str(text) if text else None, calls, str(reasoning) if reasoning else None


def page_record(record: Record) -> Hashable:
    """The same, of a record of a page."""
    calls = tuple(_page_call(call) for call in record.tool_calls or ())
    return record.role, record.content or None, calls, record.reasoning or None


def _page_call(call: Any) -> tuple[str, str]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        function = {}
    return str(function.get("name", "unknown")), str(function.get("arguments", "{}"))


def html(zone: Zone) -> Lens:
    """The lens of a page whose clock ran in ``zone``."""
    return Lens(
        fidelity=Fidelity.LOSSY,
        row_keys=lambda row: [(_unix(page_row(row)), epoch_second(row.timestamp) or None)],
        record_keys=lambda record: [
            (_unix(page_record(record)), second) for second in zone.seconds(record.clock)
        ],
        row_places=lambda row: [(row.role, epoch_second(row.timestamp) or None)],
        record_places=lambda record: [(record.role, second) for second in zone.seconds(record.clock)],
        row_text=lambda row: _page_words(page_row(row)),
        record_text=lambda record: _page_words(page_record(record)),
        shows=lambda row: row.role != BOOKKEEPING,
    )


def page_zone(
    rows: SessionRows, records: Sequence[Record], started_clock: str | None, started_at: Any
) -> Zone:
    """The zone of a page's clock, from the messages and the start of the session that page and store
    share."""
    stored: dict[Hashable, list[int]] = {}
    for row in rows.rows:
        second = epoch_second(row.timestamp)
        if second is not None:
            stored.setdefault(page_row(row), []).append(second)
    shown: list[tuple[Hashable, str | None]] = [(page_record(record), record.clock) for record in records]
    started = epoch_second(started_at)
    if started is not None:
        stored[_STARTED] = [started]
        shown.append((_STARTED, started_clock))
    return solve(shown, stored)


#: Stands for the start of the session among what messages show.
_STARTED = "started"


def _page_words(shown: Any) -> str:
    _, text, calls, reasoning = shown
    return "\n".join([text or "", *(f"{name}\n{arguments}" for name, arguments in calls), reasoning or ""])
