"""Markdown and QMD exports as Hermes writes them, byte for byte.

The format escapes nothing, so the only reliable way to find a message of the store in a file is to render
it again and compare. ``render_message`` is that rendering; ``render`` builds a whole file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from statemend.formats.artifact import Kind
from statemend.formats.clock import trusted_epoch
from statemend.store.history import Message

EXPORTER = "hermes sessions export (md/qmd) v1"
MESSAGES_HEADING = "## Messages\n\n"
NO_MESSAGES = "_No messages in this session._"
FOOTER_HEADING = "## Export verification"
#: The exporter fills the digest in by replacing this word, wherever in the file it stands.
PLACEHOLDER = "__SHA256_PLACEHOLDER__"
PENDING = "pending"

#: One rendered segment of a lineage: its session id and its messages in order.
Segment = tuple[str, Sequence[Message]]


def iso(value: Any) -> str:
    """A time cell as releases from 0.22 print it: ISO 8601 in UTC with microseconds, ``""`` when unset, the
    cell itself when it is corrupt."""
    number = trusted_epoch(value)
    if number is None:
        return "" if value is None or value == "" else str(value)
    return _iso_of(number)


def iso_unguarded(value: Any) -> str:
    """A time cell as releases before 0.22 print it: any number that the calendar can hold is a time."""
    try:
        return _iso_of(float(value))
    except (TypeError, ValueError, OverflowError, OSError):
        return iso(value)


def _iso_of(number: float) -> str:
    return datetime.fromtimestamp(number, tz=UTC).isoformat().replace("+00:00", "Z")


def json_block(value: Any) -> str:
    """A value as indented JSON in a fence. Laying out what is written already is many times faster than the
    standard library's indenting writer, whose time grows with the square of the nesting."""
    try:
        shown = msgspec.json.format(json.dumps(value, ensure_ascii=False), indent=2)
    except (msgspec.MsgspecError, UnicodeEncodeError):  # NaN and lone surrogates, which only Python writes
        shown = json.dumps(value, ensure_ascii=False, indent=2)
    return f"```json\n{shown}\n```"


def render_heading(message: Message, *, guarded: bool = True) -> str:
    """The heading line of one message, without its newline. ``guarded`` is false for releases before 0.22,
    which differ only in how they print corrupt times."""
    role = str(message.role or "message")
    label = f"Tool — {message.tool_name}" if role == "tool" and message.tool_name else role.capitalize()
    stamp = message.timestamp
    time = (iso if guarded else iso_unguarded)(stamp)
    return f"### {label} — {time}" if time else f"### {label}"


def render_text(content: Any) -> str:
    """Decoded message content as the format shows it: text without trailing whitespace, anything else as a
    JSON block."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content.rstrip()
    if isinstance(content, bytes):
        return content.decode("utf-8", "backslashreplace").rstrip()
    return json_block(content)


def render_body(message: Message) -> str:
    """What follows the heading line of one message, up to the next message."""
    text = render_text(message.content)
    body = f"\n\n{text}\n\n" if text else "\n\n"
    if message.tool_calls:
        body += f"\n\n## Tool calls\n\n{json_block(message.tool_calls)}\n\n"
    return body + "\n"


def render_message(message: Message, *, guarded: bool = True) -> str:
    """One message block. It ends with two empty lines, which the file's last message loses."""
    return render_heading(message, guarded=guarded) + render_body(message)


def segment_heading(session_id: str) -> str:
    """The line that opens one segment of a file that holds several, with the empty line after it."""
    return f"## Compression segment: {session_id}\n\n"


def render_messages(segments: Sequence[Segment]) -> str:
    """The messages block of a file, from its heading to the newline before the footer."""
    if not any(messages for _, messages in segments):
        return f"{MESSAGES_HEADING}{NO_MESSAGES}\n"
    parts = [MESSAGES_HEADING]
    for session_id, messages in segments:
        if len(segments) > 1:
            parts.append(segment_heading(session_id))
        parts.extend(render_message(message) for message in messages)
    return "".join(parts).rstrip() + "\n"


def render(
    session: Mapping[str, Any],
    segments: Sequence[Segment],
    *,
    kind: Kind,
    exported_at: float,
    lineage: Sequence[str] = (),
) -> str:
    """A whole export file.

    ``session`` is the session's record as ``store.history.session_record`` gives it; ``lineage`` lists the
    ids of a logical export and stays empty for a single session. ``exported_at`` is epoch seconds.
    Raises ``UnicodeEncodeError`` where Hermes does, for text that UTF-8 cannot hold.
    """
    session_id = id_of(session)
    count = sum(len(messages) for _, messages in segments)
    declared = count if lineage else session.get("message_count", count)
    exported = iso(exported_at)
    body = (
        opening(session, count, lineage, kind, exported)
        + render_messages(segments)
        + closing(session_id, count, declared, exported)
        + f"{PLACEHOLDER}`\n"
    )
    hashed = body.replace(f"`{PLACEHOLDER}`", f"`{PENDING}`")
    return body.replace(PLACEHOLDER, hashlib.sha256(hashed.encode("utf-8")).hexdigest())


def id_of(session: Mapping[str, Any]) -> str:
    """The id that a file names its session by."""
    return str(session.get("id") or "unknown-session")


def opening(session: Mapping[str, Any], count: int, lineage: Sequence[str], kind: Kind, exported: str) -> str:
    """A file up to its messages block. ``exported`` is the time of the export as it is printed."""
    session_id = id_of(session)
    head = ["---", *front_matter(session, session_id, count, lineage, kind, exported), "---", ""]
    parts = ["\n".join(head), f"# {session.get('title') or session_id}\n", f"Session ID: `{session_id}`\n"]
    if session.get("source"):
        parts.append(f"Source: `{session['source']}`\n")
    if session.get("cwd"):
        parts.append(f"Working directory: `{session['cwd']}`\n")
    return "\n".join(parts) + "\n"


def closing(session_id: str, count: int, declared: Any, exported: str) -> str:
    """The footer behind the messages block, up to the digest. ``declared`` is how many messages the store
    says it has."""
    return (
        f"\n{FOOTER_HEADING}\n\n"
        f"- Session id: `{session_id}`\n"
        f"- Exported messages: `{count}`\n"
        f"- Source DB message count at export: `{declared}`\n"
        f"- Exported at: `{exported}`\n"
        "- SHA256 of exported body: `"
    )


def front_matter(
    session: Mapping[str, Any], session_id: str, count: int, lineage: Sequence[str], kind: Kind, exported: str
) -> list[str]:
    fields: list[tuple[str, Any]] = [
        ("session_id", session_id),
        ("title", session.get("title")),
        ("source", session.get("source")),
        ("created_at", iso(session.get("started_at"))),
        ("updated_at", iso(session.get("last_active"))),
        ("ended_at", iso(session.get("ended_at"))),
        ("model", session.get("model")),
        ("provider", session.get("billing_provider") or session.get("provider")),
        ("cwd", session.get("cwd")),
        ("archived", bool(session.get("archived"))),
        ("message_count", count),
        ("tool_call_count", session.get("tool_call_count") or 0),
    ]
    if lineage:
        fields.append(("lineage_session_ids", list(lineage)))
    fields += [
        ("format", "qmd" if kind is Kind.QMD else "md"),
        ("exported_at", exported),
        ("exporter", EXPORTER),
    ]
    return [f"{key}: {_scalar(value)}" for key, value in fields]


def _scalar(value: Any) -> str:
    plain = value is None or isinstance(value, bool | int | float | list)
    return json.dumps(value if plain else str(value), ensure_ascii=False)
