"""How far the artifacts beside a store cover the history of each session.

One session at a time: its rows are compared with every artifact that names it, by content, and what no
artifact holds is left over. Memory is bounded by one session and one artifact section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from statemend import formats
from statemend.evidence import lenses, memory, zones
from statemend.evidence.causes import Cause, Compactions, Missing, Scope, missing_messages, scope_of
from statemend.evidence.drops import dropped_fields
from statemend.evidence.inventory import Inventory
from statemend.evidence.match_markdown import match_markdown
from statemend.evidence.match_save import match_save
from statemend.evidence.matching import add_known, match
from statemend.evidence.prompt_blocks import prompt_records
from statemend.evidence.remains import Remains, remains_of
from statemend.evidence.rows import Fidelity, SessionRows, Tally
from statemend.formats import desktop_json, html, jsonl, prompts, save_markdown
from statemend.formats.artifact import FILTERED, IN_MEMORY, Artifact, Kind, Record, Section
from statemend.formats.files import chunk
from statemend.formats.markdown import Document
from statemend.formats.prompts import prompt_text
from statemend.store.connection import Store

__all__ = [
    "ArtifactCoverage",
    "Cause",
    "Missing",
    "Remains",
    "Scope",
    "SessionCoverage",
    "assess",
    "assess_session",
]

Progress = Callable[[str], None]


class ArtifactCoverage(msgspec.Struct, frozen=True):
    """One artifact against the display view of one session.

    ``exact``, ``lossy`` and ``masked`` count logical messages held with every column, without some
    (``drops`` names them), and with secrets masked. ``changed`` are those shown with another text than
    the store has; ``missing`` those not shown although the format would show them. Both name the row that
    a display shows. ``extra`` counts records that the store does not have, ``rewound`` records of rows
    that a display hides (undone, superseded, or for the model only), ``records`` all that were found,
    ``declared`` how many the artifact says it holds. ``cut`` says that it ends before its end. ``reason``
    says how ``scope`` is known."""

    artifact: str
    kind: Kind
    session_id: str
    scope: Scope
    reason: str
    exact: int
    lossy: int
    masked: int
    changed: tuple[int, ...]
    missing: tuple[Missing, ...]
    extra: int
    drops: tuple[str, ...]
    rewound: int = 0
    records: int = 0
    declared: int | None = None
    cut: bool = False


class SessionCoverage(msgspec.Struct, frozen=True):
    """One session against all artifacts that name it.

    ``present`` is false for a session of which the store has neither its row nor a message: ``remains``
    then says what the artifacts tell of it. ``display`` counts logical messages, ``archived`` those of
    them that only archived rows hold. ``unheld`` are the messages (by the row a display shows) whose text
    no artifact holds, not even masked; bookkeeping rows that a format lawfully leaves out are not among
    them."""

    session_id: str
    present: bool
    display: int
    archived: int
    artifacts: tuple[ArtifactCoverage, ...]
    unheld: tuple[int, ...]
    remains: tuple[Remains, ...] = ()


def assess(store: Store, inventory: Inventory, progress: Progress | None = None) -> Iterator[SessionCoverage]:
    """The coverage of every session that an artifact names, ordered by session id.

    Raises ``StoreUnreadable`` when the store, ``Undetermined`` when an artifact cannot be read.
    """
    by_session = inventory.by_session()
    assessor = _Assessor(store)
    for number, session_id in enumerate(sorted(by_session), start=1):
        if progress is not None:
            progress(f"comparing session {number} of {len(by_session)} with its exports")
        yield assessor.session(session_id, by_session[session_id])


def assess_session(store: Store, inventory: Inventory, session_id: str) -> SessionCoverage:
    """The coverage of one session; without artifacts when none names it."""
    return _Assessor(store).session(session_id, inventory.by_session().get(session_id, []))


class _Assessor:
    """Compares sessions with artifacts; remembers of each page the zone that its clock ran in."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._started: dict[str, Any] = dict(store.rows("SELECT id, started_at FROM sessions"))
        self._zones: dict[str, zones.Zone] = {}

    def session(self, session_id: str, artifacts: Sequence[tuple[Artifact, Section]]) -> SessionCoverage:
        rows = SessionRows.load(self._store, session_id)
        present = bool(rows.rows) or session_id in self._started
        covered: list[ArtifactCoverage] = []
        held: set[int] = set()
        for artifact, section in artifacts if present else ():
            tally = self._tally(rows, artifact, section)
            coverage, places = _summarise(rows, tally, artifact, section)
            covered.append(coverage)
            held.update(places)
        return SessionCoverage(
            session_id=session_id,
            present=present,
            display=len(rows.logical),
            archived=sum(each.archived for each in rows.logical),
            artifacts=tuple(covered),
            unheld=tuple(each.shown for place, each in enumerate(rows.logical) if place not in held),
            remains=() if present else tuple(remains_of(*each, session_id) for each in artifacts),
        )

    def _tally(self, rows: SessionRows, artifact: Artifact, section: Section) -> Tally:
        path = Path(artifact.path)
        if artifact.kind in (Kind.MARKDOWN, Kind.QMD):
            return match_markdown(rows, Document.load(path))
        if artifact.kind is Kind.JSONL:
            records = jsonl.records(path, section)
            return match(rows, _of_session(records, rows.session_id, section), lenses.JSONL)
        if artifact.kind is Kind.DESKTOP_JSON:
            own = match(rows, desktop_json.records(path, section), lenses.JSONL)
            return add_known(own, rows, desktop_json.carried(path, section), lenses.JSONL)
        if artifact.kind in IN_MEMORY:
            return match(rows, formats.records(path, artifact, section), memory.lens(artifact.kind))
        if artifact.kind is Kind.SAVE_MARKDOWN:
            return match_save(rows, *save_markdown.text_of(path, section))
        if artifact.kind is Kind.PROMPTS_JSONL:
            return match(rows, prompts.records(path, section), lenses.PROMPTS)
        if artifact.kind is Kind.PROMPTS_MARKDOWN:
            texts = {row.id: prompt_text(row.content) for row in rows.rows if row.role == "user"}
            data = chunk(path, section.offset, section.length)
            return match(rows, prompt_records(data, texts), lenses.PROMPTS)
        return self._page(rows, artifact, section)

    def _page(self, rows: SessionRows, artifact: Artifact, section: Section) -> Tally:
        records = list(html.records(Path(artifact.path), section))
        known = self._zones.get(artifact.path)
        if known is not None:
            tally = match(rows, records, lenses.html(known))
            if not tally.extra and not tally.changed:
                return tally
        zone = lenses.page_zone(rows, records, section.clock, self._started.get(rows.session_id))
        if zone.offsets:
            self._zones[artifact.path] = zone
        return match(rows, records, lenses.html(zone if zone.offsets else known or zone))


def _of_session(records: Iterable[Record], session_id: str, section: Section) -> Iterator[Record]:
    """The records of one session; those of a lineage name the segment that each belongs to."""
    for record in records:
        owner = (record.row or {}).get("session_id")
        if not section.lineage or owner is None or owner == session_id:
            yield record


def _summarise(
    rows: SessionRows, tally: Tally, artifact: Artifact, section: Section
) -> tuple[ArtifactCoverage, set[int]]:
    """The coverage, and the places of the logical messages that need no other artifact."""
    fidelities, copied = _held_places(rows, tally)
    changed = {rows.place[row_id] for row_id in tally.changed if row_id in rows.place} - fidelities.keys()
    hidden = {place for place in range(len(rows.logical)) if not _is_shown(rows, place, artifact.kind)}
    lost = [
        place
        for place in range(len(rows.logical))
        if place not in fidelities and place not in changed and place not in hidden
    ]
    cut = tally.cut or section.damage is not None
    compactions = Compactions(rows, tally, section.exported_at)
    missing = missing_messages(rows, tally, lost, compactions, artifact.kind, cut=cut)
    scope, reason = scope_of(rows, tally, missing, compactions, artifact.kind, section)
    counts = [0, 0, 0, 0]
    for fidelity in fidelities.values():
        counts[fidelity] += 1
    coverage = ArtifactCoverage(
        artifact=artifact.path,
        kind=artifact.kind,
        session_id=rows.session_id,
        scope=scope,
        reason=reason,
        exact=counts[Fidelity.EXACT],
        lossy=counts[Fidelity.LOSSY],
        masked=counts[Fidelity.MASKED],
        changed=tuple(rows.logical[place].shown for place in sorted(changed)),
        missing=missing,
        extra=tally.extra,
        drops=dropped_fields(rows, tally, artifact.kind, copied=copied),
        rewound=sum(row_id not in rows.place for row_id in tally.held),
        records=tally.records,
        declared=section.declared,
        cut=cut,
    )
    return coverage, fidelities.keys() | _bookkeeping(rows, hidden, artifact.kind)


def _bookkeeping(rows: SessionRows, hidden: set[int], kind: Kind) -> set[int]:
    """The places of what a transcript leaves out lawfully, because it is no message of the conversation."""
    if kind in FILTERED:
        return set()
    return {place for place in hidden if rows.by_id[rows.logical[place].shown].role == lenses.BOOKKEEPING}


def _held_places(rows: SessionRows, tally: Tally) -> tuple[dict[int, Fidelity], bool]:
    """How well each logical message is held by any of its rows, and whether some are only by a copy of
    their row that compaction made under a new time."""
    fidelities: dict[int, Fidelity] = {}
    for row_id, fidelity in tally.held.items():
        place = rows.place.get(row_id)
        if place is not None:
            fidelities[place] = max(fidelity, fidelities.get(place, fidelity))
    copied: dict[int, Fidelity] = {}
    if len(fidelities) < len(rows.logical):
        for row_id, family in rows.copies.items():
            place = rows.place.get(row_id)
            found = [tally.held[each] for each in family if each in tally.held]
            if place is not None and place not in fidelities and found:
                copied[place] = min(Fidelity.LOSSY, max(found))
    return fidelities | copied, bool(copied)


def _is_shown(rows: SessionRows, place: int, kind: Kind) -> bool:
    """Whether the format shows a message of this role at all."""
    role = rows.by_id[rows.logical[place].shown].role
    if kind in FILTERED:
        return role == "user"
    return role not in _UNSHOWN.get(kind, _NEVER if kind in IN_MEMORY else ())


#: The roles that formats do not show.
_NEVER = (lenses.BOOKKEEPING, "system")
_UNSHOWN = {Kind.HTML: (lenses.BOOKKEEPING,), Kind.SAVE_MARKDOWN: (save_markdown.HIDDEN_ROLE,)}
