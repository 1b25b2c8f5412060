"""Why an artifact does not show a message, and which view of the history it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from statemend.evidence.rows import Logical, SessionRows, Tally
from statemend.formats.artifact import FILTERED, Kind, Section
from statemend.formats.clock import finite


class Cause(StrEnum):
    """Why a message is missing from an artifact."""

    ARCHIVED = "archived-not-exported"  # compaction had archived it, and the export read live rows only
    LATER = "appended-later"  # it came after the artifact was made
    FILTERED = "filtered"  # the artifact leaves its kind of message out by intent
    OTHER_SEGMENT = "other-segment"  # the artifact holds other segments of the lineage
    UNKNOWN = "unknown"  # the artifact is cut, altered, or nothing tells


class Scope(StrEnum):
    """The view of a session's history that an artifact was made from."""

    ACTIVE = "active"
    DISPLAY = "display"
    ALL = "all"
    PROMPTS = "prompts"
    UNKNOWN = "unknown"


class Missing(msgspec.Struct, frozen=True):
    """A logical message that an artifact does not show, by the row that a display shows."""

    message_id: int
    cause: Cause


def missing_messages(
    rows: SessionRows, tally: Tally, places: Sequence[int], section: Section, *, cut: bool
) -> tuple[Missing, ...]:
    """Each logical message at ``places`` with the reason why it is not in the artifact."""
    if tally.absent:
        return tuple(Missing(rows.logical[place].shown, Cause.OTHER_SEGMENT) for place in places)
    judge = _Judge(rows, tally, section.exported_at, cut=cut)
    return tuple(Missing(rows.logical[place].shown, judge.cause(rows.logical[place])) for place in places)


class _Judge:
    def __init__(self, rows: SessionRows, tally: Tally, exported_at: float | None, *, cut: bool) -> None:
        self._rows = rows
        self._newest = max(tally.held, default=0)
        self._exported_at = exported_at
        self._cut = cut
        self._reads_archive = bool(archived_held(rows, tally, exported_at))

    def cause(self, logical: Logical) -> Cause:
        first = self._rows.by_id[logical.rows[0]]
        time = finite(first.timestamp)
        if self._exported_at is not None and time is not None and time > self._exported_at:
            return Cause.LATER
        if logical.archived and not self._reads_archive:
            boundary = compaction_after(self._rows, logical)
            if is_later(self._rows, boundary, self._newest, self._exported_at):
                return Cause.ARCHIVED
        # The end of a file that was cut off is missing, however new it is.
        return Cause.LATER if first.id > self._newest and not self._cut else Cause.UNKNOWN


def compaction_after(rows: SessionRows, logical: Logical) -> int | None:
    """The summary row of the compaction that archived a message; without a summary, the first row after
    it that is still live."""
    last = logical.rows[-1]
    later = [row for row in rows.rows if row.id > last]
    summary = next((row.id for row in later if row.summary), None)
    if summary is not None:
        return summary
    return next((row.id for row in later if row.state == "live"), None)


def is_later(rows: SessionRows, boundary: int | None, newest: int, exported_at: float | None) -> bool:
    """Whether the artifact was made after the compaction at row ``boundary``: it holds that row or a later
    one, or says a later time."""
    if boundary is None:
        return False
    time = finite(rows.by_id[boundary].timestamp)
    return newest >= boundary or (exported_at is not None and time is not None and exported_at >= time)


def archived_held(rows: SessionRows, tally: Tally, exported_at: float | None) -> list[int]:
    """Archived messages that the artifact shows although they were archived already when it was made."""
    newest = max(tally.held, default=0)
    return [
        logical.shown
        for logical in rows.logical
        if logical.archived
        and any(row_id in tally.held for row_id in logical.rows)
        and is_later(rows, compaction_after(rows, logical), newest, exported_at)
    ]


def scope_of(
    rows: SessionRows, tally: Tally, missing: Sequence[Missing], kind: Kind, section: Section
) -> tuple[Scope, str]:
    """The view that the artifact was made from, and how that is known."""
    if tally.absent:
        return Scope.UNKNOWN, "it names this session, and has no segment of it"
    held = len(archived_held(rows, tally, section.exported_at))
    lost = sum(each.cause is Cause.ARCHIVED for each in missing)
    if kind in FILTERED:
        return Scope.PROMPTS, _prompts_reason(held, lost)
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


def _prompts_reason(held: int, lost: int) -> str:
    if lost:
        return f"user messages only, without {lost} that were archived when it was made"
    return f"user messages only, {held} of them archived when it was made" if held else "user messages only"
