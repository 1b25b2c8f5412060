"""Archived rows that only repeat another row of their session.

Compaction archives the live rows and writes those that it keeps once more. A message that is kept again and
again leaves an archived row each time. Rows are alike when every stored column holds the same, but for the
row's own id, its two flags, and ``message_uid``, which 0.22 draws for each row that has none.

Of rows that are alike the first stays, since a display places the message where its first row stands, and so
does the one that a display shows. The archived ones besides are told from them by nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from statemend.store.history import Census, census
from statemend.store.identity import codec_of
from statemend.store.message import OF_SESSION
from statemend.store.order import sqlite_order
from statemend.store.records import table_columns

if TYPE_CHECKING:
    from statemend.store.connection import Store

#: So many rows that only repeat others are worth speaking of.
WORTH = 100

_PACK = msgspec.msgpack.Encoder()
_OWN = frozenset({"id", "active", "compacted", "message_uid"})
#: Rows that are alike have one time, so this many repeat another at the most. An index tells.
_AT_MOST = """
    SELECT SUM(n - 2) FROM (
        SELECT COUNT(*) AS n FROM messages WHERE session_id = ? GROUP BY timestamp HAVING n > 2
    )
"""


class Repeats(msgspec.Struct, frozen=True):
    """What repeats in one session. ``rows`` counts its live and archived rows. ``surplus`` holds each
    archived row that only repeats another, id to bytes, by id. ``messages`` counts the rows repeated,
    ``most`` the rows of the one that has most of them."""

    session_id: str
    rows: int
    surplus: dict[int, int]
    messages: int
    most: int

    @property
    def size(self) -> int:
        """The bytes that the surplus rows hold."""
        return sum(self.surplus.values())

    @property
    def beyond_design(self) -> bool:
        """Whether this is more than compaction leaves by design.

        It leaves a row of each message that it keeps, each time. But it is made to keep less than it takes
        out of sight, so that most messages are kept once or twice, and what repeats stays the smaller part.
        """
        return len(self.surplus) >= WORTH and 2 * len(self.surplus) > self.rows


class _Alike(msgspec.Struct):
    """Rows that are alike: the first of them, the one to show with the rank of its ``active``, how many they
    are, and those that are archived, id to bytes."""

    first: int
    shown: int
    rank: tuple[int, object]
    archived: dict[int, int]
    rows: int = 0


def repeats(store: Store, session_id: str) -> Repeats:
    """Read every visible row of a session, and tell which of them only repeat another.

    Memory is bounded by the number of rows, not by what they hold.
    """
    groups: dict[bytes, _Alike] = {}
    rows = 0
    for row_id, active, archived, digest, size in _visible(store, session_id):
        rows += 1
        rank = sqlite_order(1 if active is None else active)
        group = groups.setdefault(digest, _Alike(row_id, row_id, rank, {}))
        group.rows += 1
        if rank >= group.rank:
            group.shown, group.rank = row_id, rank
        if archived:
            group.archived[row_id] = size
    surplus: dict[int, int] = {}
    repeated = most = 0
    for group in groups.values():
        for kept in (group.first, group.shown):
            group.archived.pop(kept, None)
        if group.archived:
            repeated += 1
            most = max(most, group.rows)
            surplus.update(group.archived)
    return Repeats(session_id, rows, dict(sorted(surplus.items())), repeated, most)


def likenesses(store: Store, session_id: str) -> set[bytes]:
    """What the visible rows of a session are, as digests that are equal for rows that are alike."""
    return {digest for _, _, _, digest, _ in _visible(store, session_id)}


def multiplied(store: Store, counted: Iterable[Census] | None = None) -> Iterator[Repeats]:
    """The sessions that hold more repeated rows than compaction leaves by design, ordered by id. Rows are
    read only where an index cannot rule it out. ``counted`` is the census of the store, if it was taken."""
    for each in census(store) if counted is None else counted:
        if each.archived < WORTH or not isinstance(each.session_id, str):
            continue
        at_most = store.value(_AT_MOST, (each.session_id,)) or 0
        if at_most < WORTH or 2 * at_most <= each.archived + each.live:
            continue
        found = repeats(store, each.session_id)
        if found.beyond_design:
            yield found


def _visible(store: Store, session_id: str) -> Iterator[tuple[int, object, bool, bytes, int]]:
    """Each row that a display may show, by id: id, ``active``, whether it is archived, what it is (a digest)
    and how many bytes it holds in UTF-8, whatever the encoding of the store."""
    if not store.schema.has("messages", "compacted"):
        return
    columns = [name for name in table_columns(store, "messages") if name.lower() not in _OWN]
    cells = ", ".join(
        f"typeof({name}), iif(typeof({name}) = 'text', CAST({name} AS BLOB), {name})"
        for name in map(_quoted, columns)
    )
    sql = (
        f"SELECT id, active, active = 0 AND compacted = 1, {cells} FROM main.messages "
        f"WHERE {OF_SESSION} AND (active = 1 OR active IS NULL OR compacted = 1) ORDER BY id"
    )
    codec = codec_of(store)
    for row_id, active, archived, *row in store.rows(sql, (session_id,)):
        size = sum(_size(kind, cell, codec) for kind, cell in zip(row[::2], row[1::2], strict=True))
        yield row_id, active, bool(archived), hashlib.sha256(_PACK.encode(row)).digest(), size


def _size(kind: str, cell: Any, codec: str) -> int:
    if kind == "text" and codec != "utf-8":
        return len(cell.decode(codec, "replace").encode())
    return len(cell) if isinstance(cell, bytes) else 8


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
