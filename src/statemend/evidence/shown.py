"""What each source shows of one session, message by message and in its own order.

A source is one section of an artifact, or the store itself. Markdown escapes nothing, so what is known of the
session already is rendered and found again in such a file; only what lies between is read for what it looks
like.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from statemend import formats
from statemend.evidence.match_markdown import pieces_of, renderings_of, walk_session
from statemend.evidence.prompt_blocks import prompt_records
from statemend.evidence.rows import Fidelity
from statemend.evidence.wording import MARKDOWN, WHOLE
from statemend.formats import stores
from statemend.formats.artifact import FILTERED, Artifact, Kind, Record, Section
from statemend.formats.files import chunk
from statemend.formats.markdown import Document
from statemend.formats.markdown_guess import likely_record, records_of
from statemend.formats.markdown_walk import Hit, Renderings
from statemend.formats.prompts import prompt_text
from statemend.store.connection import Store
from statemend.store.history import Message, RowState
from statemend.store.message import row_state


class Source(NamedTuple):
    """Where records come from. ``offset`` names the section, in bytes of the file; ``number`` tells sources
    apart, in the order in which they are put together: what keeps most of each message comes first."""

    number: int
    artifact: str
    kind: Kind
    section: Section

    @property
    def fidelity(self) -> Fidelity:
        return Fidelity.EXACT if self.kind in WHOLE else Fidelity.LOSSY


class Shown(NamedTuple):
    """One record of a source; ``known`` is the message that it was recognised as, if it was. ``cut``: the
    file ends inside it."""

    record: Record
    known: int | None = None
    cut: bool = False


#: Formats by how much of a message they keep, best first; those from memory are between.
_RANK = {
    Kind.STORE: 0,
    Kind.JSONL: 1,
    Kind.DESKTOP_JSON: 2,
    Kind.MARKDOWN: 3,
    Kind.QMD: 3,
    Kind.SAVE_MARKDOWN: 6,
    Kind.HTML: 5,
    Kind.PROMPTS_JSONL: 7,
    Kind.PROMPTS_MARKDOWN: 8,
}
_FROM_MEMORY = 4


def sources_of(
    store: Store, session_id: str, artifacts: Sequence[tuple[Artifact, Section]]
) -> tuple[Source, ...]:
    """The store if it has rows of the session, and every artifact that names it, in a fixed order."""
    ranked = sorted(
        artifacts,
        key=lambda each: (
            _RANK.get(each[0].kind, _FROM_MEMORY),
            -(each[1].held or each[1].declared or 0),
            each[0].path,
            each[1].offset,
        ),
    )
    found = [(artifact.path, artifact.kind, section) for artifact, section in ranked]
    if store.one("SELECT 1 FROM messages WHERE session_id = ? LIMIT 1", (session_id,)) is not None:
        found.insert(0, (store.path, Kind.STORE, Section(session_id=session_id, offset=0, length=0)))
    return tuple(Source(number, *each) for number, each in enumerate(found))


def shown_by(
    source: Source, store: Store, session_id: str, known: Mapping[int, Message], prompts: Mapping[int, str]
) -> Iterator[Shown]:
    """The records of a source in its order. ``known`` are messages whose whole text is known, by number;
    ``prompts`` the texts of user messages by row id. Raises ``Undetermined``, ``StoreUnreadable``."""
    path = Path(source.artifact)
    if source.kind is Kind.STORE:
        own = source.artifact == store.path
        rows = stores.records_of(store, session_id) if own else stores.records(path, source.section)
        yield from (Shown(_as_exported(record)) for record in rows)
    elif source.kind in MARKDOWN:
        yield from _in_markdown(Document.load(path, source.section), session_id, known)
    elif source.kind is Kind.PROMPTS_MARKDOWN:
        data = chunk(path, source.section.offset, source.section.length)
        yield from map(Shown, prompt_records(data, prompts))
    else:
        artifact = Artifact(source.artifact, source.kind, size=0, modified_at=0.0, sha256="")
        lineage = bool(source.section.lineage)
        for record in formats.records(path, artifact, source.section):
            owner = (record.row or {}).get("session_id")
            if not lineage or owner is None or owner == session_id:
                yield Shown(record)


def _as_exported(record: Record) -> Record:
    """A row as an export shows it, in which a blob is written in digits."""
    if not isinstance(record.content, bytes):
        return record
    return msgspec.structs.replace(record, content={"blob": record.content.hex()})


def as_message(record: Record, number: int) -> Message:
    """A record as the row that it was, numbered anew, for rendering it again."""
    row: Mapping[str, Any] = record.row or {}
    return Message(
        id=number,
        session_id="",
        role=record.role,
        content=record.content,
        timestamp=row.get("timestamp", record.timestamp),
        tool_call_id=record.tool_call_id,
        tool_calls=row.get("tool_calls", record.tool_calls),
        tool_name=record.tool_name,
        finish_reason=None,
        reasoning=None,
        reasoning_content=None,
        platform_message_id=None,
        observed=None,
        state=RowState.LIVE,
        summary=record.summary,
        display_kind=None,
        display_metadata=None,
    )


def state_of(record: Record) -> RowState | None:
    """The state of the row, where the format has the flags."""
    if record.row is None or "active" not in record.row:
        return None
    return row_state(record.active, record.compacted)


def text_of_prompt(record: Record, kind: Kind) -> str | None:
    """The text that an export of prompts shows for a record, where that can be told."""
    return prompt_text(record.content) if record.role == "user" and kind not in FILTERED else None


def _in_markdown(document: Document, session_id: str, known: Mapping[int, Message]) -> Iterator[Shown]:
    text = document.messages
    renderings = Renderings(renderings_of(list(known.values()), document))
    path = walk_session(text, renderings, session_id, document)
    if path is None or document.empty:
        return
    if not path.hits:
        # Nothing of it is known. A file that says whose each message is is read as a whole.
        whole = list(records_of(document, session_id))
        for record in whole:
            yield Shown(record, cut=document.footer is None and record is whole[-1])
        return
    position = 0
    taken: set[int] = set()
    for step in path.steps:
        if isinstance(step, Hit):
            number = next((each for each in step.rows if each not in taken), step.rows[0])
            taken.add(number)
            found = likely_record(position, _decoded(text[step.start : step.end]))
            yield Shown(found or _bare(known[number], position), number)
            position += 1
            continue
        pieces = pieces_of(text[step.start : step.end], renderings)
        at_cut = document.footer is None and step is path.steps[-1] and path.end == len(text)
        for number, piece in enumerate(pieces, start=1):
            likely = likely_record(position, _decoded(piece))
            if likely is not None:
                yield Shown(likely, cut=at_cut and number == len(pieces))
                position += 1


def _bare(message: Message, position: int) -> Record:
    """A message found by its rendering, whose heading no reader would take for one."""
    return Record(position=position, role=message.role, timestamp=message.timestamp, content=message.content)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
