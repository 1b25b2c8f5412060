"""Reading the Markdown kind of ``--only user-prompts``; ``prompts.py`` says how doubt is settled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from statemend.formats import clock, files
from statemend.formats.artifact import Artifact, Kind, Record, Section
from statemend.formats.damage import Damage
from statemend.formats.prompts_writer import MULTI_TITLE, NO_PROMPTS, SECTION_TITLE, SINGLE_TITLE

_SINGLE = SINGLE_TITLE.encode()
_MULTI = MULTI_TITLE.encode()
_SECTION = SECTION_TITLE.encode()
_EMPTY = NO_PROMPTS.encode()
_SESSION_ID = re.compile(rb"- Session ID: `(.*)`\Z", re.DOTALL)
_HEADING = re.compile(rb"(##|###) ([1-9]\d{0,17})\. (\S.*)\Z", re.DOTALL)
_MESSAGE_ID = re.compile(rb"Message ID: `(-?\d{1,19})`\Z")


def recognise_markdown(head: bytes) -> bool:
    """Whether ``head`` starts a prompts file: its title, and the id of its first session below it."""
    lines = [_bare(line) for line in head.removeprefix(files.BYTE_ORDER_MARK).split(b"\n", 8)[:8]]
    if lines[0].startswith(_SINGLE):
        return len(lines) > 1 and _SESSION_ID.match(lines[1]) is not None
    if lines[0] != _MULTI or len(lines) < 3 or lines[1]:
        return False
    return lines[2] == _EMPTY or lines[2].startswith(_SECTION)


def read_markdown(path: Path) -> Artifact:
    """One section per session heading, its title line included."""
    scan, damage, outline = files.Scan(path), Damage(), _Outline()
    for line in scan:
        if line.overlong:
            damage.line(line.number, "is too long to be read", "are too long to be read")
        outline.add(line)
    sections = outline.finished(scan.size)
    if scan.changed:
        damage.whole("the file changed while it was read")
    if not outline.ended_with_newline:
        damage.whole("the last line is cut off")
    return Artifact(
        path=str(path),
        kind=Kind.PROMPTS_MARKDOWN,
        size=scan.size,
        modified_at=scan.modified_at,
        sha256=scan.sha256,
        sections=tuple(sections),
        damage=damage.phrase(),
    )


class _Outline:
    """Finds the sections of a prompts file in one pass, remembering no more than the last two lines."""

    def __init__(self) -> None:
        self.ended_with_newline = True
        self._sections: list[Section] = []
        self._single = False
        self._header: dict[str, str] = {}
        self._in_metadata = False
        self._start: int | None = None
        self._candidate: tuple[bytes, int] | None = None
        self._after_blank = True
        self._heading: int | None = None
        self._prompts = 0

    def add(self, line: files.Line) -> None:
        text = _bare(line.data.removeprefix(files.BYTE_ORDER_MARK) if line.number == 1 else line.data)
        self.ended_with_newline = line.overlong or line.data.endswith(b"\n")
        if line.number == 1 and text.startswith(_SINGLE):
            self._single = True
            self._candidate = text[len(_SINGLE) :], line.offset
            return
        if self._opens_section(text):
            return
        if self._start is not None:
            self._inside(text)
        if not self._single and self._after_blank and text.startswith(_SECTION):
            self._candidate = text[len(_SECTION) :], line.offset
        self._after_blank = not text

    def _opens_section(self, text: bytes) -> bool:
        """Whether this line is the id line that makes the heading above it a section."""
        candidate, self._candidate = self._candidate, None
        found = _SESSION_ID.match(text) if candidate is not None else None
        if candidate is None or found is None or _one_line(found[1]) != _decode(candidate[0]):
            return False
        self._close(candidate[1])
        self._start, self._header, self._prompts = candidate[1], {"Session ID": _decode(found[1])}, 0
        self._in_metadata, self._after_blank = True, False
        return True

    def _inside(self, text: bytes) -> None:
        if self._in_metadata:
            self._metadata(text)
            return
        heading, self._heading = self._heading, None
        if heading is not None and _MESSAGE_ID.match(text):
            self._prompts = heading
        found = _HEADING.match(text) if self._after_blank else None
        if found and len(found[1]) == self._level and int(found[2]) == self._prompts + 1:
            self._heading = int(found[2])

    @property
    def _level(self) -> int:
        return 2 if self._single else 3

    def _metadata(self, text: bytes) -> None:
        label, colon, value = _decode(text).partition(": ")
        if text.startswith(b"- ") and colon:
            self._header[label[2:]] = value
        else:
            self._in_metadata = False

    def _close(self, end: int) -> None:
        if self._start is None:
            return
        messages = self._header.get("Messages", "")
        self._sections.append(
            Section(
                session_id=self._header["Session ID"],
                offset=self._start,
                length=end - self._start,
                title=self._header.get("Title"),
                started_at=clock.epoch_of_iso(self._header.get("Started")),
                source_count=int(messages) if re.fullmatch(r"\d{1,18}", messages) else None,
                held=self._prompts,
            )
        )

    def finished(self, size: int) -> list[Section]:
        self._close(size)
        return self._sections


def records_markdown(path: Path, section: Section) -> Iterator[Record]:
    """The prompts of one section. The empty lines between prompts are not part of their text."""
    data = files.chunk(path, section.offset, section.length).removeprefix(files.BYTE_ORDER_MARK)
    if data.partition(b"\n")[0].endswith(b"\r"):
        data = data.replace(b"\r\n", b"\n")
    level = b"##" if data.startswith(_SINGLE) else b"###"
    prompt = re.compile(
        rb"\n\n" + level + rb" ([1-9]\d{0,17})\. (\S[^\n]*)\nMessage ID: `(-?\d{1,19})`\n(?:\n|\Z)"
    )
    found: list[re.Match[bytes]] = []
    for match in _overlapping(prompt, data):
        if int(match[1]) == len(found) + 1:
            found.append(match)
    # Every prompt ends in an empty line, except at the end of the file, where empty lines are trimmed.
    closing = b"\n" if section.offset + section.length >= files.size(path) else b"\n\n"
    for position, match in enumerate(found):
        last = position + 1 == len(found)
        text = data[match.end() : len(data) if last else found[position + 1].start()]
        yield Record(
            position=position,
            role="user",
            content=_decode(text.removesuffix(closing) if last else text),
            timestamp=clock.epoch_of_iso(_decode(match[2])),
            row_id=int(match[3]),
        )


def _overlapping(pattern: re.Pattern[bytes], data: bytes) -> Iterator[re.Match[bytes]]:
    """Matches that may share the empty line between them, as prompts without text do."""
    position = 0
    while match := pattern.search(data, position):
        yield match
        position = match.start() + 2


def _bare(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _one_line(value: bytes) -> str:
    return " ".join(_decode(value).splitlines()).strip()


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
