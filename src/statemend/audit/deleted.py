"""What the artifacts of a deleted session prove: whether they are whole, and where what is missing was.

An in-place compaction leaves the older turns in the session as archived rows; an export of the live rows then
begins with the summary. A session that was begun by a rotating compression begins with a summary too, and is
whole: its older turns belong to another session. The two are told apart here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from statemend import formats
from statemend.audit.context import Context
from statemend.audit.facts import is_time
from statemend.audit.handoff import stem
from statemend.evidence.coverage import Remains, SessionCoverage
from statemend.formats import files, lenientjson, markdown
from statemend.formats.artifact import IN_MEMORY, Artifact, Kind, Record, Section
from statemend.formats.clock import epoch_if_utc, epoch_of_iso, finite
from statemend.store.content import plain_text

#: Compaction keeps so many first messages before the summary.
KEPT_HEAD = 3
#: A session that is this much (seconds) older than the summary it shows was not begun with it.
OLDER_THAN_SUMMARY = 60.0
#: A rotated session starts this close (seconds) to the end of the one that it continues.
ROTATION_WINDOW = 120.0
#: Some formats cut times to the second.
_SECOND = 1.0
#: So many messages on either side of a compaction are compared.
_SEAM = 12
#: So many row ids of one artifact are held against the store.
_MOST_ROWS = 100

#: Where only an in-place compaction replaces turns by a summary. The gateway of older releases, and editors
#: that rewrite a whole session, had other ways.
_ONLY_IN_PLACE = frozenset({"cli", "tui", "desktop", "subagent", "cron"})

#: Only these formats show where one segment of a lineage ends and the next begins.
_SEGMENTED = (Kind.MARKDOWN, Kind.QMD)

_NO_WITNESS = frozenset({Kind.REQUEST_DUMP, Kind.PENDING, Kind.RESCUE_JSONL, Kind.RESPONSES})

COMPRESSION_ENDS = "SELECT id, ended_at FROM sessions WHERE end_reason = 'compression'"


class Witness(msgspec.Struct, frozen=True):
    """One artifact of a deleted session, and what it shows around the first summary.

    Times are epoch seconds, or wall time of one unknown zone. ``inside``: a message behind the summary is
    older than it and not older than the session, so it was in this session before. ``carried``: a message is
    older than the session itself. ``archives`` is false when the release that wrote the file knew no archived
    rows. ``follows``: the file says that the session continues another. ``seam`` are messages as role and
    text: the first ones behind the summary, or, in a file without one, the last ones. ``row_ids`` are the
    first ones that the file says its messages had.
    """

    remains: Remains
    title: str | None
    summary_at: float | None
    inside: bool
    carried: bool
    archives: bool
    follows: bool
    fields: dict[str, Any]
    seam: frozenset[tuple[str, str]]
    row_ids: tuple[int, ...]

    @property
    def whole(self) -> bool:
        """Whether the artifact shows archived messages: rows marked so, more messages than were live, or more
        before the summary than compaction keeps."""
        remains = self.remains
        if remains.filtered or remains.damage is not None or remains.kind in IN_MEMORY:
            return False
        return _shows_archive(remains) or (remains.first_summary or 0) > KEPT_HEAD

    @property
    def live_only(self) -> bool:
        """Whether the artifact shows only the live rows of a session that begins with a summary. What was
        written from memory tells nothing of rows."""
        remains = self.remains
        if (
            remains.kind in IN_MEMORY
            or remains.first_summary is None
            or not self.archives
            or _shows_archive(remains)
        ):
            return False
        return remains.first_summary <= (0 if remains.filtered else KEPT_HEAD)

    @property
    def older(self) -> bool:
        """Whether the session is older than its summary by more than beginning it takes."""
        started_at = self.remains.started_at
        if self.summary_at is None or started_at is None:
            return False
        return self.summary_at - started_at >= OLDER_THAN_SUMMARY

    @property
    def only_in_place(self) -> bool:
        """Whether nothing but an in-place compaction can have put a summary into an older session."""
        return self.fields.get("source") in _ONLY_IN_PLACE


def witnesses(context: Context, session: SessionCoverage) -> Iterator[Witness]:
    """What each artifact of a deleted session shows, in the order of ``session.remains``."""
    named = [
        (artifact, section)
        for artifact, section in context.inventory.sections()
        if session.session_id in (section.session_id, *section.lineage)
    ]
    for (artifact, section), remains in zip(named, session.remains, strict=True):
        if session.session_id != section.session_id and artifact.kind not in _SEGMENTED:
            continue
        yield _witness(artifact, section, session.session_id, remains)


def is_from_before(witness: Witness) -> bool:
    """Whether an artifact shows the session as it was before any compaction. One of the user's prompts cannot
    tell: a summary may stand in the assistant's name. Neither can a request that may be masked, nor what was
    pending."""
    remains = witness.remains
    return remains.first_summary is None and not remains.filtered and remains.kind not in _NO_WITNESS


def joins(before: Witness, after: Witness) -> bool:
    """Whether an artifact from before the compaction reaches as far as one from after it begins."""
    return not before.seam.isdisjoint(after.seam)


class End(NamedTuple):
    """When a session ended by compression (epoch seconds). ``title`` is that of a session of which only a
    Markdown export is left: that does not say why it ended, so the titles have to fit. ``continued``: the
    store has its continuation."""

    at: float
    title: str | None = None
    sure: bool = True
    continued: bool = False


def compression_ends(context: Context) -> list[End]:
    """The ends by compression in the store, and those that exports of deleted sessions tell of."""
    ends = [
        End(at, continued=bool(context.graph.continuations(session_id)))
        for session_id, at in context.store.rows(COMPRESSION_ENDS)
        if is_time(at)
    ]
    present = {session.session_id for session in context.coverage if session.present}
    for artifact, section in context.inventory.sections():
        if section.session_id in present:
            continue
        fields = _fields(artifact, section)
        ended_at = fields.get("ended_at")
        at = epoch_of_iso(ended_at) if isinstance(ended_at, str) else finite(ended_at)
        if at is not None and fields.get("end_reason", "compression") == "compression":
            ends.append(End(at, section.title, "end_reason" in fields))
    return ends


def rotated(witness: Witness, ends: Sequence[End]) -> bool:
    """Whether the session was begun by a compression: it says so, holds older messages than itself, or starts
    where another session was ended by compression that lacks its continuation."""
    return witness.follows or witness.carried or starts_at_one(witness, [e for e in ends if not e.continued])


def starts_at_one(witness: Witness, ends: Iterable[End]) -> bool:
    """Whether the session starts where one of these was ended."""
    started_at = witness.remains.started_at
    return started_at is not None and any(
        abs(end.at - started_at) <= ROTATION_WINDOW and (end.sure or _titles_fit(end.title, witness.title))
        for end in ends
    )


def _titles_fit(before: str | None, after: str | None) -> bool:
    return not before or not after or stem(before)[0] == stem(after)[0]


def _shows_archive(remains: Remains) -> bool:
    declared, source = remains.declared, remains.source_count
    return bool(remains.inactive) or (declared is not None and source is not None and declared > source)


def _witness(artifact: Artifact, section: Section, session_id: str, remains: Remains) -> Witness:
    own = session_id == section.session_id
    started_at = remains.started_at if own else None
    summary_at: float | None = None
    inside = carried = False
    archives = True
    seam: list[Record] = []
    row_ids: list[int] = []
    for record in _records(artifact, section, session_id):
        if record.row_id is not None and len(row_ids) < _MOST_ROWS:
            row_ids.append(record.row_id)
        if artifact.kind in (Kind.JSONL, Kind.DESKTOP_JSON) and record.row is not None:
            archives &= "compacted" in record.row
        at = record.timestamp if record.clock is None else epoch_if_utc(record.clock)
        if record.position == remains.first_summary:
            summary_at = at
            seam.clear()
            continue
        if remains.first_summary is None or len(seam) < _SEAM:
            seam.append(record)
        if at is not None and started_at is not None:
            carried |= at < started_at - _SECOND
            inside |= summary_at is not None and started_at <= at < summary_at - _SECOND
    return Witness(
        remains=msgspec.structs.replace(remains, started_at=started_at),
        title=section.title if own else None,
        summary_at=summary_at,
        inside=inside,
        carried=carried,
        archives=archives,
        follows=section.parent_id is not None or session_id in section.lineage[1:],
        fields=_fields(artifact, section) if own else {},
        seam=_texts(seam[-_SEAM:]),
        row_ids=tuple(row_ids),
    )


def _texts(records: Sequence[Record]) -> frozenset[tuple[str, str]]:
    texts = ((record.role, plain_text(record.content).strip()) for record in records)
    return frozenset((role, text) for role, text in texts if text)


def _records(artifact: Artifact, section: Section, session_id: str) -> Iterator[Record]:
    if artifact.kind in _SEGMENTED:
        return markdown.records(Path(artifact.path), section, session_id)
    return formats.records(Path(artifact.path), artifact, section)


def _fields(artifact: Artifact, section: Section) -> dict[str, Any]:
    """What the artifact says of the session itself: its columns or its front matter; nothing where the format
    has neither."""
    path = Path(artifact.path)
    if artifact.kind in _SEGMENTED:
        head = files.chunk(path, section.offset, min(section.length, files.HEAD_BYTES))
        return dict(markdown.Document(head).fields)
    if artifact.kind is not Kind.JSONL:
        return {}
    try:
        session = lenientjson.loads(files.chunk(path, section.offset, section.length))
    except lenientjson.UnreadableJsonError:
        return {}
    return (
        {key: value for key, value in session.items() if key != "messages"}
        if isinstance(session, dict)
        else {}
    )
