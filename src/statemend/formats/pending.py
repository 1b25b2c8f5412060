"""``pending_messages/pending-*.json`` (0.20 and newer), and what was rejected (``.bad``): messages that could
not be stored.

Three forms: the messages that an agent held when it was stopped, one message of a transcript that did not get
into the store in time, and one that was still waiting for its turn. The last names a chat, not a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from statemend.formats import json_document, memory_messages
from statemend.formats.artifact import Artifact, Kind, Record, Section

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.PENDING})
_HISTORY = frozenset({"reason", "issue", "session_id", "count", "messages"})
_WAITING = frozenset({"session_key", "reason", "ts"})


def recognise(head: bytes) -> Kind | None:
    """``Kind.PENDING`` when ``head`` begins such an object."""
    members = json_document.opening(head)
    history = members.keys() >= _HISTORY and "last_updated" not in members
    waiting = members.keys() >= _WAITING and (isinstance(members.get("data"), dict) or b'"data"' in head)
    return Kind.PENDING if history or waiting else None


def read(path: Path) -> Artifact:
    """One section for the whole file, without a session where it names none."""
    return json_document.read(path, Kind.PENDING, _sections)


def _sections(members: Mapping[str, Any], size: int, flaw: str | None) -> Iterator[Section]:
    if members:
        named = members.get("session_id") or _data(members).get("session_id")
        yield Section(
            session_id=json_document.text(named) or "",
            offset=0,
            length=size,
            held=len(_messages(members)),
            damage=flaw,
        )


def chat_of(path: Path) -> str | None:
    """The key of the chat in which a message was waiting for its turn; ``None`` for the other forms."""
    members = json_document.members(path)
    return json_document.text(members.get("session_key")) if "text" in _data(members) else None


def records(path: Path, section: Section) -> Iterator[Record]:
    """The messages of the file; one that was waiting for its turn is the user's."""
    return memory_messages.records(_messages(json_document.members(path)))


def _messages(members: Mapping[str, Any]) -> list[dict[str, Any]]:
    data = _data(members)
    if "messages" in members:
        return memory_messages.messages_of(members["messages"])
    if "message" in data:
        return memory_messages.messages_of([data["message"]])
    return [{"role": "user", "content": data["text"]}] if isinstance(data.get("text"), str) else []


def _data(members: Mapping[str, Any]) -> Mapping[str, Any]:
    data = members.get("data")
    return data if isinstance(data, dict) else {}
