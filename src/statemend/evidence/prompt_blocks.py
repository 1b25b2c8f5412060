"""The prompts of a Markdown prompts file, bounded by what the store says their text is.

The format escapes nothing, so a prompt may quote the heading of the next one. Each prompt names its row;
when the row's text stands there, that is where the prompt ends, whatever the text looks like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from statemend.formats.artifact import Record
from statemend.formats.clock import epoch_of_iso
from statemend.formats.files import BYTE_ORDER_MARK
from statemend.formats.prompts_writer import SINGLE_TITLE

_HEADINGS = {
    level: re.compile(rb"\n\n%s ([1-9]\d{0,17})\. ([^\n]+)\nMessage ID: `(-?\d{1,19})`\n(?:\n|\Z)" % level)
    for level in (b"##", b"###")
}


def prompt_records(section: bytes, texts: Mapping[int, str]) -> Iterator[Record]:
    """The prompts of one section. ``texts`` maps row ids to the text that the format shows for them."""
    data = section.removeprefix(BYTE_ORDER_MARK)
    if data.partition(b"\n")[0].endswith(b"\r"):
        data = data.replace(b"\r\n", b"\n")
    data = data.removesuffix(b"\n") + b"\n"
    level = b"##" if data.startswith(SINGLE_TITLE.encode()) else b"###"
    heading = _HEADINGS[level]
    found = _numbered(heading, data, 0, 1)
    number = 1
    while found is not None:
        row_id, start = int(found[3]), found.end()
        text, following = _bounded(data, start, texts.get(row_id), heading, number + 1)
        yield Record(
            position=number - 1,
            role="user",
            content=text,
            timestamp=epoch_of_iso(found[2].decode("utf-8", "replace")),
            row_id=row_id,
        )
        number, found = number + 1, following


def _numbered(heading: re.Pattern[bytes], data: bytes, start: int, number: int) -> re.Match[bytes] | None:
    """The next heading with this number; one with another number is text of a prompt."""
    while found := heading.search(data, start):
        if int(found[1]) == number:
            return found
        start = found.start() + 2
    return None


def _bounded(
    data: bytes, start: int, expected: str | None, heading: re.Pattern[bytes], number: int
) -> tuple[str, re.Match[bytes] | None]:
    """The text from ``start``, and the heading numbered ``number`` behind it."""
    known = expected.encode("utf-8", "surrogatepass") if expected is not None else None
    if known is not None and expected is not None and data.startswith(known, start):
        found = heading.match(data, start + len(known))
        if found and int(found[1]) == number:
            return expected, found
    found = _numbered(heading, data, max(start - 2, 0), number)
    if found is not None:
        return data[start : found.start()].decode("utf-8", "surrogateescape"), found
    rest = data[start:].rstrip(b"\n")
    if expected is not None and known is not None and rest == known.rstrip(b"\n"):
        return expected, None
    return rest.decode("utf-8", "surrogateescape"), None
