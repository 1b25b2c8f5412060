"""``response_store.db``: what the API server of 0.13 and newer keeps to go on with a response.

A database of its own with the last hundred responses, each with the whole history up to it, as the agent held
it, and the session that it belongs to. Deleting the session leaves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from statemend.errors import StoreUnreadable
from statemend.formats import files, memory_messages, stores
from statemend.formats.artifact import Artifact, Kind, Record, Section
from statemend.store.connection import Store
from statemend.store.content import parse_json

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.RESPONSES})
#: Its tables, as they stand on the first page.
_TABLES = (b"CREATE TABLE responses", b"CREATE TABLE conversations")
_RESPONSES = """
SELECT r.rowid, CAST(r.data AS TEXT), c.name
FROM main.responses AS r
LEFT JOIN main.conversations AS c ON c.response_id = r.response_id
GROUP BY r.rowid
ORDER BY r.rowid
"""
_RESPONSE = "SELECT CAST(data AS TEXT) FROM main.responses WHERE rowid = ?"


def recognise(head: bytes) -> Kind | None:
    """``Kind.RESPONSES`` for a database whose first page has the two tables."""
    return Kind.RESPONSES if head.startswith(stores.MAGIC) and all(map(head.__contains__, _TABLES)) else None


def is_one(store: Store) -> bool:
    """Whether an open database is one, also where its tables are still in its log."""
    return {stores.RESPONSES, "conversations"} <= store.schema.tables and not stores.is_hermes(store)


def read(path: Path) -> Artifact:
    """One section for each response. Raises ``Undetermined`` when the system cannot read it, or a process
    holds it."""
    scan = files.Scan(path).drain()
    artifact = Artifact(str(path), Kind.RESPONSES, scan.size, scan.modified_at, scan.sha256)
    try:
        with stores.opened(path) as store:
            if not is_one(store):
                return msgspec.structs.replace(artifact, kind=Kind.UNCLASSIFIED)
            return msgspec.structs.replace(artifact, sections=tuple(sections(store)))
    except StoreUnreadable as error:
        return msgspec.structs.replace(artifact, damage=stores.without_path(error, path))


def sections(store: Store) -> Iterator[Section]:
    """The responses of an open one, in the order in which they were first stored."""
    for row_id, data, name in store.rows(_RESPONSES):
        kept = _object(data)
        session_id = kept.get("session_id")
        history = kept.get("conversation_history")
        yield Section(
            session_id=session_id if isinstance(session_id, str) else "",
            offset=row_id,
            length=0,
            title=name if isinstance(name, str) else None,
            held=len(memory_messages.messages_of(history)),
            damage=None if isinstance(history, list) else "no history that can be read",
        )


def records(path: Path, section: Section) -> Iterator[Record]:
    """The history up to one response. Raises ``Undetermined``."""
    with stores.opened(path) as store:
        data = store.value(_RESPONSE, (section.offset,))
    yield from memory_messages.records(_object(data).get("conversation_history"))


def _object(data: Any) -> dict[str, Any]:
    value = parse_json(data, None)
    return value if isinstance(value, dict) else {}
