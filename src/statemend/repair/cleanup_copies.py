"""Which copies in a session may go, which stay and why, and the proof that a collapse shows nowhere."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

import msgspec

from statemend.errors import Refused
from statemend.repair import cleanup_rows
from statemend.repair.digests import quoted
from statemend.repair.marks import SUBSTRING_INDEX
from statemend.store.connection import Store
from statemend.store.content import parse_json
from statemend.store.history import View, messages
from statemend.store.identity import message_digest
from statemend.store.repeats import Repeats, likenesses, repeats

_REFERENCES = """
    SELECT m.name, f."from", COALESCE(f."to", 'id'), upper(f.on_delete) IN ('NO ACTION', 'RESTRICT')
    FROM main.sqlite_schema AS m JOIN pragma_foreign_key_list(m.name, 'main') AS f
    WHERE m.type = 'table' AND lower(f."table") = 'messages'
"""
_TOOK_IN = "SELECT absorbed_message_uids FROM main.messages WHERE absorbed_message_uids IS NOT NULL"
_WORD = re.compile(r"[\w-]+")


class Shown(msgspec.Struct, frozen=True):
    """What a session shows, as digests over its messages in their order, their row ids and states:
    ``display`` to a person, ``active`` to the model. ``alike`` is what its rows are."""

    display: str
    active: str
    alike: frozenset[bytes]


def shown(store: Store, session_id: str) -> Shown:
    """Read all that must be the same before and after a collapse."""
    return Shown(
        display=_view(store, session_id, View.DISPLAY),
        active=_view(store, session_id, View.ACTIVE),
        alike=frozenset(likenesses(store, session_id)),
    )


class Staying:
    """Tells for the copies of a session why some must stay. ``index_fits`` says whether the substring index
    fits its messages as this SQLite reads it."""

    def __init__(self, store: Store, index_fits: Callable[[], bool]) -> None:
        self._store = store
        self._index_fits = index_fits

    def sort_out(self, session_id: str, room: int | None) -> tuple[tuple[int, ...], dict[str, int], Repeats]:
        """The copies that may go, how many stay by the reason, and all there are. ``room`` is how many bytes
        may go at most. Raises ``Refused`` when none may go."""
        found = repeats(self._store, session_id)
        if not found.surplus:
            raise Refused("no archived row of it only repeats another")
        reasons: dict[int, str] = {}
        for reason, named in self._staying(session_id):
            for row_id in named:
                reasons.setdefault(row_id, reason)
        going: list[int] = []
        left: Counter[str] = Counter()
        size = 0
        for row_id, weight in found.surplus.items():
            if row_id in reasons:
                left[reasons[row_id]] += 1
            elif room is not None and size + weight > room:
                left["more does not fit into one plan: plan again afterwards"] += 1
            else:
                going.append(row_id)
                size += weight
        if not going:
            raise Refused(f"its copies stay: {'; '.join(left)}")
        return tuple(going), dict(left), found

    def _staying(self, session_id: str) -> Iterator[tuple[str, Iterable[int]]]:
        for table, column, target, is_plain in self._store.rows(_REFERENCES):
            if not is_plain:
                raise Refused(f"rows of {table} are made to follow a message that goes")
            sql = (
                f"SELECT m.id FROM main.{quoted(table)} AS r JOIN main.messages AS m "
                f"ON m.{quoted(target)} = r.{quoted(column)} WHERE m.session_id = ?"
            )
            yield f"a row of {table} names it", [each for (each,) in self._store.rows(sql, (session_id,))]
        if self._taken_in:
            sql = "SELECT id, message_uid FROM main.messages WHERE session_id = ?"
            rows = self._store.rows(sql, (session_id,))
            yield "another message took it in", [each for each, uid in rows if uid in self._taken_in]
        if cleanup_rows.holds_nul(self._store, session_id) and not self._index_fits():
            yield (
                f"its text holds a NUL, which only the SQLite that built {SUBSTRING_INDEX} can take out",
                cleanup_rows.rows_with_nul(self._store, session_id),
            )

    @cached_property
    def _taken_in(self) -> frozenset[str]:
        """Each ``message_uid`` that a row says its message took in. What cannot be read counts word for
        word."""
        if not self._store.schema.has("messages", "absorbed_message_uids"):
            return frozenset()
        found: set[str] = set()
        for (cell,) in self._store.rows(_TOOK_IN):
            parsed = parse_json(cell, None)
            if isinstance(parsed, list) and all(isinstance(each, str) for each in parsed):
                found.update(parsed)
            else:
                found.update(_WORD.findall(str(cell)))
        return frozenset(found)


def _view(store: Store, session_id: str, view: View) -> str:
    digest = hashlib.sha256()
    for message in messages(store, session_id, view):
        digest.update(f"{message.id} {message.state} ".encode() + message_digest(message))
    return digest.hexdigest()
