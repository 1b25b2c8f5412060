"""JSONL exports: one session per line, every column of its row, then its messages.

Written by ``hermes sessions export`` of every release. The pretty-printed object that ``/save json``
writes from 0.20.1 on, and the compact one that the dashboard downloads, are the same object alone in
a file and are read here too. ``read`` decodes only what names and dates a session and counts its messages;
``records`` decodes one session at a time.

A line that is cut off or spoilt keeps its section, marked as damaged: what was complete before that place
is read, since it may be the only copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from statemend.formats import clock, files, lenientjson
from statemend.formats.artifact import Artifact, Kind, Record, Section
from statemend.formats.damage import Damage
from statemend.formats.jsonl_writer import render
from statemend.store.content import is_summary_text

__all__ = ["read", "recognise", "records", "render"]

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.JSONL})
#: Every release writes these two columns first. What other programs keep of conversations may have an id and
#: messages too.
_SESSION_START = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"id"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*"source"\s*:', re.DOTALL
)
_DOCUMENT_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*\n\s+"')


class _MessageHead(msgspec.Struct, gc=False):
    role: str


class _SessionHead(msgspec.Struct, gc=False):
    """The few members of a session object that ``read`` needs; decoding skips all others."""

    id: str
    messages: list[_MessageHead]
    title: str | None = None
    started_at: float | None = None
    parent_session_id: str | None = None
    message_count: int | None = None
    lineage_session_ids: list[str] | None = None


class _Reordered(_SessionHead, gc=False, kw_only=True):
    """The members by which a session object is told whose members were put in another order."""

    source: str
    started_at: float


_HEADS = msgspec.json.Decoder(_SessionHead)
_REORDERED = msgspec.json.Decoder(_Reordered)


def recognise(head: bytes) -> Kind | None:
    """``Kind.JSONL`` when a line of ``head`` starts a session object."""
    *complete, last = head.split(b"\n")
    if any(_looks_like_session(line) for line in complete):
        return Kind.JSONL
    return Kind.JSONL if _SESSION_START.match(last) or _is_document(head) else None


def _looks_like_session(line: bytes) -> bool:
    if b'"messages"' not in line:
        return False
    if _SESSION_START.match(line):
        return True
    try:
        _REORDERED.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def read(path: Path) -> Artifact:
    """Every session of the file, one section per line.

    Raises ``Undetermined`` when the system cannot read the file, and for nothing that it contains.
    """
    if _is_document(files.head(path)):
        return _read_document(path)
    scan, damage, sections = lenientjson.lines(path), Damage(), []
    for line in scan:
        if line.overlong:
            damage.line(line.number, "is too long to be read", "are too long to be read")
            continue
        if not line.data.strip():
            continue
        section = _section(line, damage)
        if section is not None:
            sections.append(section)
    return _artifact(path, scan, sections, damage)


def _artifact(path: Path, scan: files.Scan, sections: list[Section], damage: Damage) -> Artifact:
    if scan.changed:
        damage.whole("the file changed while it was read")
    return Artifact(
        path=str(path),
        kind=Kind.JSONL,
        size=scan.size,
        modified_at=scan.modified_at,
        sha256=scan.sha256,
        sections=tuple(sections),
        damage=damage.phrase(),
    )


def _section(line: files.Line, damage: Damage) -> Section | None:
    """The section of one line; what is wrong with the line goes to ``damage``."""
    if not lenientjson.is_utf8(line.data):
        damage.line(line.number, "is not UTF-8", "are not UTF-8")
    try:
        head = _HEADS.decode(line.data)
    except (msgspec.MsgspecError, RecursionError):
        return _odd_section(line, damage)
    return Section(
        session_id=head.id,
        offset=line.offset,
        length=line.length,
        title=head.title,
        started_at=clock.finite(head.started_at),
        parent_id=head.parent_session_id,
        lineage=tuple(head.lineage_session_ids or ()),
        source_count=head.message_count,
        held=len(head.messages),
    )


def _odd_section(line: files.Line, damage: Damage) -> Section | None:
    """The section of a line that is cut, hostile or only unusual (a ``NaN``, a lone surrogate)."""
    flaw = None
    try:
        session = lenientjson.loads(line.data)
    except lenientjson.UnreadableJsonError:
        session = lenientjson.complete_members(line.data, "messages")
        if line.data.endswith(b"\n"):
            flaw = "unreadable behind its start"
            damage.unreadable(line.number)
        else:
            flaw = "cut off"
            damage.whole("the last line is cut off")
    if not isinstance(session, dict) or not isinstance(session.get("id"), str):
        if flaw is None:
            damage.line(line.number, "holds no session", "hold no session")
        return None
    messages = session.get("messages")
    if not isinstance(messages, list):
        if flaw is None:
            damage.line(line.number, "holds a session without messages", "hold sessions without messages")
            flaw = "no messages"
        messages = []
    held = sum(_is_message(message) for message in messages)
    if held < len(messages):
        damage.line(line.number, "holds entries that are no messages", "hold entries that are no messages")
        flaw = flaw or "some entries are no messages"
    return _from_mapping(session, line.offset, line.length, held, flaw)


def _from_mapping(session: dict[str, Any], offset: int, length: int, held: int, flaw: str | None) -> Section:
    lineage = session.get("lineage_session_ids")
    count = session.get("message_count")
    return Section(
        session_id=session["id"],
        offset=offset,
        length=length,
        title=_text(session.get("title")),
        started_at=clock.finite(session.get("started_at")),
        parent_id=_text(session.get("parent_session_id")),
        lineage=tuple(i for i in lineage if isinstance(i, str)) if isinstance(lineage, list) else (),
        source_count=count if type(count) is int else None,
        held=held,
        damage=flaw,
    )


def _is_document(head: bytes) -> bool:
    return _DOCUMENT_START.match(head) is not None and _SESSION_START.match(head) is not None


def _read_document(path: Path) -> Artifact:
    """One pretty-printed session object that fills the file."""
    scan, damage = files.Scan(path).drain(), Damage()
    data = files.chunk(path, 0, scan.size) if scan.size <= files.LONGEST_LINE else None
    if data is None or not lenientjson.fits(data):
        damage.whole("the file is too long to be read as one object")
        return _artifact(path, scan, [], damage)
    line = files.Line(1, 0, len(data), data.rstrip(b"\r\n"))
    section = _section(line, damage)
    return _artifact(path, scan, [] if section is None else [section], damage)


def records(path: Path, section: Section) -> Iterator[Record]:
    """The messages of one section, in the order of the file. Entries that are no messages are left out."""
    data = files.chunk(path, section.offset, section.length)
    try:
        session = lenientjson.loads(data)
    except lenientjson.UnreadableJsonError:
        session = lenientjson.complete_members(data, "messages")
    messages = session.get("messages") if isinstance(session, dict) else None
    if isinstance(messages, list):
        shown = (message for message in messages if _is_message(message))
        for position, message in enumerate(shown):
            yield record_of(message, position)


def record_of(message: dict[str, Any], position: int) -> Record:
    """A message object of an export as a record; members of the wrong type count as absent."""
    content = message.get("content")
    calls = message.get("tool_calls")
    return Record(
        position=position,
        role=message["role"],
        content=content,
        timestamp=clock.finite(message.get("timestamp")),
        row_id=_integer(message.get("id")),
        tool_call_id=_text(message.get("tool_call_id")),
        tool_calls=calls if isinstance(calls, list) else None,
        tool_name=_text(message.get("tool_name")),
        reasoning=_text(message.get("reasoning")) or _text(message.get("reasoning_content")),
        active=_integer(message.get("active")),
        compacted=_integer(message.get("compacted")),
        summary=message.get("_compressed_summary") is True or is_summary_text(content),
        row=message,
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
