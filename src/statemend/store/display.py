"""Which rows a display shows, and which of them are one logical message.

In-place compaction copies the kept tail, so one message can be several rows. Hermes 0.22.2 stores the
answer in ``display_order`` and ``display_identity``. Where a single visible row of a session lacks them it
computes them anew for the whole session, and so do we: rows with an equal key are one message, placed where
its first row stands, shown as its live row or else as its newest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from statemend.store.content import carried_request, decode_content, encode_content, parse_json
from statemend.store.message import MESSAGE_COLUMNS, OF_SESSION
from statemend.store.order import sqlite_order
from statemend.store.schema import Era

if TYPE_CHECKING:
    from statemend.store.connection import Store

Row = tuple[Any, ...]

#: Rows a display may show. 0.22.2 heals ``active IS NULL`` to live when it opens a store.
_VISIBLE = "(active = 1 OR active IS NULL OR compacted = 1)"
#: Rows that only the model reads keep their place in the order but are never shown.
_MODEL_ONLY = (
    "COALESCE(json_extract(CASE WHEN json_valid(display_metadata) THEN display_metadata ELSE '{}' END, "
    "'$.model_only'), 0) <> 0"
)
_SCAN = (
    f"SELECT {MESSAGE_COLUMNS}, display_order, {_MODEL_ONLY} "
    f"FROM messages WHERE {OF_SESSION} AND {_VISIBLE} ORDER BY id"
)
_FETCH = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE id = ?"
#: Where the scan has what: columns of the message, then those that it adds.
_LONG_AT = (3, 6, 9, 10)
_ACTIVE_AT, _ORDER_AT, _MODEL_ONLY_AT = 13, 18, 19
#: Text kept between the pass that groups rows and the output, in characters. Other rows are read again.
_HELD = 4_000_000
#: Text hashed at once, in characters.
_SLICE = 1 << 20


class _Group(msgspec.Struct):
    """The rows of one logical message found so far, and of the one to show its id and flag."""

    active: Any
    shown: int
    ids: list[int]


def fold(store: Store, session_id: str) -> Iterator[tuple[Row, tuple[int, ...]]]:
    """For each logical message in display order: the row shown (:data:`MESSAGE_COLUMNS`) and the ids of its
    rows.

    Memory stays bounded by the number of rows and a fixed amount of text, not by the length of the session.
    """
    place = _stored_place if _is_indexed(store, session_id) else _computed_place()
    groups: dict[Any, _Group] = {}
    held: dict[int, Row] = {}
    weight = 0
    for row in store.rows(_SCAN, (session_id,)):
        position = place(row)
        if row[_MODEL_ONLY_AT]:
            continue
        row_id, active = row[0], 1 if row[_ACTIVE_AT] is None else row[_ACTIVE_AT]
        group = groups.get(position)
        if group is None:
            groups[position] = _Group(active, row_id, [row_id])
        else:
            group.ids.append(row_id)
            if sqlite_order(active) < sqlite_order(group.active):
                continue
            dropped = held.pop(group.shown, None)
            weight -= 0 if dropped is None else _weight(dropped)
            group.active, group.shown = active, row_id
        heavier = weight + _weight(row)
        if heavier <= _HELD:
            held[row_id] = row
            weight = heavier
    for position in sorted(groups, key=sqlite_order):
        group = groups[position]
        shown = held.pop(group.shown, None) or store.one(_FETCH, (group.shown,))
        if shown is not None:
            yield shown, tuple(group.ids)


def _is_indexed(store: Store, session_id: str) -> bool:
    """Whether every visible row of the session carries its place, so that Hermes trusts what is stored."""
    if store.schema.era < Era.V22:
        return False
    unplaced = "(display_order IS NULL OR display_identity IS NULL)"
    for visible in ("(active = 1 OR compacted = 1)", "active IS NULL"):
        sql = f"SELECT 1 FROM messages WHERE session_id = ? AND {unplaced} AND {visible} LIMIT 1"
        if store.one(sql, (session_id,)) is not None:
            return False
    return True


def _stored_place(row: Row) -> Any:
    return row[_ORDER_AT]


def _computed_place() -> Callable[[Row], int]:
    """A function that places a row at the id of the first row it saw with the same key."""
    first_ids: dict[bytes, int] = {}

    def place(row: Row) -> int:
        return first_ids.setdefault(_key_digest(display_key(row)), int(row[0]))

    return place


def display_key(row: Row) -> tuple[Any, ...]:
    """What makes two rows (of :data:`MESSAGE_COLUMNS`) the same message to a display.

    An assistant row whose calls all have ids is known by those ids, since a later copy may hold shortened
    arguments. A user row that a summary was merged into is known by the user's own words.
    """
    role, content, timestamp, tool_call_id, tool_calls, tool_name = row[2:8]
    if role == "assistant" and tool_calls:
        call_ids = _call_ids(tool_calls)
        if call_ids is not None:
            return role, None, timestamp, tool_call_id, call_ids, tool_name
    if role == "user":
        carried = carried_request(decode_content(content), row[16])
        if carried is not None:
            content = encode_content(carried)
    return role, content, timestamp, tool_call_id, tool_calls, tool_name


def _call_ids(tool_calls: Any) -> tuple[str, ...] | None:
    """The ids of all calls, or ``None`` when there is no call or one of them has no id."""
    calls = parse_json(tool_calls, None)
    if not calls or not isinstance(calls, list):
        return None
    ids = tuple(map(call_id, calls))
    return ids if all(ids) else None


def call_id(call: Any) -> str:
    """The id that pairs a tool call with its result: ``call_id`` before ``id``, without a bridge's suffix."""
    if not isinstance(call, dict):
        return ""
    for value in (call.get("call_id"), call.get("id")):
        text = value.strip() if isinstance(value, str) else ""
        if text:
            return text.partition("|")[0].strip() or text
    return ""


def _key_digest(key: tuple[Any, ...]) -> bytes:
    """A digest that is equal when type and value of every part are. Long text is not copied as a whole."""
    if sum(len(part) for part in key if isinstance(part, str)) < _SLICE:
        return hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).digest()
    digest = hashlib.sha256()
    for part in key:
        text = part if isinstance(part, str) else repr(part)
        digest.update(f"{type(part).__name__} {len(text)}:".encode())
        for start in range(0, len(text), _SLICE):
            digest.update(text[start : start + _SLICE].encode("utf-8", "surrogatepass"))
    return digest.digest()


def _weight(row: Row) -> int:
    return sum(len(row[at]) for at in _LONG_AT if isinstance(row[at], (str, bytes)))
