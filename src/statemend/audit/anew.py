"""What shows that a store was begun anew: evidence of sessions that this file never had.

SQLite never gives a row id of ``messages`` twice in one store, not even after a deletion. So an id that
belonged to another message, or one higher than any that this store has given, is of another store. And where
the first row that a store was ever given is still there, nothing can have been in it before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from statemend import formats
from statemend.audit.context import Context
from statemend.audit.facts import is_time
from statemend.audit.holes import highest_ever
from statemend.audit.zone import BEHIND
from statemend.errors import StatemendError
from statemend.formats import archives, stores
from statemend.formats.artifact import Artifact, Kind, Section

#: So many sessions of one artifact, and so many rows of each, are held against the store.
_MOST_SESSIONS, _MOST_ROWS = 50, 100

FIRST_SESSION = "SELECT MIN(started_at) FROM sessions WHERE typeof(started_at) IN ('real', 'integer')"
FIRST_ROW = "SELECT timestamp FROM messages WHERE id = 1"
ANY_ROW = "SELECT 1 FROM messages LIMIT 1"
PRESENT = """
SELECT 1 FROM sessions WHERE id = :session
UNION ALL
SELECT 1 FROM messages WHERE session_id = :session
LIMIT 1
"""
OWNER = "SELECT session_id FROM messages WHERE id = ?"
ROWS = "SELECT id, timestamp FROM messages WHERE session_id = ? ORDER BY id"
#: What a rule that uses this module reads.
READS = (FIRST_SESSION, FIRST_ROW, ANY_ROW, PRESENT, OWNER)


class Older(NamedTuple):
    """A session from before this store, which the store lacks. ``where`` names the artifact, ``strange`` are
    row ids that it has there and cannot have had in this store."""

    session_id: str
    first_at: float
    last_at: float
    where: str
    strange: tuple[int, ...] = ()


class Beginning:
    """When the store begins, and what it can have had. ``at`` is the time of its oldest session or message
    (``empty``: there is none), ``highest`` the highest row id that it ever gave, ``None`` where it does not
    tell."""

    def __init__(self, context: Context) -> None:
        self._context = context
        times = [each.first_at for each in context.census.values() if each.first_at is not None]
        started = context.store.value(FIRST_SESSION)
        times += [started] if is_time(started) else []
        self.at = min(times, default=float("inf"))
        self.empty = not times
        empty = context.store.value(ANY_ROW) is None
        highest = highest_ever(context.store)
        self.highest = 0 if highest is None and empty else highest
        first = context.store.value(FIRST_ROW)
        self._first_row = first if is_time(first) else float("inf") if self.highest == 0 else None

    @property
    def keeps_first_row(self) -> bool:
        """Whether the first row that the store was ever given is still there, or it was never given any."""
        return self._first_row is not None

    def precedes(self, at: float) -> bool:
        """Whether a time is before the store's oldest."""
        return at < self.at

    def precedes_first_row(self, clock: float) -> bool:
        """Whether a clock, in whatever zone it ran, showed this (epoch seconds as if in UTC) before anything
        was put into the store."""
        first = self._first_row
        return first is not None and clock + BEHIND < min(first, self.at)

    def lacks(self, session_id: str) -> bool:
        """Whether the store has neither the row of a session nor a message of it, nor another of its home."""
        known = self._context.store.value(PRESENT, {"session": session_id}) is not None
        return not known and not self._context.elsewhere(session_id)

    def is_strange(self, row_id: int) -> bool:
        """Whether a row of this id, of a session that the store lacks, was never in this store."""
        if self.highest is not None and row_id > self.highest:
            return True
        return self._context.store.value(OWNER, (row_id,)) is not None


def beginning_of(context: Context) -> Beginning:
    """What is known of the beginning of the store, asked for once."""
    return context.once("beginning", lambda: Beginning(context))


def in_stores(context: Context, beginning: Beginning) -> Iterator[Older]:
    """Sessions in other stores of this home."""
    for artifact in context.inventory.stores:
        older = [each for each in artifact.sections if _is_older(each, beginning)]
        if not older or artifact.damage is not None or not of_home(context, artifact):
            continue
        try:
            with stores.opened(Path(artifact.path)) as other:
                for section in older[:_MOST_SESSIONS]:
                    rows = [row for row, _ in islice(other.rows(ROWS, (section.session_id,)), _MOST_ROWS)]
                    yield _found(section, artifact, beginning, rows)
        except StatemendError:
            continue  # one that cannot be read any more proves nothing
        for section in older[_MOST_SESSIONS:]:
            yield _found(section, artifact, beginning, ())


def in_exports(context: Context, beginning: Beginning) -> Iterator[Older]:
    """Sessions in the exports of this home that keep row ids."""
    for artifact in context.inventory.artifacts:
        if artifact.kind is not Kind.JSONL or not of_home(context, artifact):
            continue
        older = (each for each in artifact.sections if _began_before(each, beginning))
        for section in islice(older, _MOST_SESSIONS):
            shown = list(islice(formats.records(Path(artifact.path), artifact, section), _MOST_ROWS))
            times = [each.timestamp for each in shown if each.timestamp is not None]
            if times and beginning.precedes(max(times)):
                dated = msgspec.structs.replace(section, first_at=min(times), last_at=max(times))
                yield _found(dated, artifact, beginning, [each.row_id for each in shown if each.row_id])


def in_logs(context: Context, beginning: Beginning) -> Iterator[Older]:
    """Sessions that talked, by this home's logs, before anything was put into the store."""
    if not beginning.keeps_first_row:
        return
    for log in context.inventory.logs:
        if not of_home(context, log):
            continue
        for told in log.turns:
            before = [at for at in told.times if beginning.precedes_first_row(at)]
            if before and beginning.lacks(told.session_id):
                yield Older(told.session_id, min(before), max(before), log.path)


def of_home(context: Context, artifact: Artifact) -> bool:
    """Whether a file lies in the home itself, and not in a folder that was named beside it."""
    real = archives.split(Path(artifact.path))[0].resolve()
    return real.is_relative_to(Path(context.home.root).resolve())


def _is_older(section: Section, beginning: Beginning) -> bool:
    last = section.last_at
    return last is not None and beginning.precedes(last) and beginning.lacks(section.session_id)


def _began_before(section: Section, beginning: Beginning) -> bool:
    started_at = section.started_at
    if started_at is None or section.lineage or not beginning.precedes(started_at):
        return False
    return beginning.lacks(section.session_id)


def _found(section: Section, artifact: Artifact, beginning: Beginning, rows: Iterable[int]) -> Older:
    strange = tuple(row for row in rows if beginning.is_strange(row))
    first, last = section.first_at or 0.0, section.last_at or 0.0
    return Older(section.session_id, first, last, artifact.path, strange)
