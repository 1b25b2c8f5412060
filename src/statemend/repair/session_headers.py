"""What exports and other stores say of a session itself: the columns of its row at that time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from statemend.errors import StatemendError, Undetermined
from statemend.formats import files, lenientjson, stores
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.formats.clock import epoch_of_iso
from statemend.formats.markdown_document import Document
from statemend.repair.plan import Source
from statemend.repair.recipe import RecipeContext
from statemend.store.records import session_record

#: Fields of a Markdown or QMD front matter, and the columns that they were written from.
_FRONT_MATTER = {
    "title": "title",
    "source": "source",
    "created_at": "started_at",
    "ended_at": "ended_at",
    "model": "model",
    "cwd": "cwd",
    "archived": "archived",
}
_TIMES = frozenset({"started_at", "ended_at"})
#: Columns that change while a session lives: the newest account of them is right, not the best one.
_CHANGING = frozenset({"title", "ended_at", "end_reason", "model", "cwd", "archived"})

#: Whether the store has the row of a session, and not one that was made in passing.
_HAS_ROW = "SELECT 1 FROM sessions WHERE id = ? AND source NOT IN ('unknown', 'recovered')"

#: Parts of artifacts, as ``Inventory.by_session`` gives them.
Sections = Iterable[tuple[Artifact, Section]]


class Header(msgspec.Struct, frozen=True):
    """One account of a session row. ``values`` are columns as an export has them, ``whole`` is whether it has
    every column of the release that wrote it. ``newer`` are the accounts from which it took columns that
    change."""

    artifact: Artifact
    section: Section
    values: Mapping[str, Any]
    whole: bool
    newer: Mapping[str, Header] = {}

    @property
    def written_at(self) -> float:
        """Epoch seconds."""
        return self.section.exported_at or self.artifact.modified_at

    def source(self, column: str) -> Source:
        """Where a value of this header comes from."""
        if column in self.newer:
            return self.newer[column].source(column)
        if self.artifact.kind is Kind.STORE:
            return Source(
                column=column,
                origin="the session as another store has it",
                artifact=self.artifact.path,
                locator=f"sessions {self.section.session_id}",
                digest=self.artifact.sha256 or None,
            )
        return Source(
            column=column,
            origin="the session as it was exported" if self.whole else "the front matter of an export",
            artifact=self.artifact.path,
            locator=f"byte {self.section.offset}",
            digest=self.artifact.sha256,
        )


def account_of(context: RecipeContext, session_id: str) -> Header | None:
    """:func:`header_of` a session that the plan may make a row for."""

    def gather() -> dict[str, list[Header]]:
        named = {finding.subject.session for finding in context.findings} | context.asked
        lost = [each for each in named if each is not None and not context.store.value(_HAS_ROW, (each,))]
        return headers_in_stores(context.inventory.stores, sorted(lost))

    stored: dict[str, list[Header]] = context.once("headers in stores", gather)
    return header_of(session_id, context.sections_of(session_id), stored.get(session_id, ()))


def header_of(session_id: str, named: Sections, stored: Iterable[Header] = ()) -> Header | None:
    """The best account of a session among the exports and those that other stores have: a whole one before a
    short one, the newest first. What changes while a session lives is as the newest of all has it.

    An export that cannot be read any more, or was altered since it was written, is none.
    """
    found = sorted((*headers_of(session_id, named), *stored), key=_rank)
    if not found:
        return None
    best, values = found[0], dict(found[0].values)
    newer: dict[str, Header] = {}
    for header in sorted(found[1:], key=lambda each: each.written_at):
        for column in _CHANGING & header.values.keys() if header.written_at > best.written_at else ():
            values[column], newer[column] = header.values[column], header
    return msgspec.structs.replace(best, values=values, newer=newer)


def _rank(header: Header) -> tuple[bool, float, str]:
    return not header.whole, -header.written_at, header.artifact.path


def headers_in_stores(stored: Sequence[Artifact], session_ids: Collection[str]) -> dict[str, list[Header]]:
    """The rows that other stores have of these sessions; each store is opened once. One that cannot be read
    any more tells nothing."""
    found: dict[str, list[Header]] = {}
    for artifact in stored if session_ids else ():
        if artifact.damage is not None or artifact.kind is not Kind.STORE:
            continue
        try:
            with stores.opened(Path(artifact.path)) as store:
                for session_id in session_ids:
                    row = session_record(store, session_id)
                    if row is not None:
                        section = Section(session_id=session_id, offset=0, length=0)
                        found.setdefault(session_id, []).append(Header(artifact, section, row, whole=True))
        except StatemendError:
            continue
    return found


def headers_of(session_id: str, named: Sections) -> Iterator[Header]:
    """Every account of a session among ``named``, the sections that name it."""
    for artifact, section in named:
        try:
            if artifact.kind is Kind.JSONL:
                values = _of_object(artifact, section, session_id)
            elif artifact.kind in (Kind.MARKDOWN, Kind.QMD) and artifact.damage is None:
                values = _of_front_matter(artifact, section, session_id)
            else:
                continue
        except Undetermined:
            continue
        if any(value is not None for value in values.values()):
            yield Header(artifact, section, values, whole=artifact.kind is Kind.JSONL)


def _of_object(artifact: Artifact, section: Section, session_id: str) -> dict[str, Any]:
    """The members of a session object; of a lineage, those of the segment with that id."""
    data = files.chunk(Path(artifact.path), section.offset, section.length)
    try:
        session = lenientjson.loads(data)
    except lenientjson.UnreadableJsonError:
        session = lenientjson.complete_members(data, "messages")
    if not isinstance(session, dict):
        return {}
    segments = session.get("segments")
    for one in (*(segments if isinstance(segments, list) else ()), session):
        if isinstance(one, dict) and one.get("id") == session_id:
            return {name: value for name, value in one.items() if name not in ("messages", "segments")}
    return {}


def _of_front_matter(artifact: Artifact, section: Section, session_id: str) -> dict[str, Any]:
    if section.session_id != session_id:
        return {}
    fields = Document.load(Path(artifact.path), section).fields
    found: dict[str, Any] = {}
    for field, column in _FRONT_MATTER.items():
        if field in fields:
            value = epoch_of_iso(fields[field]) if column in _TIMES else fields[field]
            found[column] = int(value) if isinstance(value, bool) else value or None
    return found
