"""What an artifact tells of a session that the store no longer has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from statemend import formats
from statemend.evidence.wording import looks_redacted
from statemend.formats import markdown
from statemend.formats.artifact import FILTERED, Artifact, Kind, Record, Section
from statemend.formats.clock import epoch_if_utc
from statemend.store.content import is_summary_text


class Remains(msgspec.Struct, frozen=True):
    """One artifact of a session that is gone: what it holds, and what it says of the whole.

    ``records`` is how many messages it shows, ``declared`` how many it says it holds, ``source_count`` how
    many it says were live. ``first_summary`` is the position of the first compaction summary, ``inactive``
    counts records shown as no longer live. ``started_at`` and ``first_message_at`` are epoch seconds; on an
    HTML page both are wall time of one unknown zone. ``filtered``: it leaves messages out by intent;
    ``redacted`` counts messages whose text looks as if secrets had been masked.
    """

    artifact: str
    kind: Kind
    records: int
    declared: int | None
    source_count: int | None
    exported_at: float | None
    started_at: float | None
    first_message_at: float | None
    first_summary: int | None
    inactive: int
    filtered: bool
    damage: str | None
    redacted: int = 0


def remains_of(artifact: Artifact, section: Section, session_id: str) -> Remains:
    """Read what ``artifact`` still has of a session. Raises ``Undetermined``."""
    count = inactive = redacted = 0
    first_summary: int | None = None
    first_message_at: float | None = None
    for record in _records(artifact, section, session_id):
        time = record.timestamp if record.clock is None else epoch_if_utc(record.clock)
        if count == 0:
            first_message_at = time
        if first_summary is None and (record.summary or is_summary_text(record.content)):
            first_summary = count
        inactive += record.active == 0
        redacted += looks_redacted(record)
        count += 1
    started_at = section.started_at if section.clock is None else epoch_if_utc(section.clock)
    return Remains(
        artifact=artifact.path,
        kind=artifact.kind,
        records=count,
        declared=section.declared,
        source_count=section.source_count,
        exported_at=section.exported_at,
        started_at=started_at,
        first_message_at=first_message_at,
        first_summary=first_summary,
        inactive=inactive,
        filtered=artifact.kind in FILTERED,
        damage=section.damage or artifact.damage,
        redacted=redacted,
    )


def remains_in_store(artifact: Artifact, section: Section) -> Remains:
    """What another store has of a session, as its section tells. No row is read for it, so ``first_summary``
    is not known."""
    return Remains(
        artifact=artifact.path,
        kind=artifact.kind,
        records=section.held or 0,
        declared=None,
        source_count=section.source_count,
        exported_at=None,
        started_at=section.started_at,
        first_message_at=section.first_at,
        first_summary=None,
        inactive=section.inactive or 0,
        filtered=False,
        damage=section.damage or artifact.damage,
    )


def _records(artifact: Artifact, section: Section, session_id: str) -> Iterator[Record]:
    path = Path(artifact.path)
    if artifact.kind in (Kind.MARKDOWN, Kind.QMD):
        return markdown.records(path, section, session_id)
    return formats.records(path, artifact, section)
