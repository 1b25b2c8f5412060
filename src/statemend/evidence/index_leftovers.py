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
from statemend.store.index_texts import IndexText, leftover_texts

_ROW = """
SELECT session_id
FROM messages
WHERE id = ?
  AND COALESCE(content, '') || ' ' || COALESCE(tool_name, '') || ' ' || COALESCE(tool_calls, '') = ?
"""


class Leftover(NamedTuple):
    """A text of a message that is gone: ``session_id`` and the artifact that names it, ``None`` where none
    does."""

    text: IndexText
    session_id: str | None = None
    artifact: str | None = None


def leftovers(store: Store, inventory: Inventory) -> Iterator[Leftover]:
    """Every text that the search index of ``store`` kept of a message that is gone, with its session if an
    artifact tells. All of them are held at once. Raises ``StoreUnreadable``."""
    texts = {each.row_id: each.text for each in leftover_texts(store)}
    named = dict(_by_stores(texts, inventory)) | dict(_by_exports(texts, inventory)) if texts else {}
    for row_id, text in texts.items():
        yield Leftover(IndexText(row_id, text), *named.get(row_id, (None, None)))


def _by_exports(texts: Mapping[int, str], inventory: Inventory) -> Iterator[tuple[int, tuple[str, str]]]:
    for artifact, section in inventory.sections():
        if artifact.kind is not Kind.JSONL:
            continue
        for record in formats.records(Path(artifact.path), artifact, section):
            text = texts.get(record.row_id) if record.row_id is not None else None
            if text is not None and isinstance(record.content, str) and text.startswith(f"{record.content} "):
                owner = (record.row or {}).get("session_id")
                session_id = owner if isinstance(owner, str) else section.session_id
                yield record.row_id or 0, (session_id, artifact.path)


def _by_stores(texts: Mapping[int, str], inventory: Inventory) -> Iterator[tuple[int, tuple[str, str]]]:
    for artifact in inventory.stores:
        if artifact.kind is not Kind.STORE or artifact.damage is not None:
            continue
        try:
            with stores.opened(Path(artifact.path)) as other:
                for row_id, text in texts.items():
                    session_id = other.value(_ROW, (row_id, text))
                    if isinstance(session_id, str):
                        yield row_id, (session_id, artifact.path)
        except StatemendError:
            continue  # one that cannot be read any more names nobody
