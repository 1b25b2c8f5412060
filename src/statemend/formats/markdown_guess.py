"""The messages of a Markdown export as they look to a reader who no longer has the store.

A message that imitates the format is read as several. Where the store still has the session, its rows are
rendered and found instead (``markdown_walk``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from statemend.formats.artifact import Record, Section
from statemend.formats.clock import epoch_of_iso
from statemend.formats.markdown_document import Document
from statemend.formats.markdown_render import segment_heading
from statemend.store.content import is_summary_text

_TIME = r"\d{4}-\d\d-\d\dT[\d:.]+Z"
_LIKELY_HEADING = re.compile(
    rf"### (?P<label>[A-Z]\S*|Tool — (?!{_TIME}\Z)[^\n]+?)(?: — (?P<time>{_TIME}))?\Z"
)
_TOOL_CALLS = "\n\n## Tool calls\n\n```json\n"


def records(path: Path, section: Section, session_id: str | None = None) -> Iterator[Record]:
    """The messages as they look to a reader without the store: lossy, and fooled by a message that imitates
    the format.

    ``session_id`` picks one segment of a file that holds several. Raises ``Undetermined``.
    """
    yield from records_of(Document.load(path, section), session_id)


def records_of(document: Document, session_id: str | None = None) -> Iterator[Record]:
    """The same, of a file that is open already."""
    if document.empty:
        return
    position = 0
    for owner, chunk in likely_messages(document):
        if session_id is not None and owner != session_id:
            continue
        record = likely_record(position, chunk)
        if record is not None:
            yield record
            position += 1


def likely_messages(document: Document) -> Iterator[tuple[str, str]]:
    """Session id and text of each stretch that looks like one message, heading included."""
    headings = (
        {segment_heading(owner): owner for owner in document.lineage} if len(document.lineage) > 1 else {}
    )
    owner = document.session_id
    text = document.block.decode("utf-8", "surrogateescape")
    position = 0
    while position < len(text):
        line = text[position : _or_end(text, text.find("\n\n", position)) + 2]
        if line in headings:
            owner, position = headings[line], position + len(line)
            continue
        end = _or_end(text, _next_start(text, position, headings))
        yield owner, text[position:end]
        position = end


def _next_start(text: str, position: int, headings: dict[str, str]) -> int:
    """Where the next stretch begins: after two empty lines, at a line that could be a heading."""
    while (blank := text.find("\n\n\n##", position)) >= 0:
        start = blank + 3
        line = text[start : _or_end(text, text.find("\n", start))]
        if _LIKELY_HEADING.match(line) or f"{line}\n\n" in headings:
            return start
        position = start
    return -1


def _or_end(text: str, position: int) -> int:
    return position if position >= 0 else len(text)


def likely_record(position: int, chunk: str) -> Record | None:
    """The message that a stretch of the file looks like, if its first line looks like a heading."""
    line, _, body = chunk.partition("\n")
    match = _LIKELY_HEADING.match(line)
    if match is None:
        return None
    label, _, name = match["label"].partition(" — ")
    text, tool_calls = _split_tool_calls(body)
    return Record(
        position=position,
        role=label.lower(),
        content=text.removeprefix("\n").rstrip("\n") or None,
        timestamp=epoch_of_iso(match["time"]),
        tool_calls=tool_calls,
        tool_name=name or None,
        summary=is_summary_text(text.strip()),
    )


def _split_tool_calls(body: str) -> tuple[str, list[Any] | None]:
    start = body.rfind(_TOOL_CALLS)
    if start < 0:
        return body, None
    try:
        calls = json.loads(body[start + len(_TOOL_CALLS) :].rstrip("\n").removesuffix("```"))
    except (ValueError, RecursionError):
        return body, None
    return (body[:start], calls) if isinstance(calls, list) else (body, None)
