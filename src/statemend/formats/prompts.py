"""``--only user-prompts`` exports: the user's messages alone, as JSONL or as Markdown.

The JSONL kind has one object per prompt and is read exactly.

The Markdown kind escapes nothing, so a message may hold anything, even a whole faked section. It is read by
the marks that the exporter always writes together: a session heading counts only with its own
``- Session ID:`` line below it and an empty line above; a prompt heading counts only with the next
number in order, its ``Message ID:`` line and an empty line. A message that forges all of that, with the right
number, is read as two: where the store still has the session, compare against ``render_block`` instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from statemend.formats import clock, files, lenientjson
from statemend.formats.artifact import Artifact, Kind, Record, Section
from statemend.formats.damage import Damage
from statemend.formats.prompts_markdown import read_markdown, recognise_markdown, records_markdown
from statemend.formats.prompts_writer import prompt_text, render_block, render_jsonl, render_markdown

__all__ = [
    "prompt_text",
    "read",
    "recognise",
    "records",
    "render_block",
    "render_jsonl",
    "render_markdown",
]

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.PROMPTS_JSONL, Kind.PROMPTS_MARKDOWN})
_LINE_START = re.compile(rb'\s*\{\s*"session_id"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*"index"\s*:\s*\d+\s*,')


class _Prompt(msgspec.Struct, gc=False):
    """The members that make a line a prompt."""

    session_id: str
    index: int
    role: str


_PROMPTS = msgspec.json.Decoder(_Prompt)


def recognise(head: bytes) -> Kind | None:
    """``Kind.PROMPTS_JSONL`` or ``Kind.PROMPTS_MARKDOWN``, or ``None``."""
    if recognise_markdown(head):
        return Kind.PROMPTS_MARKDOWN
    *complete, last = head.removeprefix(files.BYTE_ORDER_MARK).split(b"\n")
    if any(_looks_like_prompt(line) for line in complete) or _LINE_START.match(last):
        return Kind.PROMPTS_JSONL
    return None


def _looks_like_prompt(line: bytes) -> bool:
    if b'"session_id"' not in line or b'"text"' not in line:
        return False
    try:
        _PROMPTS.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def read(path: Path) -> Artifact:
    """One section per session: its lines in the JSONL kind, its heading and prompts in the Markdown kind."""
    if recognise_markdown(files.head(path)):
        return read_markdown(path)
    return _read_jsonl(path)


def _read_jsonl(path: Path) -> Artifact:
    scan, damage, run = lenientjson.lines(path), Damage(), _Run()
    for line in scan:
        if line.overlong:
            damage.line(line.number, "is too long to be read", "are too long to be read")
        elif line.data.strip():
            prompt = _prompt(line, damage)
            if prompt is not None:
                run.add(prompt, line)
    if scan.changed:
        damage.whole("the file changed while it was read")
    return Artifact(
        path=str(path),
        kind=Kind.PROMPTS_JSONL,
        size=scan.size,
        modified_at=scan.modified_at,
        sha256=scan.sha256,
        sections=tuple(run.finished()),
        damage=damage.phrase(),
    )


def _prompt(line: files.Line, damage: Damage) -> _Prompt | None:
    if not lenientjson.is_utf8(line.data):
        damage.line(line.number, "is not UTF-8", "are not UTF-8")
    try:
        return _PROMPTS.decode(line.data)
    except (msgspec.MsgspecError, RecursionError):
        value = _loaded(line.data)
    if _is_prompt(value):
        return _Prompt(value["session_id"], value["index"], value["role"])
    if value is not None:
        damage.line(line.number, "holds no prompt", "hold no prompts")
    elif line.data.endswith(b"\n"):
        damage.unreadable(line.number)
    else:
        damage.whole("the last line is cut off")
    return None


class _Run:
    """Gathers neighbouring lines of one session into its section.

    A number that does not go up starts a new section: the file holds the session twice.
    """

    def __init__(self) -> None:
        self._done: list[Section] = []
        self._session_id: str | None = None
        self._offset = self._end = self._index = self._held = 0

    def add(self, prompt: _Prompt, line: files.Line) -> None:
        if prompt.session_id != self._session_id or prompt.index <= self._index:
            self._close()
            self._session_id, self._offset, self._held = prompt.session_id, line.offset, 0
        self._index = prompt.index
        self._held += 1
        self._end = line.offset + line.length

    def finished(self) -> list[Section]:
        self._close()
        return self._done

    def _close(self) -> None:
        if self._session_id is not None:
            length = self._end - self._offset
            self._done.append(Section(self._session_id, self._offset, length, held=self._held))
        self._session_id = None


def records(path: Path, section: Section) -> Iterator[Record]:
    """The prompts of one section in the order of the file; their role is always ``user``."""
    if recognise_markdown(files.head(path)):
        yield from records_markdown(path, section)
        return
    position = 0
    for data in files.lines_between(path, section.offset, section.length):
        value = _loaded(data)
        if _is_prompt(value):
            yield _record_of(value, position)
            position += 1


def _record_of(value: dict[str, Any], position: int) -> Record:
    row_id = value.get("message_id")
    return Record(
        position=position,
        role=value["role"],
        content=value.get("text"),
        timestamp=clock.epoch_of_iso(value.get("created_at")),
        row_id=row_id if type(row_id) is int else None,
        row=value,
    )


def _loaded(data: bytes) -> Any:
    """The JSON value of a line, ``None`` when it is none."""
    try:
        return lenientjson.loads(data)
    except lenientjson.UnreadableJsonError:
        return None


def _is_prompt(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("session_id"), str)
        and type(value.get("index")) is int
        and isinstance(value.get("role"), str)
    )
