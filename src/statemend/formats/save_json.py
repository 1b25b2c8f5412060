"""What ``/save`` and ``session.save`` write from the memory of the running program, as JSON.

Four forms: with the id of the session (terminal, 0.13 to 0.19; the other programs from 0.16 on, with the
system prompt), without it (the other programs up to 0.15.2), and the one of 0.20 and newer for a session that
is not in the store. What ``/save json`` of 0.20 and newer writes otherwise is an export, and no matter here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from statemend.formats import clock, files, json_document, memory_messages
from statemend.formats.artifact import Artifact, Kind, Record, Section

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.SAVE_JSON})
_START = re.compile(rb'\s*\{\s*"(?:model"\s*:|id"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*"model"\s*:)')
_UNSTORED = ("id", "model", "started_at", "messages")
_NAMELESS = ("model", "messages")


def recognise(head: bytes) -> Kind | None:
    """``Kind.SAVE_JSON`` when ``head`` begins such an object."""
    if _START.match(head.removeprefix(files.BYTE_ORDER_MARK)) is None:
        return None
    members = json_document.opening(head)
    names = tuple(members)
    if names in (_UNSTORED, _NAMELESS) and _has_messages(members):
        return Kind.SAVE_JSON
    named = names[:3] == ("model", "session_id", "session_start")
    return (
        Kind.SAVE_JSON if named and names[3:] in (("messages",), ("system_prompt", "messages"), ()) else None
    )


def _has_messages(members: Mapping[str, Any]) -> bool:
    """Whether the array is empty or holds messages: a request to a model may begin in the same way."""
    values = members["messages"]
    return isinstance(values, list) and all(memory_messages.is_message(value) for value in values)


def read(path: Path) -> Artifact:
    """One section for the whole file, without a session where the form names none."""
    return json_document.read(path, Kind.SAVE_JSON, _sections)


def _sections(members: Mapping[str, Any], size: int, flaw: str | None) -> Iterator[Section]:
    if members:
        yield Section(
            session_id=json_document.text(members.get("session_id", members.get("id"))) or "",
            offset=0,
            length=size,
            started_at=clock.finite(members.get("started_at")),
            held=len(memory_messages.messages_of(members.get("messages"))),
            damage=flaw,
        )


def records(path: Path, section: Section) -> Iterator[Record]:
    """The messages of the file, in its order."""
    return memory_messages.records(json_document.members(path).get("messages"))
