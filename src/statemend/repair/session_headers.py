"""What exports say of a session itself, not of its messages: the columns of its row at that time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from statemend.errors import Undetermined
from statemend.formats import files, lenientjson
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.formats.clock import epoch_of_iso
from statemend.formats.markdown_document import Document
from statemend.repair.plan import Source

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

#: Parts of artifacts, as ``Inventory.by_session`` gives them.
Sections = Iterable[tuple[Artifact, Section]]


class Header(msgspec.Struct, frozen=True):
    """One export's account of a session row. ``values`` are columns as the export has them, ``whole`` is
    whether it has every column of the release that wrote it."""

    artifact: Artifact
    section: Section
    values: Mapping[str, Any]
    whole: bool

    def source(self, column: str) -> Source:
        """Where a value of this header comes from."""
        return Source(
            column=column,
            origin="the session as it was exported" if self.whole else "the front matter of an export",
            artifact=self.artifact.path,
            locator=f"byte {self.section.offset}",
            digest=self.artifact.sha256,
        )


def header_of(session_id: str, named: Sections) -> Header | None:
    """The best account of a session among the exports: a whole one before a short one, the newest first.

    An export that cannot be read any more, or was altered since it was written, is none.
    """
    return min(headers_of(session_id, named), key=_rank, default=None)


def _rank(header: Header) -> tuple[bool, float, str]:
    written = header.section.exported_at or header.artifact.modified_at
    return not header.whole, -written, header.artifact.path


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
        if values:
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
    fields = Document.load(Path(artifact.path)).fields
    found: dict[str, Any] = {}
    for field, column in _FRONT_MATTER.items():
        value = fields.get(field)
        value = epoch_of_iso(value) if column in _TIMES else value
        if value not in (None, ""):
            found[column] = int(value) if isinstance(value, bool) else value
    return found
