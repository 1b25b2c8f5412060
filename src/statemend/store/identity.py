"""Digests of content: of a message, of a view of a session, of a whole store.

Two messages are the same content when role, decoded content, timestamp, tool call id, parsed tool calls and
tool name are equal in type and value. Flags, row ids and counters are not content. All digests are sha256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from statemend.store.catalogue import CATALOGUE
from statemend.store.history import View, messages
from statemend.store.message import Message
from statemend.store.records import table_columns

if TYPE_CHECKING:
    from statemend.store.connection import Store

_JSON = msgspec.json.Encoder(order="deterministic")
_PACK = msgspec.msgpack.Encoder()
_CODECS = {"UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}
_WIDTH = 1 << 256

#: The session that each row of these tables belongs to.
SESSION_COLUMN = {"sessions": "id", "messages": "session_id"}


def content_digest(
    role: Any, content: Any, timestamp: Any, tool_call_id: Any, tool_calls: Any, tool_name: Any
) -> bytes:
    """The digest of one message's content.

    It is taken over a canonical JSON array (keys sorted, no white space) of the six values, the timestamp
    as its ``repr`` so that it is exact. ``content`` and ``tool_calls`` are decoded values; a blob is told
    apart from a text.
    """
    digest = hashlib.sha256(b"[" + _canonical(role) + b",")
    digest.update(_canonical(content))  # by itself, since it may be long
    rest = (repr(timestamp), tool_call_id, tool_calls, tool_name)
    digest.update(b"".join(b"," + _canonical(part) for part in rest) + b"]")
    return digest.digest()


def message_digest(message: Message) -> bytes:
    """:func:`content_digest` of a message of the store."""
    return content_digest(
        message.role,
        message.content,
        message.timestamp,
        message.tool_call_id,
        message.tool_calls,
        message.tool_name,
    )


def view_digest(messages: Iterable[Message]) -> str:
    """The digest, in hex, of messages in their order: equal when they are the same contents in the same
    order.
    """
    digest = hashlib.sha256()
    for message in messages:
        digest.update(message_digest(message))
    return digest.hexdigest()


def session_digest(store: Store, session_id: str, view: View) -> str:
    """:func:`view_digest` of one session. An unknown session has the digest of an empty view."""
    return view_digest(messages(store, session_id, view))


class Content(msgspec.Struct, frozen=True):
    """The digests of everything: ``sessions`` of each session's row and messages, by session id, ``tables``
    of every other canonical table, ``digest``, in hex, of all of it together."""

    sessions: dict[str, int]
    tables: dict[str, int]
    digest: str

    def changed(self, other: Content) -> tuple[set[str], set[str]]:
        """The sessions and the tables that differ between two states."""
        return _different(self.sessions, other.sessions), _different(self.tables, other.tables)


def content(store: Store) -> Content:
    """Read every row of every canonical table once, with all its stored columns.

    Values of different types differ (``1``, ``1.0``, ``'1'``, ``x'31'``). Neither the order of rows nor
    that of columns matters. The search index is left out, being derived, and so is ``sqlite_sequence``,
    which only ever grows.
    """
    sessions: dict[str, int] = {}
    tables: dict[str, int] = {}
    digest = hashlib.sha256()
    for table in sorted(CATALOGUE):
        columns = sorted(table_columns(store, table))
        if not columns:
            continue
        owned = _sums(store, table, columns)
        digest.update(_PACK.encode([table, columns]) + (sum(owned.values()) % _WIDTH).to_bytes(32, "big"))
        if SESSION_COLUMN.get(table) in columns:
            for session, total in owned.items():
                sessions[session] = (sessions.get(session, 0) + total) % _WIDTH
        else:
            tables.update(owned)
    return Content(sessions, tables, digest.hexdigest())


def store_digest(store: Store) -> str:
    """A digest, in hex, of every row of every canonical table: that of its :func:`content`."""
    return content(store).digest


def codec_of(store: Store) -> str:
    """The name of the store's text encoding for Python."""
    named = store.fact("encoding", lambda: str(store.value("PRAGMA main.encoding")))
    return _CODECS.get(named, "utf-8")


def _sums(store: Store, table: str, columns: list[str]) -> dict[str, int]:
    """The sum of the digests of all rows (the order in which they are read does not change it), by the
    session that a row belongs to, or else by the table."""
    sums: dict[str, int] = {}
    owner = SESSION_COLUMN.get(table)
    position = columns.index(owner) if owner in columns else None
    codec = codec_of(store)
    # SQLite hands out UTF-16 as UTF-8, in which two texts that are not valid may be the same.
    cell = _quoted if codec == "utf-8" else _typed
    sql = f'SELECT {", ".join(map(cell, columns))} FROM main."{table}"'
    for row in store.rows(sql, exact=True):
        whose = table if position is None else row[position]
        if isinstance(whose, bytes) and cell is _typed:
            whose = whose.decode(codec, "replace")
        elif not isinstance(whose, str):
            whose = repr(whose)
        digest = hashlib.sha256(_packed(table, row)).digest()
        sums[whose] = sums.get(whose, 0) + int.from_bytes(digest, "big")
    return sums


def _packed(table: str, row: tuple[Any, ...]) -> bytes:
    """A row as bytes, others for each that differs in a type or a byte."""
    try:
        return _PACK.encode((table, row))
    except UnicodeEncodeError:
        return _PACK.encode((table, [_marked(value) for value in row]))


def _marked(value: Any) -> Any:
    """The value, or the bytes of a text that is not valid, marked as that."""
    try:
        _PACK.encode(value)
    except UnicodeEncodeError:
        return msgspec.msgpack.Ext(1, value.encode("utf-8", "surrogateescape"))
    return value


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _typed(column: str) -> str:
    """Reads a text as its bytes, whether or not they are valid, and so a blob as hexadecimal text."""
    name = _quoted(column)
    exact = f"WHEN 'text' THEN CAST({name} AS BLOB) WHEN 'blob' THEN hex({name})"
    return f"CASE typeof({name}) {exact} ELSE {name} END"


def _different(one: Mapping[str, int], other: Mapping[str, int]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def _canonical(value: Any) -> bytes:
    """The canonical JSON of one value, or its exact form where JSON cannot hold it."""
    if value is None:
        return b"null"
    try:
        encoded = _JSON.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return _exact(value)
    # JSON writes bytes as text, and infinities as null.
    return _exact(value) if isinstance(value, bytes) or b"null" in encoded else encoded


def _exact(value: Any) -> bytes:
    """Any decoded value in prefix notation, without recursion: type and size first, then what it holds."""
    tokens: list[str] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            tokens.append(f"object {len(item)}")
            for name in sorted(item, reverse=True):
                waiting += (item[name], name)
        elif isinstance(item, list):
            tokens.append(f"array {len(item)}")
            waiting += reversed(item)
        else:
            tokens.append(repr(item))
    return "\0".join(tokens).encode("ascii", "backslashreplace")
