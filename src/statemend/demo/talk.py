"""Turn the conversations of ``story`` into message rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from statemend.demo.story import Talk, Turn
from statemend.demo.writer import StoreWriter

MODEL = "anthropic/claude-sonnet-4.5"
SUMMARY = (
    "[CONTEXT COMPACTION — REFERENCE ONLY] The older turns were replaced by this summary.\n"
    "## Goal\n{goal}\n## State\n{count} turns are settled.\n"
)


def message_rows(turns: Sequence[Turn], start: float, pace: float = 95.0) -> Iterator[dict[str, Any]]:
    """The messages of ``turns``, the first at ``start``, one turn every ``pace`` seconds."""
    for number, turn in enumerate(turns):
        at = start + number * pace
        yield {"role": "user", "content": turn.question, "timestamp": at}
        if turn.command is not None:
            call = f"call_{int(at):x}"
            arguments = json.dumps({"command": turn.command})
            function = {"name": "terminal", "arguments": arguments}
            yield {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": call, "type": "function", "function": function}],
                "finish_reason": "tool_calls",
                "timestamp": at + 4.25,
            }
            yield {
                "role": "tool",
                "content": json.dumps({"output": turn.output, "exit_code": 0}),
                "tool_call_id": call,
                "tool_name": "terminal",
                "timestamp": at + 5.5,
            }
        yield {"role": "assistant", "content": turn.answer, "finish_reason": "stop", "timestamp": at + 11.75}


def write_talk(
    writer: StoreWriter,
    session_id: str,
    talk: Talk,
    start: float,
    *,
    end: str | None = None,
    **columns: str | None,
) -> float:
    """Write a whole conversation and stamp its end if ``end`` names a reason; returns the time of its end."""
    if talk.source == "telegram":
        peer = {"user_id": "81225", "chat_id": "81225", "chat_type": "dm"}
        columns = {**peer, "session_key": "agent:main:telegram:dm:81225", **columns}
    writer.create(session_id, talk.source, start, model=MODEL, **{"title": talk.title, **columns})
    last = start
    for row in message_rows(talk.turns, start + 2.5):
        writer.append(session_id, row)
        last = row["timestamp"]
    if end is not None:
        writer.end(session_id, last + 30.0, end)
    return last


def summary_of(talk: Talk, start: float, at: float, *, keep: int) -> list[dict[str, Any]]:
    """What a compaction at ``at`` leaves live of the conversation that ``write_talk`` began at ``start``: a
    summary, and the last ``keep`` turns with the times they had."""
    rows = list(message_rows(talk.turns, start + 2.5))
    carried = rows.index(next(row for row in rows if row["content"] == talk.turns[-keep].question))
    return [_summary(talk, at), *rows[carried:]]


def continue_talk(
    writer: StoreWriter,
    session_id: str,
    talk: Talk,
    start: float,
    *,
    parent: str | None = None,
    title: str | None = None,
    end: str | None = None,
    turns: int = 2,
) -> None:
    """Write the continuation that a rotation makes: a summary first, then ``turns`` further turns."""
    writer.create(session_id, talk.source, start, model=MODEL, parent_session_id=parent, title=title)
    writer.append(session_id, _summary(talk, start + 0.5))
    for row in message_rows(talk.turns[-turns:], start + 60.0):
        writer.append(session_id, row)
    if end is not None:
        writer.end(session_id, start + 60.0 + turns * 95.0, end)


def _summary(talk: Talk, at: float) -> dict[str, Any]:
    text = SUMMARY.format(goal=talk.title, count=len(talk.turns))
    return {"role": "user", "content": text, "timestamp": at}
