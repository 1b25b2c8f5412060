"""Finding rendered messages in a Markdown export, in order, without trusting a single mark of the format.

A walk starts where the messages start and consumes one known rendering after the other. What matches no
rendering is a *gap*: a message that was edited, masked, cut off, or that the store does not have. A gap
ends where a known rendering begins again, so one changed message does not hide the rest of the file. The
cost is linear in the file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: Two empty lines end every message of the format; a heading follows.
_NEXT = b"\n\n\n#"


class Hit(NamedTuple):
    """One rendering found: its place in the text, and the row ids that render so."""

    start: int
    end: int
    rows: Sequence[int]


class Gap(NamedTuple):
    """A stretch that matches no rendering."""

    start: int
    end: int


class Walk(NamedTuple):
    """The stretches of a text in order, and where the walk stopped."""

    steps: list[Hit | Gap]
    end: int

    @property
    def hits(self) -> int:
        return sum(isinstance(step, Hit) for step in self.steps)


class _Group:
    """The different renderings under one heading line. One may be the beginning of another."""

    def __init__(self) -> None:
        self.rows: dict[bytes, list[int]] = {}
        self.by_row: dict[int, list[bytes]] = {}
        self.ids: list[int] = []
        self._sorted: list[bytes] = []
        self._shorter: list[int] = []
        self._longest = 0

    def add(self, rendering: bytes, row_id: int) -> None:
        self.rows.setdefault(rendering, []).append(row_id)
        if row_id not in self.by_row:
            self.ids.append(row_id)
        self.by_row.setdefault(row_id, []).append(rendering)
        self._sorted = []

    def matches(self, text: bytes, position: int) -> list[bytes]:
        """The renderings that stand at ``position``, longest first."""
        if len(self.rows) == 1:
            return [each for each in self.rows if text.startswith(each, position)]
        if not self._sorted:
            self._index()
        # Every rendering that begins the text sorts before it, and is itself the beginning of the nearest
        # one.
        nearest = bisect_right(self._sorted, text[position : position + self._longest]) - 1
        found: list[bytes] = []
        while nearest >= 0:
            if text.startswith(self._sorted[nearest], position):
                found.append(self._sorted[nearest])
            nearest = self._shorter[nearest]
        return found

    def _index(self) -> None:
        self._sorted = sorted(self.rows)
        self._longest = len(max(self._sorted, key=len))
        self._shorter = []
        open_prefixes: list[int] = []
        for number, rendering in enumerate(self._sorted):
            while open_prefixes and not rendering.startswith(self._sorted[open_prefixes[-1]]):
                open_prefixes.pop()
            self._shorter.append(open_prefixes[-1] if open_prefixes else -1)
            open_prefixes.append(number)


class Renderings:
    """The renderings of a session's rows, by heading line."""

    def __init__(self, candidates: Iterable[tuple[int, bytes]]) -> None:
        """``candidates`` are pairs of row id and rendering, as ``render_message`` gives it in UTF-8."""
        self._groups: dict[bytes, _Group] = {}
        for row_id, rendering in candidates:
            self._groups.setdefault(_first_line(rendering, 0), _Group()).add(rendering, row_id)

    def at(self, text: bytes, position: int) -> list[bytes]:
        """The renderings that stand at ``position``, longest first."""
        group = self._groups.get(_first_line(text, position))
        return group.matches(text, position) if group is not None else []

    def rows(self, rendering: bytes) -> Sequence[int]:
        """The ids of the rows that render so; the same sequence at every call."""
        return self._groups[_first_line(rendering, 0)].rows[rendering]

    def under(self, heading: bytes) -> Sequence[int]:
        """The rows that have this heading line, in their order; the same sequence at every call."""
        group = self._groups.get(heading)
        return group.ids if group is not None else ()

    def of(self, heading: bytes, row_id: int) -> Sequence[bytes]:
        """The renderings of a row that is ``under`` this heading line."""
        return self._groups[heading].by_row[row_id]


def _first_line(text: bytes, position: int) -> bytes:
    end = text.find(b"\n", position)
    return text[position : end if end >= 0 else len(text)]


def walk(
    text: bytes,
    renderings: Renderings,
    *,
    start: int = 0,
    stop: bytes | None = None,
    expected: int | None = None,
) -> Walk:
    """Consume ``text`` from ``start`` to its end, or to ``stop`` (the heading of the next segment).

    ``text`` is ``Document.messages``.
    Where several renderings stand at one place the longest is taken, unless taking the shortest gives the
    number of messages that is ``expected``.
    """
    longest, ambiguous = _walk(text, renderings, start, stop, shortest=False)
    if ambiguous and expected is not None and len(longest.steps) != expected:
        shortest, _ = _walk(text, renderings, start, stop, shortest=True)
        if len(shortest.steps) == expected and shortest.hits == expected:
            return shortest
    return longest


def _walk(
    text: bytes, renderings: Renderings, position: int, stop: bytes | None, *, shortest: bool
) -> tuple[Walk, bool]:
    steps: list[Hit | Gap] = []
    ambiguous = False
    while position < len(text) and not (stop and text.startswith(stop, position)):
        found = renderings.at(text, position)
        ambiguous = ambiguous or len(found) > 1
        if found:
            rendering = found[-1 if shortest else 0]
            steps.append(Hit(position, position + len(rendering), renderings.rows(rendering)))
            position += len(rendering)
        else:
            end = _resume(text, renderings, position, stop)
            steps.append(Gap(position, end))
            position = end
    return Walk(steps, position), ambiguous


def _resume(text: bytes, renderings: Renderings, position: int, stop: bytes | None) -> int:
    """The next place after ``position`` where a known rendering, or the next segment, begins."""
    while (blank := text.find(_NEXT, position)) >= 0:
        position = blank + 3
        if (stop and text.startswith(stop, position)) or renderings.at(text, position):
            return position
    return len(text)
