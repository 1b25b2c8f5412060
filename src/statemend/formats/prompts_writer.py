"""Writing ``--only user-prompts`` exports byte for byte as Hermes does (0.18.2 to 0.22.2, all alike)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statemend.formats.clock import utc_seconds

if TYPE_CHECKING:
    from statemend.store.history import Message

NO_PROMPTS = "_No user prompts found._"
MULTI_TITLE = "# User prompts export"
SINGLE_TITLE = "# User prompts for session "
SECTION_TITLE = "## Session "


def prompt_text(content: Any) -> str:
    """The text that the prompts kinds show for a message's content.

    A list gives its non-empty parts, one per line; a part that has no text of its own is shown as JSON.
    """
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(text for text in map(_part_text, content) if text)
    return _part_text(content)


def _part_text(part: Any) -> str:
    if isinstance(part, dict):
        for key in ("text", "content"):
            if isinstance(part.get(key), str):
                return str(part[key])
        return json.dumps(part, ensure_ascii=False, sort_keys=True)
    return str(part)


def render_jsonl(session_id: str, messages: Iterable[Message]) -> Iterator[str]:
    """One line per user message of ``messages``; nothing at all where there is none."""
    for index, message in enumerate(_prompts(messages), start=1):
        line: dict[str, Any] = {
            "session_id": session_id,
            "index": index,
            "created_at": utc_seconds(message.timestamp),
            "role": "user",
            "text": prompt_text(message.content),
            "message_id": message.id,
        }
        if message.platform_message_id:
            line["event_id"] = message.platform_message_id
        yield json.dumps(line, ensure_ascii=False) + "\n"


def render_block(message: Message, index: int, *, level: int = 2) -> str:
    """One prompt of the Markdown kind as it stands between others, its empty last line included.

    ``index`` counts from 1 within the session; ``level`` is 2 in a file of one session, 3 in a file of many.
    At the end of a file the trailing empty lines are missing.
    """
    return "".join(f"{line}\n" for line in _block(message, index, level))


def _block(message: Message, index: int, level: int) -> tuple[str, ...]:
    heading = f"{'#' * level} {index}. {utc_seconds(message.timestamp) or 'timestamp unavailable'}"
    return heading, f"Message ID: `{message.id}`", "", prompt_text(message.content), ""


def render_markdown(sessions: Sequence[tuple[Mapping[str, Any], Iterable[Message]]]) -> str:
    """The Markdown file of ``sessions``: pairs of a session's export dict and its messages."""
    single = len(sessions) == 1
    lines = [] if single else [MULTI_TITLE, ""]
    for session, messages in sessions:
        lines.append((SINGLE_TITLE if single else SECTION_TITLE) + _one_line(_id_of(session), "unknown"))
        lines += [*_metadata(session), ""]
        before = len(lines)
        for index, message in enumerate(_prompts(messages), start=1):
            lines += _block(message, index, 2 if single else 3)
        if len(lines) == before:
            lines += [NO_PROMPTS, ""]
    if not sessions:
        lines.append(NO_PROMPTS)
    while lines[-1] == "":
        lines.pop()
    return "\n".join(lines) + "\n"


def _prompts(messages: Iterable[Message]) -> Iterator[Message]:
    return (message for message in messages if message.role == "user")


def _metadata(session: Mapping[str, Any]) -> Iterator[str]:
    yield f"- Session ID: `{_id_of(session)}`"
    for key, label in (("source", "Source"), ("model", "Model")):
        if session.get(key):
            yield f"- {label}: `{session[key]}`"
    if session.get("title"):
        yield f"- Title: {_one_line(session['title'], '')}"
    started = utc_seconds(session.get("started_at"))
    if started:
        yield f"- Started: {started}"
    if session.get("message_count") is not None:
        yield f"- Messages: {session['message_count']}"


def _id_of(session: Mapping[str, Any]) -> str:
    return str(session.get("id") or "unknown")


def _one_line(value: Any, fallback: str) -> str:
    return " ".join(str(value).splitlines()).strip() or fallback
