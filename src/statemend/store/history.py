"""What a session's history is: raw rows, the active view that the model reads, the display view that a
person sees.

The display view is the one of Hermes 0.22.2, whatever release wrote the store, because it is the first that
shows archived and live rows as one conversation.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from statemend.store.content import decode_content, is_summary_text
from statemend.store.display import fold
from statemend.store.message import MESSAGE_COLUMNS, OF_SESSION, Message, RowState, message_from_row
from statemend.store.records import active_condition, display_records, message_records, session_record
from statemend.store.schema import Era

if TYPE_CHECKING:
    from statemend.store.connection import Store

__all__ = [
    "Census",
    "LogicalMessage",
    "Message",
    "RowState",
    "View",
    "census",
    "decode_content",
    "display",
    "first_row",
    "is_summary_text",
    "messages",
    "records",
    "session_record",
]


class View(StrEnum):
    """A named projection of a session's rows."""

    RAW = "raw"  # every row
    ACTIVE = "active"  # what ``get_messages(session_id)`` of the store's own era returns
    DISPLAY = "display"  # live and archived, each logical message once


class LogicalMessage(msgspec.Struct, frozen=True):
    """A message as a display shows it, and the ids of every row that it folds, ascending."""

    shown: Message
    row_ids: tuple[int, ...]

    @property
    def state(self) -> RowState:
        """The state of the row shown: archived only when no row of the message is live."""
        return self.shown.state


class Census(msgspec.Struct, frozen=True):
    """Rows of one session by state. ``first_at`` and ``last_at`` are the extreme timestamps (epoch seconds)
    of all its rows that hold a number, ``None`` when none does.
    """

    session_id: str
    live: int
    archived: int
    rewound: int
    unset: int
    first_at: float | None
    last_at: float | None

    @property
    def total(self) -> int:
        return self.live + self.archived + self.rewound + self.unset


def messages(store: Store, session_id: str, view: View = View.ACTIVE) -> Iterator[Message]:
    """The messages of a session in the order Hermes shows them, streamed. An unknown session has none."""
    if view is View.DISPLAY:
        for logical in display(store, session_id):
            yield logical.shown
        return
    condition = "1" if view is View.RAW else active_condition(store.schema.era)
    sql = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE {OF_SESSION} AND {condition} ORDER BY id"
    for row in store.rows(sql, (session_id,)):
        yield message_from_row(row)


def display(store: Store, session_id: str) -> Iterator[LogicalMessage]:
    """Each logical message of a session once: 0.22.2's ``get_messages(session_id,
    include_compacted=True)``.
    """
    for row, row_ids in fold(store, session_id):
        yield LogicalMessage(message_from_row(row), row_ids)


def first_row(store: Store, session_id: str) -> Message | None:
    """The oldest row of a session, whatever its state."""
    oldest = "SELECT MIN(id) FROM messages WHERE session_id = ?"
    row = store.one(f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE id = ({oldest})", (session_id,))
    return None if row is None else message_from_row(row)


def records(store: Store, session_id: str, view: View) -> Iterator[dict[str, Any]]:
    """The messages of a session as Hermes' own dictionaries: every stored column in the order of the table,
    decoded as ``get_messages`` of the store's era decodes them.
    """
    if view is View.DISPLAY:
        yield from display_records(store, session_id)
    else:
        condition = "1" if view is View.RAW else active_condition(store.schema.era)
        yield from message_records(store, session_id, condition)


def census(store: Store, session_id: str | None = None) -> Iterator[Census]:
    """Rows by state of every session that has rows (or of one), ordered by session id.

    Sessions without a row do not appear; rows whose session does not exist do. Answered from indexes:
    ``compacted`` lies behind the content in a row, so it is read only where a row is not live.
    """
    where, bindings = ("", ()) if session_id is None else ("WHERE session_id = ?", (session_id,))
    archived = _archived(store, session_id)
    sql = (
        "SELECT session_id, active, COUNT(*), MIN(timestamp) FILTER (WHERE typeof(timestamp) = 'real'), "
        "MAX(timestamp) FILTER (WHERE typeof(timestamp) = 'real') "
        f"FROM messages {where} GROUP BY session_id, active ORDER BY session_id, active"
    )
    for sid, states in groupby(store.rows(sql, bindings), key=itemgetter(0)):
        live = hidden = unset = 0
        times: list[float] = []
        for _, active, count, earliest, latest in states:
            if active is None:
                unset += count
            elif active == 1:
                live += count
            else:
                hidden += count
            if earliest is not None:
                times += (earliest, latest)
        kept = archived.get(sid, 0)
        yield Census(
            sid, live, kept, hidden - kept, unset, min(times, default=None), max(times, default=None)
        )


def _archived(store: Store, session_id: str | None) -> dict[str, int]:
    """Archived rows by session. 0.22 has an index of visible rows, which tells them without the rows
    themselves; elsewhere the rows that are not live are looked up in the order in which they lie in the file.
    """
    era = store.schema.era
    if era < Era.V18:
        return {}
    only, bindings = ("", ()) if session_id is None else ("AND session_id = ?", (session_id,))
    if era < Era.V22:
        condition = f"id IN (SELECT id FROM messages WHERE active <> 1 {only}) AND compacted = 1"
    else:
        condition = f"(active = 1 OR compacted = 1) AND active <> 1 {only}"
    sql = f"SELECT session_id, COUNT(*) FROM messages WHERE {condition} GROUP BY session_id"
    return dict(store.rows(sql, bindings))
