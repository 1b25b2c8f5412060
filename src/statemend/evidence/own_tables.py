"""What the audited store tells of sessions outside their messages: four kinds of tables, each an artifact.

An old search index keeps texts of messages that are gone; the gateway keeps where each chat goes and the
replies that it owes to chats; an agent keeps the tasks that it handed to subagents. All are small beside the
messages, and none is a transcript: they prove that there was a session, and hold single texts of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from statemend.evidence import delegations, owed_replies
from statemend.evidence.attribution import Attribution
from statemend.evidence.index_leftovers import leftovers
from statemend.evidence.inventory import Inventory
from statemend.evidence.own_part import Part
from statemend.formats.artifact import OWN_TABLES, Artifact, Kind, Record, Section
from statemend.formats.clock import finite
from statemend.store.connection import Store

_ROUTES_TABLE = "gateway_routing"
_ROUTES = """
SELECT session_id, session_key, updated_at, size
FROM (
    SELECT CASE WHEN json_valid(entry_json) THEN json_extract(entry_json, '$.session_id') END AS session_id,
           session_key, updated_at, length(entry_json) AS size
    FROM gateway_routing
)
WHERE typeof(session_id) = 'text' AND session_id <> ''
ORDER BY session_id, session_key
"""
_INDEX_TABLE = "messages_fts_content"
_NAMELESS = "the index knows messages by their rows alone, and no file or store has these"


class OwnTable(NamedTuple):
    """One table as an artifact; ``open_questions`` are its sections without a session, and whose they may
    be."""

    artifact: Artifact
    open_questions: tuple[Attribution, ...] = ()


def own_tables(
    store: Store, inventory: Inventory, kinds: Collection[Kind] = OWN_TABLES
) -> Iterator[OwnTable]:
    """The tables of the audited store, of these kinds, that tell of any session. Those of a search index take
    as long as reading its texts. Raises ``StoreUnreadable``, and ``Undetermined`` when an artifact that may
    name a session cannot be read."""
    found: tuple[tuple[Kind, str, Iterator[Part]], ...] = (
        (Kind.ROUTES, _ROUTES_TABLE, _routes(store)),
        (Kind.DELEGATIONS, delegations.TABLE, delegations.sections(store)),
        (Kind.REPLIES, owed_replies.TABLE, owed_replies.sections(store)),
        (Kind.INDEX, _INDEX_TABLE, _index(store, inventory)),
    )
    for kind, table, each in found:
        parts = list(each) if kind in kinds else []
        if parts:
            yield _as_artifact(f"{inventory.home.store}!{table}", kind, parts)


def records(store: Store, inventory: Inventory, artifact: Artifact, section: Section) -> Iterator[Record]:
    """The texts that one section of one of these tables has; none of the routes."""
    if artifact.kind is Kind.DELEGATIONS:
        yield from delegations.records(store, section)
    elif artifact.kind is Kind.REPLIES:
        yield from owed_replies.records(store, section)
    elif artifact.kind is Kind.INDEX:
        wanted = section.session_id or None
        kept = (each.text for each in leftovers(store, inventory) if each.session_id == wanted)
        for position, text in enumerate(kept):
            yield Record(position, role="", content=text.text, row_id=text.row_id)


def _routes(store: Store) -> Iterator[Part]:
    """One section for each chat and the session that it goes to; ``title`` is the chat's key."""
    for session_id, key, updated_at, size in store.rows(_ROUTES) if store.table_exists(_ROUTES_TABLE) else ():
        title = key if isinstance(key, str) else None
        yield Part(Section(session_id, 0, 0, title=title, last_at=finite(updated_at)), size)


def _index(store: Store, inventory: Inventory) -> Iterator[Part]:
    """One section for each session that a text was found to be of, and one for all others."""
    found: dict[str, list[int]] = {}
    for each in leftovers(store, inventory):
        found.setdefault(each.session_id or "", []).append(len(each.text.text))
    for session_id, sizes in sorted(found.items()):
        yield Part(Section(session_id, 0, 0, held=len(sizes)), sum(sizes), reason=_NAMELESS)


def _as_artifact(path: str, kind: Kind, parts: Sequence[Part]) -> OwnTable:
    sections = tuple(
        msgspec.structs.replace(part.section, offset=number) for number, part in enumerate(parts)
    )
    artifact = Artifact(
        path=path,
        kind=kind,
        size=sum(part.size for part in parts),
        modified_at=max(section.last_at or 0.0 for section in sections),
        sha256="",
        sections=sections,
    )
    doubts = tuple(
        Attribution(artifact, section, None, part.candidates, part.reason)
        for part, section in zip(parts, sections, strict=True)
        if not section.session_id
    )
    return OwnTable(artifact, doubts)
