"""``sessions/sessions.json``: which session each chat of the gateway goes to. It holds no messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from statemend.formats import json_document
from statemend.formats.artifact import Artifact, Kind

#: Its entries are no messages of a session.
SHOWN: Final[frozenset[Kind]] = frozenset()


class RoutingEntry(NamedTuple):
    """A chat of the gateway, by its key, and the session that it goes to."""

    session_key: str
    session_id: str


def recognise(head: bytes) -> Kind | None:
    """``Kind.ROUTING`` when every member in ``head`` is a chat and its session; members that begin with an
    underscore are remarks."""
    members = {key: value for key, value in json_document.opening(head).items() if not key.startswith("_")}
    fits = members and all(_entry(key, value) is not None for key, value in members.items())
    return Kind.ROUTING if fits else None


def read(path: Path) -> Artifact:
    """The file as an artifact without sections."""
    return json_document.read(path, Kind.ROUTING, lambda members, size, flaw: ())


def entries(path: Path) -> Iterator[RoutingEntry]:
    """Every chat of the file and its session. Raises ``Undetermined``."""
    for key, value in json_document.members(path).items():
        entry = _entry(key, value)
        if entry is not None and not key.startswith("_"):
            yield entry


def _entry(key: str, value: Any) -> RoutingEntry | None:
    session_id = value.get("session_id") if isinstance(value, Mapping) else None
    return RoutingEntry(key, session_id) if isinstance(session_id, str) and "session_key" in value else None
