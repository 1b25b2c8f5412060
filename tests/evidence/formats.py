"""One session in every format that shows its messages: what a union of any two of them is made from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.formats.test_response_store import put

from statemend.formats import html, jsonl, markdown, prompts
from statemend.formats.artifact import Kind
from statemend.formats.save_markdown import HIDDEN_ROLE, render_message
from statemend.store.content import plain_text
from statemend.store.history import Message

SESSION = "20260801_090000_aaaaaa"
#: Rows as an export of whole rows has them.
Rows = Sequence[Mapping[str, Any]]
Writer = Callable[[Path, Rows, Sequence[Message], float], None]


def write(folder: Path, kind: Kind, rows: Rows, messages: Sequence[Message], start: float) -> Path:
    """Write ``rows``, which are ``messages`` too, of a session that began at ``start`` (epoch seconds)."""
    make = _WRITERS[kind]
    path = folder / (f"{SESSION}.jsonl" if kind in _NAMED else f"{kind}.file")
    make(path, rows, messages, start)
    return path


def _session(rows: Rows, start: float) -> dict[str, Any]:
    return {"id": SESSION, "source": "cli", "title": "T", "started_at": start, "message_count": len(rows)}


def _jsonl(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    path.write_text("".join(jsonl.render(_session(rows, start), [dict(row) for row in rows])))


def _markdown(kind: Kind) -> Writer:
    def make(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
        segments = [(SESSION, messages)]
        session = _session(rows, start)
        text = markdown.render(session, segments, kind=kind, exported_at=start + 1e5, lineage=())
        path.write_text(text)

    return make


def _html(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    page = html.render([(_session(rows, start), messages)], generated_at="now", zone=UTC)
    path.write_text("".join(page))


def _prompts_jsonl(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    path.write_text("".join(prompts.render_jsonl(SESSION, messages)))


def _prompts_markdown(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    path.write_text(prompts.render_markdown([(_session(rows, start), messages)]))


def _save_markdown(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    shown = "".join(render_message(each) for each in messages if each.role != HIDDEN_ROLE)
    path.write_text(f"# Session: T\n- Session ID: `{SESSION}`\n\n{shown.rstrip()}\n")


def _desktop(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    told = {"exported_at": "2026-08-02T09:00:00Z", "session_id": SESSION, "title": "T"}
    path.write_text(json.dumps({**told, "message_count": len(rows), "messages": list(rows)}))


def _held(rows: Rows, *, timed: bool = True) -> list[dict[str, Any]]:
    """The messages as an agent holds them: cleaned, stripped, without what is empty."""
    return [dict(_in_memory(row, timed=timed)) for row in rows]


def _in_memory(row: Mapping[str, Any], *, timed: bool) -> Iterator[tuple[str, Any]]:
    content = row["content"]
    spoken = row["role"] in ("user", "assistant") and isinstance(content, str)
    yield "role", row["role"]
    yield "content", content.strip() if spoken else content
    names = ("tool_calls", "tool_call_id", "tool_name", *(["timestamp"] if timed else []))
    yield from ((name, row[name]) for name in names if row[name] is not None)


def _save_json(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    told = {"model": "m", "session_id": SESSION, "session_start": "2026-08-01T09:00:00"}
    path.write_text(json.dumps({**told, "messages": _held(rows, timed=False)}))


def _snapshot(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    told = {"session_id": SESSION, "model": "m", "session_start": "2026-08-01T09:00:00"}
    told |= {"base_url": "", "platform": "cli", "last_updated": "2026-08-01T10:00:00", "system_prompt": ""}
    told |= {"tools": [], "message_count": len(rows)}
    path.write_text(json.dumps({**told, "messages": _held(rows)}))


def _pending(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    told = {"reason": "shutdown", "issue": "#1", "session_id": SESSION, "count": len(rows)}
    path.write_text(json.dumps({**told, "messages": _held(rows)}))


def _transcript(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    path.write_text("".join(json.dumps(each) + "\n" for each in _held(rows)))


def _rescue(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    lines = [{**each, "observed": 0, "_compressed_summary": False} for each in _held(rows)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _responses(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    put(path, {"conversation_history": _held(rows, timed=False), "session_id": SESSION}).close()


def _request_dump(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    body = {"model": "m", "messages": _held(rows, timed=False)}
    request = {"method": "POST", "url": "x", "headers": {}, "body": body}
    told = {"timestamp": "2026-08-01T10:00:00", "session_id": SESSION, "reason": "max_retries"}
    path.write_text(json.dumps({**told, "request": request}))


def _trace(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    lines = [
        {
            "parentUuid": None,
            "isSidechain": False,
            "sessionId": SESSION,
            "version": "hermes-agent",
            "timestamp": "2026-08-02T09:00:00.000Z",
            "type": role,
            "message": {"role": role, "content": blocks},
        }
        for role, blocks in map(_blocks, rows)
        if blocks
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _blocks(row: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The speaker and the blocks of one turn of a trace."""
    content = row["content"]
    if row["role"] == "tool":
        told = content if isinstance(content, str) else json.dumps(content)
        return "user", [{"type": "tool_result", "tool_use_id": row["tool_call_id"], "content": told}]
    if isinstance(content, list):
        texts = [part["text"] if part["type"] == "text" else "[image omitted]" for part in content]
    else:
        texts = [plain_text(content).strip()]
    calls = [
        {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": _arguments(call)}
        for call in row["tool_calls"] or ()
    ]
    role = row["role"] if row["role"] == "assistant" else "user"
    return role, [*({"type": "text", "text": text} for text in texts if text), *calls]


def _arguments(call: Mapping[str, Any]) -> Any:
    return json.loads(call["function"]["arguments"])


def _trajectory(path: Path, rows: Rows, messages: Sequence[Message], start: float) -> None:
    turns: list[dict[str, str]] = []
    for row in rows:
        if row["role"] == "tool":
            content = row["content"]
            looks = isinstance(content, str) and content.strip().startswith(("{", "["))
            answer = {"tool_call_id": row["tool_call_id"], "name": row["tool_name"]}
            said = json.dumps({**answer, "content": json.loads(content) if looks else content})
            said = f"<tool_response>\n{said}\n</tool_response>"
            if turns and turns[-1]["from"] == "tool":
                turns[-1]["value"] += f"\n{said}"
            else:
                turns.append({"from": "tool", "value": said})
        elif row["role"] == "assistant":
            calls = [
                {"name": call["function"]["name"], "arguments": _arguments(call)}
                for call in row["tool_calls"] or ()
            ]
            blocks = [f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls]
            thought = (
                f"<think>\n{row['reasoning']}\n</think>" if row.get("reasoning") else "<think>\n</think>"
            )
            said = plain_text(row["content"]).strip()
            turns.append({"from": "gpt", "value": "\n".join([thought, *([said] if said else []), *blocks])})
        elif row["role"] == "user":
            turns.append({"from": "human", "value": plain_text(row["content"]).strip()})
    told = {"conversations": turns, "timestamp": datetime.now(UTC).isoformat(), "model": "m"}
    path.write_text(json.dumps({**told, "completed": True}) + "\n")


#: Kinds whose session is told by the name of the file.
_NAMED = frozenset({Kind.TRANSCRIPT_JSONL, Kind.RESCUE_JSONL})
_WRITERS: Mapping[Kind, Writer] = {
    Kind.JSONL: _jsonl,
    Kind.DESKTOP_JSON: _desktop,
    Kind.MARKDOWN: _markdown(Kind.MARKDOWN),
    Kind.QMD: _markdown(Kind.QMD),
    Kind.HTML: _html,
    Kind.PROMPTS_JSONL: _prompts_jsonl,
    Kind.PROMPTS_MARKDOWN: _prompts_markdown,
    Kind.SAVE_MARKDOWN: _save_markdown,
    Kind.SAVE_JSON: _save_json,
    Kind.SNAPSHOT_JSON: _snapshot,
    Kind.PENDING: _pending,
    Kind.TRANSCRIPT_JSONL: _transcript,
    Kind.RESCUE_JSONL: _rescue,
    Kind.RESPONSES: _responses,
    Kind.REQUEST_DUMP: _request_dump,
    Kind.TRACE: _trace,
    Kind.TRAJECTORY: _trajectory,
}
WRITTEN = tuple(_WRITERS)
