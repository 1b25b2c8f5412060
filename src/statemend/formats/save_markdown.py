"""What ``/save md`` writes of a session (0.20 and newer): texts and times, without tool calls and reasoning.

Nothing is escaped. A section starts at a title with its own ``- Session ID:`` line below it. ``records``
reads messages as they look to somebody without the store; where it has the session, compare against
``render_message`` instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

from statemend.formats import clock, files
from statemend.formats.artifact import Artifact, Kind, Record, Section
from statemend.formats.damage import Damage
from statemend.formats.save_markdown_render import (
    HIDDEN_ROLE,
    MULTI_TITLE,
    NAMELESS,
    SECTION_TITLE,
    SINGLE_TITLE,
    render_message,
    shown_name,
)
from statemend.store.content import is_summary_text

__all__ = [
    "HIDDEN_ROLE",
    "likely_starts",
    "read",
    "recognise",
    "records",
    "render_message",
    "shown_name",
    "text_of",
]

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.SAVE_MARKDOWN})
_SESSION_ID = re.compile(rb"- Session ID: `(.*)`\Z", re.DOTALL)
_TIME = rb"(?: - (?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ))?"
_HEADING = re.compile(rb"##+ (?:Tool: (?P<tool>[^\n]+?)|(?P<role>[A-Z][A-Za-z_]*))" + _TIME + rb"\Z")
_BLOCK = re.compile(
    rb"<details><summary>[^<]*</summary>\n\n(`{3,})text\n(.*)\n\1\n\n</details>\n*\Z", re.DOTALL
)


def recognise(head: bytes) -> Kind | None:
    """``Kind.SAVE_MARKDOWN`` when ``head`` begins with the title of a session and its id, or of many."""
    lines = [_bare(line) for line in head.removeprefix(files.BYTE_ORDER_MARK).split(b"\n", 4)[:4]]
    if lines[0] == MULTI_TITLE.encode():
        return Kind.SAVE_MARKDOWN if len(lines) > 2 and lines[2].startswith(SECTION_TITLE.encode()) else None
    titled = lines[0].startswith(SINGLE_TITLE.encode()) and len(lines) > 1
    return Kind.SAVE_MARKDOWN if titled and _SESSION_ID.match(lines[1]) else None


def read(path: Path) -> Artifact:
    """One section per session, its title included."""
    scan, damage, outline = files.Scan(path), Damage(), _Outline()
    ended = True
    for line in scan:
        if line.overlong:
            damage.line(line.number, "is too long to be read", "are too long to be read")
        outline.add(line)
        ended = line.overlong or line.data.endswith(b"\n")
    if not ended:
        damage.whole("the last line is cut off")
    if scan.changed:
        damage.whole("the file changed while it was read")
    return Artifact(
        path=str(path),
        kind=Kind.SAVE_MARKDOWN,
        size=scan.size,
        modified_at=scan.modified_at,
        sha256=scan.sha256,
        sections=tuple(outline.finished(scan.size, cut=not ended)),
        damage=damage.phrase(),
    )


class _Outline:
    """Finds the sections of a file in one pass, remembering no more than the last title."""

    def __init__(self) -> None:
        self._sections: list[Section] = []
        self._title = SINGLE_TITLE.encode()
        self._candidate: int | None = None
        self._start: int | None = None
        self._header: dict[str, str] = {}
        self._in_header = False
        self._after_blank = False
        self._held = 0

    def add(self, line: files.Line) -> None:
        text = _bare(line.data.removeprefix(files.BYTE_ORDER_MARK) if line.number == 1 else line.data)
        if line.number == 1 and text == MULTI_TITLE.encode():
            self._title = SECTION_TITLE.encode()
        after_blank, self._after_blank = self._after_blank, not text
        candidate, self._candidate = self._candidate, None
        found = _SESSION_ID.match(text) if candidate is not None else None
        if candidate is not None and found is not None:
            self._close(candidate, None)
            self._start, self._in_header, self._held = candidate, True, 0
            self._header = {"Session ID": _decode(found[1])}
        elif self._in_header:
            label, colon, value = _decode(text).partition(": ")
            self._in_header = text.startswith(b"- ") and bool(colon)
            if self._in_header:
                self._header[label[2:]] = value
        elif text.startswith(self._title) and (line.number == 1 or self._level == 3):
            self._candidate = line.offset
        elif after_blank and text.startswith(b"#" * self._level + b" ") and _HEADING.match(text):
            self._held += 1

    @property
    def _level(self) -> int:
        return 2 if self._title == SINGLE_TITLE.encode() else 3

    def _close(self, end: int, damage: str | None) -> None:
        if self._start is None:
            return
        counted = self._header.get("Messages", "")
        self._sections.append(
            Section(
                session_id=self._header["Session ID"],
                offset=self._start,
                length=end - self._start,
                title=self._header.get("Title"),
                started_at=clock.epoch_of_iso(self._header.get("Started")),
                source_count=int(counted) if re.fullmatch(r"\d{1,18}", counted) else None,
                held=self._held,
                damage=damage,
            )
        )

    def finished(self, size: int, *, cut: bool) -> list[Section]:
        self._close(size, "cut off" if cut else None)
        return self._sections


def text_of(path: Path, section: Section) -> tuple[bytes, int]:
    """The messages of one section as they are written, with an empty line at the end, and the level of their
    headings."""
    data = files.chunk(path, section.offset, section.length).removeprefix(files.BYTE_ORDER_MARK)
    if data.partition(b"\n")[0].endswith(b"\r"):
        data = data.replace(b"\r\n", b"\n")
    level = 2 if data.startswith(SINGLE_TITLE.encode()) else 3
    return data.partition(b"\n\n")[2] + b"\n", level


def likely_starts(text: bytes, level: int) -> Iterator[int]:
    """Where a message could begin: at a heading of this level behind an empty line."""
    mark = b"#" * level + b" "
    place = 0 if text.startswith(mark) else text.find(b"\n\n" + mark)
    while place >= 0:
        start = place if text.startswith(mark, place) else place + 2
        if _HEADING.match(text, start, _line_end(text, start)):
            yield start
        place = text.find(b"\n\n" + mark, start)


def records(path: Path, section: Section) -> Iterator[Record]:
    """The messages as they look to a reader without the store: one that imitates the format is read as
    several."""
    text, level = text_of(path, section)
    starts = likely_starts(text, level)
    for position, (start, end) in enumerate(pairwise(chain(starts, [len(text)]))):
        line_end = _line_end(text, start)
        heading = _HEADING.match(text, start, line_end)
        body = text[line_end + 2 : end]
        block = _BLOCK.match(body) if heading and heading["tool"] else None
        content = _decode(block[2] if block else body.removesuffix(b"\n").removesuffix(b"\n"))
        yield Record(
            position=position,
            role=_decode(heading["role"]).lower() if heading and heading["role"] else "tool",
            content=content,
            timestamp=clock.epoch_of_iso(_decode(heading["time"] or b"")) if heading else None,
            tool_name=_tool(heading["tool"] if heading else None),
            summary=is_summary_text(content),
        )


def _tool(name: bytes | None) -> str | None:
    """The name in the heading of a result, unless it is the one that stands for none."""
    return _decode(name) if name and name != NAMELESS.encode() else None


def _line_end(text: bytes, start: int) -> int:
    end = text.find(b"\n", start)
    return end if end >= 0 else len(text)


def _bare(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
