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
from statemend.evidence.attribution import attribute
from statemend.evidence.causes import Cause, Compactions, Missing, Scope, missing_messages, scope_of
from statemend.evidence.drops import dropped_fields
from statemend.evidence.inventory import Inventory
from statemend.evidence.match_markdown import match_markdown
from statemend.evidence.match_save import match_save
from statemend.evidence.match_store import OtherStores
from statemend.evidence.matching import add_known, match
from statemend.evidence.other_stores import is_passing
from statemend.evidence.prompt_blocks import prompt_records
from statemend.evidence.remains import Remains, remains_in_store, remains_of
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
    them.

    ``copies`` are other stores that have rows of the session, compared where the audited one lacks some or
    no artifact holds all that was archived; ``elsewhere`` is what they still have of one that is gone. A
    store that Hermes deletes in its turn preserves nothing: what only such a store has is ``unheld``."""

    session_id: str
    present: bool
    display: int
    archived: int
    artifacts: tuple[ArtifactCoverage, ...]
    unheld: tuple[int, ...]
    remains: tuple[Remains, ...] = ()
    copies: tuple[ArtifactCoverage, ...] = ()
    elsewhere: tuple[Remains, ...] = ()


def assess(store: Store, inventory: Inventory, progress: Progress | None = None) -> Iterator[SessionCoverage]:
    """The coverage of every session that an artifact names, or of which another store has rows that this one
    lacks, ordered by session id.

    Raises ``StoreUnreadable`` when the store, ``Undetermined`` when an artifact cannot be read.
    """
    by_session, others = _named(store, inventory), inventory.stores_by_session()
    named = sorted(by_session.keys() | others.keys())
    with _Assessor(store, inventory) as assessor:
        for number, session_id in enumerate(named, start=1):
            if progress is not None:
                progress(f"comparing session {number} of {len(named)} with its exports")
            yield assessor.session(session_id, by_session.get(session_id, ()), others.get(session_id, ()))


def assess_session(store: Store, inventory: Inventory, session_id: str) -> SessionCoverage:
    """The coverage of one session; without artifacts when none names it."""
    by_session, others = _named(store, inventory), inventory.stores_by_session()
    with _Assessor(store, inventory) as assessor:
        return assessor.session(session_id, by_session.get(session_id, ()), others.get(session_id, ()))


def assess_unnamed(
    store: Store, inventory: Inventory, session_ids: Iterable[str]
) -> Iterator[SessionCoverage]:
    """The coverage of sessions that no artifact names: other stores may have them all the same."""
    with _Assessor(store, inventory) as assessor:
        for session_id in session_ids:
            yield assessor.session(session_id, (), ())


def _named(store: Store, inventory: Inventory) -> dict[str, list[tuple[Artifact, Section]]]:
    """The sections of each session: those that name it, and those that name none and were found to be its."""
    found = inventory.by_session()
    for each in attribute(store, inventory):
        if each.session_id is not None:
            found.setdefault(each.session_id, []).append((each.artifact, each.section))
    return found


class _Assessor:
    """Compares sessions with artifacts; remembers of each page the zone that its clock ran in."""

    def __init__(self, store: Store, inventory: Inventory) -> None:
        self._store = store
        self._started: dict[str, Any] = dict(store.rows("SELECT id, started_at FROM sessions"))
        self._zones: dict[str, zones.Zone] = {}
        self._root = Path(inventory.home.root)
        # What lasts comes first: where it has everything, nothing else need be opened.
        lasting = sorted(inventory.stores, key=lambda other: is_passing(self._root, other.path))
        self._others = OtherStores(lasting, deep=inventory.deep)

    def __enter__(self) -> _Assessor:
        return self

    def __exit__(self, *_: object) -> None:
        self._others.close()

    def session(
        self,
        session_id: str,
        artifacts: Sequence[tuple[Artifact, Section]],
        others: Sequence[tuple[Artifact, Section]],
    ) -> SessionCoverage:
        rows = SessionRows.load(self._store, session_id)
        present = bool(rows.rows) or session_id in self._started
        covered: list[ArtifactCoverage] = []
        held: set[int] = set()
        for artifact, section in artifacts if present else ():
            tally = self._tally(rows, artifact, section)
            coverage, places = _summarise(rows, tally, artifact, section)
            covered.append(coverage)
            held.update(places)
        copies: list[ArtifactCoverage] = []
        wanted = [place for place, each in enumerate(rows.logical) if each.archived and place not in held]
        for artifact, section, tally in self._others.compare(rows, others, wanted) if present else ():
            coverage, places = _summarise(rows, tally, artifact, section)
            copies.append(coverage)
            if not is_passing(self._root, artifact.path):
                held.update(places)
        return SessionCoverage(
            session_id=session_id,
            present=present,
            display=len(rows.logical),
            archived=sum(each.archived for each in rows.logical),
            artifacts=tuple(covered),
            unheld=tuple(each.shown for place, each in enumerate(rows.logical) if place not in held),
            remains=() if present else tuple(remains_of(*each, session_id) for each in artifacts),
            copies=tuple(copies),
            elsewhere=() if present else tuple(remains_in_store(*each) for each in others),
        )

    def _tally(self, rows: SessionRows, artifact: Artifact, section: Section) -> Tally:
        path = Path(artifact.path)
        if artifact.kind in (Kind.MARKDOWN, Kind.QMD):
            return match_markdown(rows, Document.load(path, section))
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
    if not section.session_id:
        reason = f"{reason}; it names no session, and its texts are those of this one"
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
