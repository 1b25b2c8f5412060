"""Trace exports (0.18.2 and newer): the live messages of a session in the wording of another program.

Every line bears the time of the export, none that of its message. Texts were cleaned and stripped, and
secrets are masked unless that was turned off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from statemend.formats import api_messages, clock, json_lines
from statemend.formats.artifact import Artifact, Kind, Record, Section

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.TRACE})
_VERSION = "hermes-agent"


def recognise(head: bytes) -> Kind | None:
    """``Kind.TRACE`` when the first line of ``head`` is a turn of such an export, whole or cut."""
    value = json_lines.first(head)
    if value is None:
        start = head.lstrip()[:4096]
        cut = start.startswith(b'{"parentUuid": null, ') and b'"version": "hermes-agent"' in start
        return Kind.TRACE if cut else None
    return Kind.TRACE if _is_turn(value) else None


def read(path: Path) -> Artifact:
    """One section for each stretch of lines of one session."""
    return json_lines.read(path, Kind.TRACE, _is_turn, _sections)


def _sections(turns: Iterator[json_lines.Object]) -> list[Section]:
    found: list[Section] = []
    session_id, start, end, held, at = "", 0, 0, 0, None
    for turn in turns:
        if held and turn.value["sessionId"] != session_id:
            found.append(Section(session_id, start, end - start, exported_at=at, held=held))
            held = 0
        if not held:
            session_id, start = turn.value["sessionId"], turn.offset
            at = clock.epoch_of_iso(turn.value.get("timestamp"))
        held += len(list(api_messages.records_of(turn.value["message"], 0)))
        end = turn.offset + turn.length
    if end > start:
        found.append(Section(session_id, start, end - start, exported_at=at, held=held))
    return found


def records(path: Path, section: Section) -> Iterator[Record]:
    """The messages of one section, in the order of the file."""
    position = 0
    for value in json_lines.values(path, section):
        if _is_turn(value):
            for record in api_messages.records_of(value["message"], position):
                yield record
                position += 1


def _is_turn(value: dict[str, Any]) -> bool:
    return (
        value.get("version") == _VERSION
        and "parentUuid" in value
        and isinstance(value.get("sessionId"), str)
        and isinstance(value.get("message"), dict)
    )
