"""HTML pages: one session or many, for people to read.

A page has no message ids and shows wall time of an unknown zone, but it keeps every character of the text.
It is read by the byte templates that Hermes writes, because a general HTML parser folds carriage
returns and drops a line break after ``<pre>``. A page that a browser saved again has the same structure in
other bytes; its blocks go through selectolax instead, where carriage returns are lost.

All text is escaped, so a tag in the bytes is never part of a message (except that 0.18.2 wrote
roles, tool names and session ids as they were).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from statemend.formats import files
from statemend.formats.artifact import Artifact, Kind, Record, Section
from statemend.formats.damage import Damage
from statemend.formats.html_blocks import blocks, is_whole, opens, record_of
from statemend.formats.html_template import UNTITLED, Page, unescape
from statemend.formats.html_writer import (
    HIDDEN_ROLE,
    message_text,
    render,
    render_message,
    render_messages,
    render_session,
)

__all__ = [
    "HIDDEN_ROLE",
    "Page",
    "message_text",
    "read",
    "recognise",
    "records",
    "render",
    "render_message",
    "render_messages",
    "render_session",
]

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.HTML})
_DOCTYPE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<!doctype html>", re.IGNORECASE)
_LAYOUT = re.compile(rb'<div class="layout layout-(?:single|multi)"')
_NO_SESSIONS = b"<html><body><h1>No sessions to export.</h1></body></html>"
_VIEW = re.compile(rb'\s*<div class="session-view(?: active)?" id="view-(.*)">\s*\Z', re.DOTALL)
_TITLE = re.compile(rb"\s*<h1>(.*)</h1>", re.DOTALL)
_STARTED = re.compile(rb"<strong>Started:</strong> ([^<]*)</div>")
#: A title of more bytes than this is not looked for any further.
_LONGEST_TITLE = 64 * 1024


def recognise(head: bytes) -> Kind | None:
    """``Kind.HTML`` for a page of sessions, whole or cut off behind its style sheet."""
    if head.startswith(_NO_SESSIONS):
        return Kind.HTML
    if _DOCTYPE.match(head) is None:
        return None
    if _LAYOUT.search(head) or b'<div class="session-view' in head:
        return Kind.HTML
    return Kind.HTML if b".session-view" in head and b".message-header" in head else None


def read(path: Path) -> Artifact:
    """One section per session view. Raises ``Undetermined`` if the system cannot read the file."""
    scan, damage, outline = files.Scan(path), Damage(), _Outline()
    for line in scan:
        if line.overlong:
            damage.line(line.number, "is too long to be read", "are too long to be read")
        outline.add(line)
    if not outline.ended:
        damage.whole("the page ends before </html>")
    if scan.changed:
        damage.whole("the file changed while it was read")
    return Artifact(
        path=str(path),
        kind=Kind.HTML,
        size=scan.size,
        modified_at=scan.modified_at,
        sha256=scan.sha256,
        sections=tuple(outline.finished(scan.size)),
        damage=damage.phrase(),
    )


class _Outline:
    """Finds the session views of a page in one pass, line by line."""

    def __init__(self) -> None:
        self._sections: list[Section] = []
        self._last = b""
        self._start: int | None = None
        self._session_id = ""
        self._title = bytearray()
        self._in_title = False
        self._clock: str | None = None
        self._in_header = False
        self._in_message = False
        self._held = 0

    @property
    def ended(self) -> bool:
        """Whether the page has its end."""
        return self._last.rstrip().endswith(b"</html>")

    def add(self, line: files.Line) -> None:
        data = line.data
        if not data.isspace():
            self._last = data
        if b'<div class="session-view' in data and (view := _VIEW.match(data)):
            self._close(line.offset, "cut off")
            self._start, self._in_header = line.offset, True
            self._session_id = unescape(_decode(view[1]))
        elif self._start is not None:
            self._inside(line)

    def _inside(self, line: files.Line) -> None:
        data = line.data
        if opens(data):
            self._in_message, self._in_header = True, False
        if self._in_message:
            if is_whole(data):
                self._held += 1
                self._in_message = False
        elif _closes_main(data):
            self._close(line.offset + line.length, None)
        elif self._in_header:
            self._header(data)

    def _header(self, data: bytes) -> None:
        if self._in_title or data.lstrip().startswith(b"<h1>"):
            self._title += data[:_LONGEST_TITLE]
            self._in_title = b"</h1>" not in data and len(self._title) < _LONGEST_TITLE
        elif started := _STARTED.search(data):
            self._clock = _decode(started[1])
            self._in_header = False

    def _close(self, end: int, damage: str | None) -> None:
        if self._start is None:
            return
        title = _TITLE.match(self._title)
        shown = unescape(_decode(title[1])) if title else UNTITLED
        self._sections.append(
            Section(
                session_id=self._session_id,
                offset=self._start,
                length=end - self._start,
                title=None if shown == UNTITLED else shown,
                held=self._held,
                clock=None if self._clock in (None, "N/A") else self._clock,
                damage=damage,
            )
        )
        self._start, self._title, self._clock, self._held = None, bytearray(), None, 0
        self._in_title = self._in_header = self._in_message = False

    def finished(self, size: int) -> list[Section]:
        """The sections; one that the file leaves open is damaged."""
        self._close(size, "cut off")
        return self._sections


def records(path: Path, section: Section) -> Iterator[Record]:
    """The messages of one section, streamed. A block that the file cuts off is left out."""
    windows = b"\r\n" in files.head(path)[:64]
    found = blocks(files.pieces_between(path, section.offset, section.length))
    for position, block in enumerate(found):
        yield record_of(block.replace(b"\r\n", b"\n") if windows else block, position)


def _closes_main(line: bytes) -> bool:
    return b"</main>" in line and line.strip() == b"</main>"


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
