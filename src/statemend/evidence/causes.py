"""Why an artifact does not show a message, and which view of the history it was made from."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from statemend.evidence.rows import Logical, SessionRows, Tally
from statemend.formats.artifact import AUTOMATIC, FILTERED, IN_MEMORY, Kind, Section
from statemend.formats.clock import finite
from statemend.store.history import Message, RowState


class Cause(StrEnum):
    """Why a message is missing from an artifact."""

    ARCHIVED = "archived-not-exported"  # compaction had archived it, and the export read live rows only
    LATER = "appended-later"  # it came after the artifact was made
    FILTERED = "filtered"  # the artifact leaves its kind of message out by intent
    OTHER_SEGMENT = "other-segment"  # the artifact holds other segments of the lineage
    CONTEXT = "not-in-context"  # a running agent wrote what it held, and nobody asked it for the whole
    UNKNOWN = "unknown"  # the artifact is cut, altered, or nothing tells


class Scope(StrEnum):
    """The view of a session's history that an artifact was made from."""

    ACTIVE = "active"
    DISPLAY = "display"
    ALL = "all"
    PROMPTS = "prompts"
    CONTEXT = "context"  # what a running agent held in memory
    UNKNOWN = "unknown"


class Missing(msgspec.Struct, frozen=True):
    """A logical message that an artifact does not show, by the row that a display shows."""

    message_id: int
    cause: Cause


class Compactions:
    """The compactions of one session, and which of them an artifact was made after.

    A compaction is known by its summary row. ``newest`` is the highest row that the artifact was surely made
    after: unless it says ids itself, a row that was written again with its time may be the first one.
    """

    def __init__(self, rows: SessionRows, tally: Tally, exported_at: float | None) -> None:
        self._rows = rows
        self._held = tally.held
        first = (rows.twins.get(row_id, row_id) for row_id in tally.held)
        self.newest = tally.named or max(first, default=0)
        self.exported_at = exported_at
        self._summaries = [row.id for row in rows.rows if row.summary]
        self._dated = [*_dated(rows.rows)]
        self._live = [row.id for row in rows.rows if row.state is RowState.LIVE]

    def was_archived(self, logical: Logical) -> bool:
        """Whether the message had been archived when the artifact was made: the artifact holds the summary
        that replaced it or a later row, or says a later time."""
        boundary = self._next(self._summaries, logical) or self._next(self._live, logical)
        if not logical.archived or boundary is None:
            return False
        if self.newest >= boundary:
            return True
        dated = bisect_left(self._dated, (boundary,))
        return (
            self.exported_at is not None
            and dated < len(self._dated)
            and self.exported_at >= self._dated[dated][1]
        )

    def archived_held(self) -> int:
        """How many messages the artifact shows that had been archived when it was made. One whose words a
        live copy repeats does not count, unless the artifact shows the copy too."""
        return sum(
            any(row_id in self._held for row_id in logical.rows)
            and self.was_archived(logical)
            and not self._may_be_its_copy(logical)
            for logical in self._rows.logical
            if logical.archived
        )

    def _may_be_its_copy(self, logical: Logical) -> bool:
        return any(
            self._rows.by_id[copy].state is RowState.LIVE and copy not in self._held
            for row_id in logical.rows
            for copy in self._rows.copies.get(row_id, ())
        )

    @staticmethod
    def _next(row_ids: Sequence[int], logical: Logical) -> int | None:
        place = bisect_right(row_ids, logical.rows[-1])
        return row_ids[place] if place < len(row_ids) else None


def _dated(rows: Sequence[Message]) -> Iterator[tuple[int, float]]:
    """The rows, by id, whose time is surely that of their insert: what a compaction writes again with its
    time is no newer than what was there before."""
    latest = float("-inf")
    for row in rows:
        time = finite(row.timestamp)
        if time is not None and time > latest:
            latest = time
            yield row.id, time


def missing_messages(
    rows: SessionRows, tally: Tally, places: Sequence[int], compactions: Compactions, kind: Kind, *, cut: bool
) -> tuple[Missing, ...]:
    """Each logical message at ``places`` with the reason why it is not in the artifact."""
    reads_archive = bool(places) and compactions.archived_held() > 0

    def cause(logical: Logical) -> Cause:
        if tally.absent:
            return Cause.OTHER_SEGMENT
        if kind in AUTOMATIC:
            return Cause.CONTEXT
        if tally.foreign:
            return Cause.UNKNOWN
        first = rows.by_id[logical.rows[0]]
        time, exported_at = finite(first.timestamp), compactions.exported_at
        if exported_at is not None and time is not None and time > exported_at:
            return Cause.LATER
        if not reads_archive and compactions.was_archived(logical):
            return Cause.ARCHIVED
        # The end of a file that was cut off is missing, however new it is.
        return Cause.LATER if first.id > compactions.newest and not cut else Cause.UNKNOWN

    return tuple(Missing(rows.logical[place].shown, cause(rows.logical[place])) for place in places)


def scope_of(
    rows: SessionRows,
    tally: Tally,
    missing: Sequence[Missing],
    compactions: Compactions,
    kind: Kind,
    section: Section,
) -> tuple[Scope, str]:
    """The view that the artifact was made from, and how that is known."""
    if tally.absent:
        return Scope.UNKNOWN, "it names this session, and has no segment of it"
    held = compactions.archived_held()
    lost = sum(each.cause is Cause.ARCHIVED for each in missing)
    if kind is Kind.STORE:
        return Scope.ALL, "it is another store, and has whatever rows it had"
    if tally.foreign:
        return Scope.PROMPTS if kind in FILTERED else Scope.UNKNOWN, _FOREIGN
    if kind in FILTERED:
        return Scope.PROMPTS, _prompts_reason(held, lost)
    if kind in IN_MEMORY - {Kind.TRACE}:
        return Scope.CONTEXT, "it was written from what a running agent held in memory"
    if tally.inactive:
        return Scope.ALL, "it shows rows that are no longer live"
    declared, live = section.declared, section.source_count
    if declared is not None and live is not None and declared > live and not section.lineage:
        return Scope.DISPLAY, f"it says it holds {declared} messages where {live} were live"
    if held:
        return Scope.DISPLAY, f"it shows {held} messages that were archived when it was made"
    if lost:
        return Scope.ACTIVE, f"it was made after {lost} messages were archived, and shows none of them"
    if any(logical.archived for logical in rows.logical):
        return Scope.UNKNOWN, "no message was archived yet when it was made, so all views were the same"
    return Scope.UNKNOWN, "no message of the session is archived, so all views are the same"


_FOREIGN = "none of its messages is in the store: it is of another store, or all were lost"


def _prompts_reason(held: int, lost: int) -> str:
    if lost:
        return f"user messages only, without {lost} that were archived when it was made"
    return f"user messages only, {held} of them archived when it was made" if held else "user messages only"
