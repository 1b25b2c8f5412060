"""The JSON that the desktop program exports: the rows of a conversation as its server shows them.

Each row names its session. From 0.22 on the conversation includes the segments before a rotating compression,
and the requested session may have been continued under another id: there is a section for each session of
which the file has rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from statemend.formats import clock, json_document
from statemend.formats.artifact import Artifact, Kind, Record, Section
from statemend.formats.jsonl import record_of

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.DESKTOP_JSON})
_MARKS = frozenset({"exported_at", "session_id", "title"})


def recognise(head: bytes) -> Kind | None:
    """``Kind.DESKTOP_JSON`` when ``head`` begins such an object."""
    members = json_document.opening(head)
    fits = members.keys() >= _MARKS and ("message_count" in members or "session" in members)
    return Kind.DESKTOP_JSON if fits and clock.epoch_of_iso(members["exported_at"]) is not None else None


def read(path: Path) -> Artifact:
    """One section for each session that a row names; the requested one alone where the file has no row."""
    return json_document.read(path, Kind.DESKTOP_JSON, _sections)


def _sections(members: Mapping[str, Any], size: int, flaw: str | None) -> Iterator[Section]:
    requested = json_document.text(members.get("session_id")) or ""
    counts: dict[str, int] = {}
    for row in _rows(members):
        owner = _owner(row, members)
        counts[owner] = counts.get(owner, 0) + 1
    if members and not counts:
        counts[requested] = 0
    declared = members.get("message_count")
    for owner, count in counts.items():
        yield Section(
            session_id=owner,
            offset=0,
            length=size,
            title=json_document.text(members.get("title")) if owner == requested else None,
            declared=declared if type(declared) is int and len(counts) == 1 else None,
            exported_at=clock.epoch_of_iso(members.get("exported_at")),
            held=count,
            damage=flaw,
        )


def records(path: Path, section: Section) -> Iterator[Record]:
    """The rows of one session, in the order of the file."""
    return (record for owner, record in _owned(path) if owner == section.session_id)


def carried(path: Path, section: Section) -> Iterator[Record]:
    """The rows of the other sessions in the file: a message that compression carried from one segment to the
    next is shown once, as the row of the later one."""
    return (record for owner, record in _owned(path) if owner != section.session_id)


def _owned(path: Path) -> Iterator[tuple[str, Record]]:
    members = json_document.members(path)
    positions: dict[str, int] = {}
    for row in _rows(members):
        owner = _owner(row, members)
        position = positions[owner] = positions.get(owner, -1) + 1
        yield owner, record_of(row, position)


def _rows(members: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    rows = members.get("messages")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(row.get("role"), str):
            yield row


def _owner(row: Mapping[str, Any], members: Mapping[str, Any]) -> str:
    """The session of a row; the requested one where the row names none."""
    return json_document.text(row.get("session_id")) or json_document.text(members.get("session_id")) or ""
