"""The prompts of a Markdown prompts file, bounded by what the store says their text is.

The format escapes nothing, so a prompt may quote the heading of the next one. Each prompt names its row;
when the row's text stands there, that is where the prompt ends, whatever the text looks like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from statemend.formats.artifact import Record
from statemend.formats.clock import epoch_of_iso
from statemend.formats.prompts_writer import SINGLE_TITLE


def prompt_records(section: bytes, texts: Mapping[int, str]) -> Iterator[Record]:
    """The prompts of one section. ``texts`` maps row ids to the text that the format shows for them."""
    data = section
    if data.partition(b"\n")[0].endswith(b"\r"):
        data = data.replace(b"\r\n", b"\n")
    level = b"##" if data.startswith(SINGLE_TITLE.encode()) else b"###"
    number = 1
    heading = _heading(level, number).search(data)
    while heading is not None:
        row_id, start = int(heading[2]), heading.end()
        following = _heading(level, number + 1)
        text, found = _bounded(data, start, texts.get(row_id), following)
        yield Record(
            position=number - 1,
            role="user",
            content=text,
            timestamp=epoch_of_iso(heading[1].decode("utf-8", "replace")),
            row_id=row_id,
        )
        number, heading = number + 1, found


def _heading(level: bytes, number: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n\n%s %d\. ([^\n]+)\nMessage ID: `(-?\d{1,19})`\n(?:\n|\Z)" % (level, number))


def _bounded(
    data: bytes, start: int, expected: str | None, following: re.Pattern[bytes]
) -> tuple[str, re.Match[bytes] | None]:
    """The text from ``start``, and the heading behind it."""
    if expected is not None:
        known = expected.encode("utf-8", "surrogatepass")
        if data.startswith(known, start) and (found := following.match(data, start + len(known))):
            return expected, found
        if data[start:].rstrip(b"\n") == known.rstrip(b"\n"):
            return expected, None
    found = following.search(data, max(start - 2, 0))
    text = data[start : found.start() if found else len(data)]
    shown = text if found else text.rstrip(b"\n")
    return shown.decode("utf-8", "surrogateescape"), found
