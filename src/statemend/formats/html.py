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

from statemend.formats import files
from statemend.formats.artifact import Artifact, Kind, Record, Section
from statemend.formats.damage import Damage
from statemend.formats.html_blocks import is_whole, record_of
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

_DOCTYPE = re.compile(rb"\s*<!doctype html>", re.IGNORECASE)
_LAYOUT = re.compile(rb'<div class="layout layout-(?:single|multi)"')
_NO_SESSIONS = b"<html><body><h1>No sessions to export.</h1></body></html>"
_VIEW = re.compile(rb'\s*<div class="session-view(?: active)?" id="view-(.*)">\s*\Z', re.DOTALL)
_MESSAGE = re.compile(rb'\s*<div class="message message-')
_TITLE = re.compile(rb"<h1>(.*)</h1>", re.DOTALL)
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
        self.ended = False
        self._sections: list[Section] = []
        self._start: int | None = None
        self._session_id = ""
        self._title = b""
        self._in_title = False
        self._clock: str | None = None
        self._messages = 0
        self._whole = True

    def add(self, line: files.Line) -> None:
        text = line.data.strip()
        if text or line.overlong:
            self.ended = text.endswith(b"</html>")
        view = _VIEW.match(line.data)
        if view is not None:
            self._close(line.offset, "cut off")
            self._start = line.offset
            self._session_id = unescape(_decode(view[1]))
        elif self._start is not None:
            self._inside(line, text)

    def _inside(self, line: files.Line, text: bytes) -> None:
        if _MESSAGE.match(line.data):
            self._messages += 1
            self._whole = is_whole(text)
        elif text == b"</main>":
            self._close(line.offset + line.length, None)
        elif self._messages:
            self._whole = self._whole or is_whole(text)
        elif self._in_title or text.startswith(b"<h1>"):
            self._title += line.data[:_LONGEST_TITLE]
            self._in_title = b"</h1>" not in self._title and len(self._title) < _LONGEST_TITLE
        elif started := _STARTED.search(text):
            self._clock = _decode(started[1])

    def _close(self, end: int, damage: str | None) -> None:
        if self._start is None:
            return
        title = _TITLE.search(self._title)
        shown = unescape(_decode(title[1])) if title else UNTITLED
        self._sections.append(
            Section(
                session_id=self._session_id,
                offset=self._start,
                length=end - self._start,
                title=None if shown == UNTITLED else shown,
                held=self._messages if self._whole else self._messages - 1,
                clock=None if self._clock in (None, "N/A") else self._clock,
                damage=damage,
            )
        )
        self._start, self._title, self._in_title, self._clock = None, b"", False, None
        self._messages, self._whole = 0, True

    def finished(self, size: int) -> list[Section]:
        """The sections; one that the file leaves open is damaged."""
        self._close(size, "cut off")
        return self._sections


def records(path: Path, section: Section) -> Iterator[Record]:
    """The messages of one section, streamed. A block that the file cuts off is left out."""
    windows = b"\r\n" in files.head(path)[:64]
    position = 0
    for block in _blocks(path, section):
        if windows:
            block = block.replace(b"\r\n", b"\n")
        if is_whole(block):
            yield record_of(block, position)
            position += 1


def _blocks(path: Path, section: Section) -> Iterator[bytes]:
    """The bytes of each message block, from its opening tag to the line break before the next."""
    gathered: list[bytes] = []
    for line in files.lines_between(path, section.offset, section.length):
        opens = _MESSAGE.match(line) is not None
        if opens or line.strip() == b"</main>":
            if gathered:
                yield b"".join(gathered)
            gathered = [line] if opens else []
        elif gathered:
            gathered.append(line)
    if gathered:
        yield b"".join(gathered)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
