"""Whose the texts are that a search index kept of messages that are gone.

The index knows a message by the id of its row alone. An artifact that has the row (a JSONL export, another
store) names its session; it is believed where its text is that of the index, since ids begin anew with a
store. What no artifact has stays nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from statemend import formats
from statemend.errors import StatemendError
from statemend.evidence.inventory import Inventory
from statemend.formats import stores
from statemend.formats.artifact import Kind
from statemend.store.connection import Store
from statemend.store.index_texts import IndexText, leftover_places, leftover_texts, text_at

_ROW = """
SELECT session_id
FROM messages
WHERE id = ?
  AND COALESCE(content, '') || ' ' || COALESCE(tool_name, '') || ' ' || COALESCE(tool_calls, '') = ?
"""

_Named = Iterator[tuple[int, tuple[str, str]]]


class Leftover(NamedTuple):
    """A text of a message that is gone: ``session_id`` and the artifact that names it, ``None`` where none
    does."""

    text: IndexText
    session_id: str | None = None
    artifact: str | None = None


def leftovers(store: Store, inventory: Inventory) -> Iterator[Leftover]:
    """Every text that the search index of ``store`` kept of a message that is gone, with its session if an
    artifact tells. The ids of all are held at once, one text at a time. Raises ``StoreUnreadable``, and
    ``Undetermined`` when an artifact cannot be read."""
    places = dict(leftover_places(store))
    if not places:
        return
    named = dict(_by_stores(store, places, inventory)) | dict(_by_exports(store, places, inventory))
    for text in leftover_texts(store):
        yield Leftover(text, *named.get(text.row_id, (None, None)))


def _by_exports(store: Store, places: Mapping[int, str], inventory: Inventory) -> _Named:
    for artifact, section in inventory.sections():
        if artifact.kind is not Kind.JSONL:
            continue
        for record in formats.records(Path(artifact.path), artifact, section):
            row_id, content = record.row_id, record.content
            if row_id is None or row_id not in places or not isinstance(content, str):
                continue
            text = text_at(store, row_id, places[row_id])
            if text is not None and text.startswith(f"{content} "):
                owner = (record.row or {}).get("session_id")
                yield row_id, (owner if isinstance(owner, str) else section.session_id, artifact.path)


def _by_stores(store: Store, places: Mapping[int, str], inventory: Inventory) -> _Named:
    for artifact in inventory.stores:
        if artifact.kind is not Kind.STORE or artifact.damage is not None:
            continue
        try:
            with stores.opened(Path(artifact.path)) as other:
                for row_id, table in places.items():
                    session_id = other.value(_ROW, (row_id, text_at(store, row_id, table)))
                    if isinstance(session_id, str):
                        yield row_id, (session_id, artifact.path)
        except StatemendError:
            continue  # one that cannot be read any more names nobody
