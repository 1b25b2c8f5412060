"""``sessions/<id>.jsonl``: a message per line, as the gateway of 0.13 and 0.14 keeps beside the store, or as
0.22 puts aside what it cannot store because the store was replaced.

No line names the session; the file's name does where it looks like an id that Hermes makes. The gateway
writes the wall time of a turn on each of its messages, 0.22 the time that the row would have had.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from statemend.formats import clock, files, json_lines, memory_messages
from statemend.formats.artifact import Artifact, Kind, Record, Section

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.TRANSCRIPT_JSONL, Kind.RESCUE_JSONL})
_SESSION_ID = re.compile(r"\w*\d{8}_\d{6}\w*")
_META = "session_meta"


def recognise(head: bytes) -> Kind | None:
    """The kind of transcript whose line is the first one of ``head``, or ``None``."""
    value = json_lines.first(head)
    if value is None or not _is_line(value):
        return None
    stored = "_compressed_summary" in value and "observed" in value
    return Kind.RESCUE_JSONL if stored else Kind.TRANSCRIPT_JSONL


def read(path: Path) -> Artifact:
    """One section for the whole file."""
    kind = recognise(files.head(path)) or Kind.TRANSCRIPT_JSONL
    named = path.stem if _SESSION_ID.fullmatch(path.stem) else ""
    return json_lines.read(path, kind, _is_line, lambda lines: _sections(lines, named))


def _sections(lines: Iterator[json_lines.Object], session_id: str) -> list[Section]:
    end = held = 0
    for line in lines:
        held += memory_messages.is_message(line.value)
        end = line.offset + line.length
    return [Section(session_id, 0, end, held=held)] if end else []


def records(path: Path, section: Section) -> Iterator[Record]:
    """The messages of the file, in its order."""
    position = 0
    for value in json_lines.values(path, section):
        if _is_line(value) and memory_messages.is_message(value):
            yield memory_messages.record_of(value, position)
            position += 1


def _is_line(value: dict[str, Any]) -> bool:
    """Whether an object is a message with a time, or what a transcript says of itself."""
    time, role = value.get("timestamp"), value.get("role")
    timed = clock.finite(time) is not None or (isinstance(time, str) and clock.epoch_if_utc(time) is not None)
    return isinstance(role, str) and timed and "type" not in value and ("content" in value or role == _META)
