"""Digests of content: of a message, of a view of a session, of a whole store.

Two messages are the same content when role, decoded content, timestamp, tool call id, parsed tool calls and
tool name are equal in type and value. Flags, row ids and counters are not content. All digests are sha256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
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
_WIDTH = 1 << 256


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


def store_digest(store: Store) -> str:
    """A digest, in hex, of every row of every canonical table with all its stored columns.

    Values of different types differ (``1``, ``1.0``, ``'1'``, ``x'31'``). Neither the order of rows nor
    that of columns matters. The search index is left out, being derived, and so is ``sqlite_sequence``,
    which only ever grows.
    """
    digest = hashlib.sha256()
    for table in sorted(CATALOGUE):
        columns = sorted(table_columns(store, table))
        if columns:
            digest.update(_PACK.encode([table, columns]) + _rows_sum(store, table, columns))
    return digest.hexdigest()


def _rows_sum(store: Store, table: str, columns: list[str]) -> bytes:
    """The sum of the digests of all rows: the order in which they are read does not change it."""
    total = 0
    listed = ", ".join(map(_typed, columns))
    for row in store.rows(f'SELECT {listed} FROM main."{table}"'):
        total += int.from_bytes(hashlib.sha256(_PACK.encode(row)).digest(), "big")
    return (total % _WIDTH).to_bytes(32, "big")


def _typed(column: str) -> str:
    """Reads a text as its bytes, whether or not they are valid, and so a blob as hexadecimal text."""
    name = '"' + column.replace('"', '""') + '"'
    exact = f"WHEN 'text' THEN CAST({name} AS BLOB) WHEN 'blob' THEN hex({name})"
    return f"CASE typeof({name}) {exact} ELSE {name} END"


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
