"""``sessions/request_dump_<id>_<time>.json``: a request to a model that failed, with all its messages.

Texts are as they were sent: memory and notes may have been added to them, and 0.18 and newer mask secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from statemend.formats import api_messages, json_document
from statemend.formats.artifact import Artifact, Kind, Record, Section

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.REQUEST_DUMP})
_MARKS = frozenset({"timestamp", "session_id", "reason"})
_REQUEST = re.compile(rb'"request"\s*:\s*\{\s*"method"\s*:')


def recognise(head: bytes) -> Kind | None:
    """``Kind.REQUEST_DUMP`` when ``head`` begins such an object."""
    fits = json_document.opening(head).keys() >= _MARKS and _REQUEST.search(head)
    return Kind.REQUEST_DUMP if fits else None


def read(path: Path) -> Artifact:
    """One section for the whole file. The messages of a dump that is cut off cannot be told."""
    return json_document.read(path, Kind.REQUEST_DUMP, _sections)


def _sections(members: Mapping[str, Any], size: int, flaw: str | None) -> Iterator[Section]:
    if members:
        yield Section(
            session_id=json_document.text(members.get("session_id")) or "",
            offset=0,
            length=size,
            held=sum(1 for _ in api_messages.records(_sent(members))),
            damage=flaw,
        )


def records(path: Path, section: Section) -> Iterator[Record]:
    """The messages that were sent, in their order, without the system prompt."""
    return api_messages.records(_sent(json_document.members(path)))


def _sent(members: Mapping[str, Any]) -> Any:
    request = members.get("request")
    body = request.get("body") if isinstance(request, dict) else None
    return body.get("messages", body.get("input")) if isinstance(body, dict) else None
