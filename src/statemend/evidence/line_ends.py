"""Whether a Markdown export is the file that was written, but for its line ends.

What converts the line ends of a whole file (Git, an editor, a copy to Windows) converts those inside of
messages too, and its checksum is of the text before. The file alone does not tell which messages had others.
The rows of the store do: each is put back as the exporter wrote it, and then the checksum has to hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from statemend.evidence.match_markdown import conversions, renderings_of, walk_session
from statemend.formats.markdown import Document
from statemend.formats.markdown_walk import Hit, Renderings
from statemend.store.connection import Store
from statemend.store.history import View, messages


class _Piece(NamedTuple):
    """A part of the messages, and what the exporter had written there."""

    start: int
    end: int
    written: bytes


def only_line_ends(store: Store, document: Document) -> bool:
    """Whether nothing is wrong with a file any more once its messages have their line ends again. Raises
    ``StoreUnreadable``."""
    pieces = sorted(each for session_id in document.segments for each in _pieces(store, document, session_id))
    if not pieces:
        return False
    text, block, place = document.messages, bytearray(), 0
    for piece in pieces:
        block += text[place : piece.start] + piece.written
        place = piece.end
    block += text[place:]
    written = document.data[: document.block_start] + block[:-2] + document.data[document.block_end :]
    return Document(written).damage is None


def _pieces(store: Store, document: Document, session_id: str) -> Iterator[_Piece]:
    """What stands there with other line ends than a message of the session has."""
    rows = list(messages(store, session_id, View.RAW))
    written = conversions(rows, document)
    if not written:
        return
    text = document.messages
    path = walk_session(text, Renderings(renderings_of(rows, document)), session_id, document)
    for step in path.steps if path is not None else ():
        if isinstance(step, Hit) and (shown := text[step.start : step.end]) in written:
            yield _Piece(step.start, step.end, written[shown])
