"""``sessions/session_<id>.json``: what the agent of 0.13 to 0.20 held of a session after its last turn.

0.13 and 0.14 always write it, later releases when asked to, and those with secrets masked. It is never
replaced by a shorter list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from statemend.formats import json_document, memory_messages
from statemend.formats.artifact import Artifact, Kind, Record, Section

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.SNAPSHOT_JSON})
_MARKS = frozenset({"session_id", "model", "session_start", "last_updated"})


def recognise(head: bytes) -> Kind | None:
    """``Kind.SNAPSHOT_JSON`` when ``head`` begins such an object."""
    return Kind.SNAPSHOT_JSON if json_document.opening(head).keys() >= _MARKS else None


def read(path: Path) -> Artifact:
    """One section for the whole file."""
    return json_document.read(path, Kind.SNAPSHOT_JSON, _sections)


def _sections(members: Mapping[str, Any], size: int, flaw: str | None) -> Iterator[Section]:
    declared = members.get("message_count")
    if members:
        yield Section(
            session_id=json_document.text(members.get("session_id")) or "",
            offset=0,
            length=size,
            declared=declared if type(declared) is int else None,
            held=len(memory_messages.messages_of(members.get("messages"))),
            damage=flaw,
        )


def records(path: Path, section: Section) -> Iterator[Record]:
    """The messages of the file, in its order."""
    return memory_messages.records(json_document.members(path).get("messages"))
