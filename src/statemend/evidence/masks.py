"""Telling a redacted text from an edited one.

``--redact`` puts marks where secrets were: ``***``, ``sk-ant...z-AA``, ``[REDACTED …]``,
``«redacted:…»``. Nothing in a file says that it was redacted, so a text counts as masked when everything
around its marks stands in the original, in order, and the marks fill the rest.
"""

from __future__ import annotations

import re

_MARK = re.compile(
    r"(?P<word>\*{3,}|(?<=\S)\.\.\.(?=\S))|(?P<block>\[REDACTED[^\]\n]*\]|«redacted[^»\n]*»|\[redaction-unavailable\])"
)
#: What every mark contains. Looking for these first is many times faster than the pattern on a long text.
_TOKENS = ("***", "...", "[REDACTED", "«redacted", "[redaction-")
#: So many characters beside a mask tell of which message it is. Fewer could be of any.
TELLING = 12
#: A mark for one secret never stands for more than this many characters.
_LONGEST_SECRET = 8192


def hides(shown: str, original: str) -> bool:
    """Whether ``shown`` is ``original`` with some of it masked. Linear in both."""
    if not any(token in shown for token in _TOKENS):
        return False
    place = literal = 0
    spans = ""
    for mark in _MARK.finditer(shown):
        place = _after(original, shown[literal : mark.start()], place, spans)
        if place < 0:
            return False
        literal, spans = mark.end(), mark.lastgroup or ""
    if not spans:
        return False
    rest = shown[literal:]
    start = len(original) - len(rest)
    return start >= place and original.endswith(rest) and _may_hide(original, place, start, spans)


def around(shown: str) -> tuple[str, str] | None:
    """What stands before the first mark and behind the last one, ``None`` where there is no mark."""
    if not any(token in shown for token in _TOKENS):
        return None
    marks = list(_MARK.finditer(shown))
    return (shown[: marks[0].start()], shown[marks[-1].end() :]) if marks else None


def tells(shown: str) -> bool:
    """Whether enough stands beside the marks of a text to tell of which message it is."""
    sides = around(shown)
    return sides is not None and max(map(len, sides)) >= TELLING


def _after(original: str, piece: str, place: int, spans: str) -> int:
    """The place behind ``piece``, which must follow at once, or behind what a mark of kind ``spans`` may
    hide."""
    if not spans:
        return place + len(piece) if original.startswith(piece, place) else -1
    found = original.find(piece, place)
    return found + len(piece) if found >= 0 and _may_hide(original, place, found, spans) else -1


def _may_hide(original: str, start: int, end: int, spans: str) -> bool:
    if spans == "block":
        return True
    return end - start <= _LONGEST_SECRET and "\n" not in original[start:end]
