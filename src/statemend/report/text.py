"""How values are shown: hostile text made visible, long text clipped, ids as ranges, times in UTC.

Titles, ids and paths come from users and from other machines. Everything that a terminal or a browser would
obey instead of show (control characters, bidirectional overrides, invisible joiners, lone surrogates) is
replaced by its code point in brackets.
"""

from __future__ import annotations

import math
import os
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Look like nothing, though Unicode files them under letters or marks.
_BLANKS = frozenset("\u115f\u1160\u3164\uffa0\u034f\u2800")
_JOINERS = "\u200c\u200d"
_MARKS_KEPT = 3


def visible(text: str, *, lines: bool = False) -> str:
    """``text`` with every character that would act instead of show replaced by ``[U+XXXX]``.

    Line breaks and tabs become ``␊`` and ``␉``, so the result is one line, unless ``lines`` keeps them.
    Joiners stay between characters beyond ASCII, where scripts and emoji need them. A run of more than three
    combining marks is cut short.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    for index, character in enumerate(text):
        category = unicodedata.category(character)
        if category == "Mn" or category == "Me":
            marks += 1
            if marks <= _MARKS_KEPT:
                shown.append(character)
            continue
        if marks > _MARKS_KEPT:
            shown.append(f"[+{marks - _MARKS_KEPT} marks]")
        marks = 0
        if character in "\n\t":
            shown.append(character if lines else "␊" if character == "\n" else "␉")
        elif character in _JOINERS and _joins(text, index):
            shown.append(character)
        elif category in _HIDDEN or character in _BLANKS:
            shown.append(f"[U+{ord(character):04X}]")
        else:
            shown.append(character)
    if marks > _MARKS_KEPT:
        shown.append(f"[+{marks - _MARKS_KEPT} marks]")
    return "".join(shown)


def _joins(text: str, index: int) -> bool:
    return 0 < index < len(text) - 1 and not text[index - 1].isascii() and not text[index + 1].isascii()


def clip(text: str, limit: int = 120) -> str:
    """``visible(text)``, cut after ``limit`` characters of the original with the full length said."""
    if len(text) <= limit:
        return visible(text)
    return f"{visible(text[:limit])}… ({len(text):,} characters)"


def passage(text: str, limit: int = 4000) -> str:
    """The text of a message as it stands, line by line, cut after ``limit`` characters with a word that it
    goes on."""
    shown = visible(text[:limit], lines=True)
    return shown if len(text) <= limit else f"{shown}… (cut here; the store has the rest)"


def encodable(text: str) -> str:
    """``text`` with lone surrogates spelled out (``\\udc80``), so that it can be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def words(value: object) -> str | None:
    """A cell that should hold text, as text: bytes and numbers are shown for what they are."""
    if value is None or isinstance(value, str):
        return value
    return f"{len(value):,} bytes" if isinstance(value, bytes) else str(value)


def ranges(ids: Sequence[int], limit: int = 12) -> str:
    """Row ids as short ranges: ``3–7, 9, 12–40``; at most ``limit`` of them, then how many ids are left."""
    spans: list[list[int]] = []
    for number in sorted(set(ids)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    shown = [f"{low}" if low == high else f"{low}–{high}" for low, high in spans[:limit]]
    left = sum(high - low + 1 for low, high in spans[limit:])
    return ", ".join(shown) + (f" and {left:,} more" if left else "")


def count(number: int, one: str, many: str | None = None) -> str:
    """``1 row``, ``2,400 rows``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def number(value: int | None) -> str:
    """``2,400``, or a dash for what could not be counted."""
    return "–" if value is None else f"{value:,}"


def size(number: int) -> str:
    """Bytes for people: ``512 B``, ``3.4 MB`` (powers of 1000)."""
    if number < 1000:
        return f"{number} B"
    value = float(number)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:,.1f} TB"


def listed(items: Iterable[str], limit: int = 3) -> str:
    """``a, b, c and 4 more``."""
    everything = list(items)
    shown = everything[:limit]
    left = len(everything) - len(shown)
    if left:
        return f"{', '.join(shown)} and {left:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def iso(at: object) -> str | None:
    """Epoch seconds as ISO 8601 in UTC, or ``None`` when ``at`` is no time a calendar knows."""
    if isinstance(at, bool) or not isinstance(at, int | float) or not math.isfinite(at):
        return None
    try:
        moment = _EPOCH + timedelta(seconds=at)
    except OverflowError:
        return None
    return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def seconds(moment: str) -> float | None:
    """The inverse of ``iso``; a time without a zone is read as if it were UTC. ``None`` when it is no
    time."""
    try:
        parsed = datetime.fromisoformat(moment.replace(",", ".").replace("Z", "+00:00"))
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def generated_at(at: float) -> str:
    """The time of a report made ``at`` (epoch seconds), or the one that ``SOURCE_DATE_EPOCH`` names, so that
    a report can be made again byte for byte."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return iso(int(fixed) if fixed.isdigit() else at) or "1970-01-01T00:00:00Z"
