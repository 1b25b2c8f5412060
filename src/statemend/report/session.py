"""One session as data, ``statemend/session/v1``: its rows, its place in a family, and the files that hold
it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from statemend.audit import candidates
from statemend.audit.eras import RELEASES
from statemend.errors import UsageError
from statemend.evidence.beyond import Fate, beyond
from statemend.evidence.coverage import SessionCoverage, assess_session
from statemend.evidence.inventory import Inventory
from statemend.evidence.own_tables import own_tables, records
from statemend.evidence.salvage import Fidelity, salvage
from statemend.formats.artifact import Kind
from statemend.report.build import holdings
from statemend.report.content import shown
from statemend.report.model import FamilyEdge, FamilyNode, Holding
from statemend.report.text import iso, listed, words
from statemend.store.connection import Store
from statemend.store.history import View, census, display, messages, session_record
from statemend.store.lineage import Graph
from statemend.store.schema import Era

SCHEMA: Literal["statemend/session/v1"] = "statemend/session/v1"
_MOST_CANDIDATES = 8


class Views(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages each view of the session shows, and its rows by state."""

    raw: int
    active: int
    display: int
    live: int
    archived: int
    rewound: int
    unset: int


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """Where the session stands. ``export`` and ``resume`` are what 0.22.2 picks (for a store from before
    0.18: what its own release does); a delete of this session would take ``deleted`` and cut ``detached``
    off. ``by_release`` says in words what other releases pick and take."""

    parent: FamilyEdge | None
    children: tuple[FamilyEdge, ...]
    export: tuple[str, ...] | None
    resume: str
    deleted: tuple[str, ...]
    detached: tuple[str, ...]
    by_release: tuple[str, ...] = ()


class SalvageSource(msgspec.Struct, frozen=True, kw_only=True):
    """A file (or the store) that shows messages of a session that is gone: how many, how many of them another
    shows too, and of how many it is the best source. One that shares none with any other may be of another
    store."""

    artifact: str
    kind: str
    records: int
    shared: int
    best: int


class SalvageGap(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that were in the session and that nothing here holds: how that is known (``cut``,
    ``compacted``, ``filtered``), what tells it, at least how many (``null``: not told), and between which
    times."""

    lack: str
    artifact: str
    count: int | None
    first_at: str | None
    last_at: str | None


class Salvaged(msgspec.Struct, frozen=True, kw_only=True):
    """What could be restored of a session that is gone: its messages by how well they survive, and what is
    surely lost. ``suspect`` look redacted, ``cut`` are incomplete; ``conflicts`` counts messages on which
    sources disagree, ``lost`` those surely lost, at least."""

    messages: int
    exact: int
    lossy: int
    masked: int
    suspect: int
    cut: int
    conflicts: int
    lost: int
    first_at: str | None
    last_at: str | None
    sources: tuple[SalvageSource, ...]
    gaps: tuple[SalvageGap, ...]


class OwnTrace(msgspec.Struct, frozen=True, kw_only=True):
    """What a table of the store tells of the session beside its messages: how many ``texts`` it has (none for
    a route), between which times, the ``chat`` that it names. Not ``certain``: it is of a chat, and may be of
    another session of that chat. ``contents`` are the texts, where they were asked for."""

    kind: str
    place: str
    texts: int
    chat: str | None
    first_at: str | None
    last_at: str | None
    certain: bool
    contents: tuple[str, ...] | None = None


class Beyond(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages, each once, files show and the store does not: ``undone`` ones are still rows of it,
    ``deleted`` ones were, ``unstored`` ones never got there, and of ``untold`` ones nothing tells."""

    undone: int
    deleted: int
    unstored: int
    untold: int


class SessionReport(msgspec.Struct, frozen=True, kw_only=True):
    """One session. ``node`` has its row; ``present`` in it is false when only messages or files know the
    session; then ``salvage`` says what could be restored of it. ``unheld`` are the messages that no file here
    holds, by the row that a display shows; ``beyond`` counts what files show and the store does not, if there
    is any; ``traces`` is what the store itself tells beside its messages."""

    schema: Literal["statemend/session/v1"] = SCHEMA
    store: str
    era: str
    node: FamilyNode
    first_at: str | None
    last_at: str | None
    views: Views
    lineage: Lineage
    artifacts: tuple[Holding, ...]
    unheld: tuple[int, ...]
    traces: tuple[OwnTrace, ...] = ()
    beyond: Beyond | None = None
    salvage: Salvaged | None = None


class NoSuchSession(UsageError):
    """Neither the store nor a file beside it knows the session."""


def resolve(store: Store, inventory: Inventory, wanted: str) -> str:
    """The id that ``wanted`` is, or begins. Ids come from session rows, from messages without one, from files
    and other stores, and from the tables that tell of sessions beside their messages.

    Raises ``NoSuchSession`` when there is none, ``UsageError`` when several begin so: then it lists them."""
    known = {sid for (sid,) in store.rows("SELECT id FROM sessions") if isinstance(sid, str)}
    known |= {
        sid for (sid,) in store.rows("SELECT DISTINCT session_id FROM messages") if isinstance(sid, str)
    }
    known |= inventory.by_session().keys() | inventory.stores_by_session().keys()
    naming = own_tables(store, inventory, (Kind.ROUTES, Kind.DELEGATIONS))
    known |= {section.session_id for each in naming for section in each.artifact.sections} - {""}
    if wanted in known:
        return wanted
    candidates = sorted(sid for sid in known if sid.startswith(wanted))
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise NoSuchSession(
            f"{store.path}: no session {wanted!r}, neither in the store nor in a file beside it; "
            "`hermes sessions list` names those in use"
        )
    raise UsageError(
        f"{wanted!r} begins {len(candidates)} sessions: {listed(candidates, _MOST_CANDIDATES)}; "
        "give more of the id"
    )


def read(store: Store, inventory: Inventory, session_id: str, *, with_content: bool = False) -> SessionReport:
    """Everything about one session. ``with_content`` adds the texts of ``traces``. Raises
    ``StoreUnreadable``, ``Undetermined``."""
    rows = next(iter(census(store, session_id)), None)
    coverage = assess_session(store, inventory, session_id)
    node = _node(session_id, session_record(store, session_id))
    return SessionReport(
        store=store.path,
        era=RELEASES[store.schema.era],
        node=node,
        first_at=iso(rows.first_at) if rows else None,
        last_at=iso(rows.last_at) if rows else None,
        views=Views(
            raw=rows.total if rows else 0,
            active=sum(1 for _ in messages(store, session_id, View.ACTIVE)),
            display=sum(1 for _ in display(store, session_id)),
            live=rows.live if rows else 0,
            archived=rows.archived if rows else 0,
            rewound=rows.rewound if rows else 0,
            unset=rows.unset if rows else 0,
        ),
        lineage=_lineage(Graph.load(store), session_id, store.schema.era),
        artifacts=holdings(coverage),
        unheld=coverage.unheld,
        traces=tuple(_traces(store, inventory, session_id, with_content=with_content)),
        beyond=_beyond(store, inventory, coverage),
        salvage=None if node.present else _salvaged(store, inventory, session_id),
    )


def _beyond(store: Store, inventory: Inventory, coverage: SessionCoverage) -> Beyond | None:
    found = beyond(store, inventory, coverage)
    if not found:
        return None
    return Beyond(
        undone=found[Fate.UNDONE],
        deleted=found[Fate.DELETED],
        unstored=found[Fate.UNSTORED],
        untold=found[Fate.UNTOLD],
    )


def _traces(store: Store, inventory: Inventory, session_id: str, *, with_content: bool) -> Iterator[OwnTrace]:
    for each in own_tables(store, inventory):
        doubtful = {q.section.offset for q in each.open_questions if session_id in q.candidates}
        for section in each.artifact.sections:
            if section.session_id != session_id and section.offset not in doubtful:
                continue
            found = records(store, inventory, each.artifact, section) if with_content else None
            yield OwnTrace(
                kind=each.artifact.kind.value,
                place=each.artifact.path,
                texts=section.held or 0,
                chat=section.title,
                first_at=iso(section.first_at),
                last_at=iso(section.last_at),
                certain=section.session_id == session_id,
                contents=None if found is None else tuple(shown(record.content) for record in found),
            )


def _salvaged(store: Store, inventory: Inventory, session_id: str) -> Salvaged:
    found = salvage(store, inventory, session_id)
    times = [each.at for each in found.messages if each.at is not None]
    return Salvaged(
        messages=len(found.messages),
        exact=found.count(Fidelity.EXACT),
        lossy=found.count(Fidelity.LOSSY),
        masked=found.count(Fidelity.MASKED),
        suspect=sum(each.suspect for each in found.messages),
        cut=sum(each.cut for each in found.messages),
        conflicts=len(found.conflicts),
        lost=found.lost,
        first_at=iso(min(times, default=None)),
        last_at=iso(max(times, default=None)),
        sources=tuple(
            SalvageSource(
                artifact=each.artifact,
                kind=each.kind.value,
                records=each.records,
                shared=each.shared,
                best=each.best,
            )
            for each in found.sources
        ),
        gaps=tuple(
            SalvageGap(
                lack=each.lack.value,
                artifact=each.artifact,
                count=each.count,
                first_at=iso(each.first_at),
                last_at=iso(each.last_at),
            )
            for each in found.gaps
        ),
    )


def _node(session_id: str, record: Mapping[str, Any] | None) -> FamilyNode:
    if record is None:
        return FamilyNode(id=session_id, present=False)
    return FamilyNode(
        id=session_id,
        title=words(record.get("title")),
        source=words(record.get("source")),
        started_at=iso(record.get("started_at")),
        ended_at=iso(record.get("ended_at")),
        end_reason=words(record.get("end_reason")),
        messages=count if isinstance(count := record.get("message_count"), int) else None,
    )


def _lineage(graph: Graph, session_id: str, era: Era) -> Lineage:
    judge = Era.V22 if era >= Era.V18 else era
    deletion = graph.deletion(session_id, judge)
    return Lineage(
        parent=_edge(graph, session_id),
        children=tuple(
            edge for child in graph.children(session_id) if (edge := _edge(graph, child.id)) is not None
        ),
        export=graph.export_chain(session_id, judge),
        resume=graph.resume_tip(session_id, judge),
        deleted=deletion.deleted,
        detached=deletion.detached,
        by_release=tuple(_by_release(graph, session_id)),
    )


def _by_release(graph: Graph, session_id: str) -> Iterator[str]:
    for label, lines in candidates.ways(graph, session_id):
        yield from (f"{label.removesuffix(', by release')}, {line}" for line in lines)
    yield from candidates.deletions(graph, session_id)


def _edge(graph: Graph, child: str) -> FamilyEdge | None:
    edge = graph.edge(child)
    if edge is None:
        return None
    return FamilyEdge(
        parent=edge.parent_id, child=edge.child_id, relation=edge.relation.value, evidence=edge.evidence
    )
