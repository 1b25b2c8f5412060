"""What a report shows of the store itself, read once while the store is open: no message text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from statemend.audit.finding import Finding
from statemend.evidence.coverage import SessionCoverage
from statemend.report import families
from statemend.report.model import Event, Family
from statemend.report.text import iso
from statemend.store.connection import Store
from statemend.store.history import Census, View, messages
from statemend.store.lineage import Graph

#: For so many sessions the times of compactions in place are looked up, which reads their rows.
_MOST_READ = 200


class Excerpt(msgspec.Struct, frozen=True):
    """``titles`` and ``rows`` are those of the sessions that the report lists; ``totals`` sums the rows of
    all sessions, with an empty id."""

    totals: Census
    rows: Mapping[str, Census]
    titles: Mapping[str, str]
    present: frozenset[str]
    families: tuple[Family, ...]
    compactions: tuple[Event, ...]


def take(
    store: Store,
    findings: Iterable[Finding],
    coverage: Iterable[SessionCoverage],
    *,
    graph: Graph,
    counted: Mapping[str, Census],
) -> Excerpt:
    """Read what the report of these ``findings`` needs. ``graph`` and ``counted`` are the families and the
    row counts of the same store. Raises ``StoreUnreadable``."""
    findings = tuple(findings)
    named = {finding.subject.session for finding in findings if finding.subject.session is not None}
    covered = {each.session_id for each in coverage}
    odd = {
        sid
        for sid, row in counted.items()
        if isinstance(sid, str) and (row.archived or row.rewound or row.unset)
    }
    listed = named | covered | odd
    titles, present = _titles(store, listed)
    return Excerpt(
        totals=_sum(counted.values()),
        rows={sid: counted[sid] for sid in listed if sid in counted},
        titles=titles,
        present=present,
        families=families.ambiguous(graph, findings, counted, store.schema.era),
        compactions=tuple(_compactions(store, graph, named, counted)),
    )


def _titles(store: Store, wanted: set[str]) -> tuple[dict[str, str], frozenset[str]]:
    titles: dict[str, str] = {}
    present: set[str] = set()
    for sid, title in store.rows("SELECT id, title FROM sessions"):
        if sid in wanted:
            present.add(sid)
            if isinstance(title, str) and title:
                titles[sid] = title
    return titles, frozenset(present)


def _sum(rows: Iterable[Census]) -> Census:
    live = archived = rewound = unset = 0
    for row in rows:
        live += row.live
        archived += row.archived
        rewound += row.rewound
        unset += row.unset
    return Census("", live, archived, rewound, unset, None, None)


def _compactions(
    store: Store, graph: Graph, named: set[str], counted: Mapping[str, Census]
) -> Iterator[Event]:
    """When the sessions that findings name were compacted: by rotation, told by the end of the session; in
    place, told by the time of the summary row."""
    for sid in sorted(named):
        node = graph.nodes.get(sid)
        if node is not None and node.compressed:
            yield Event(
                kind="compacted",
                at=iso(node.ended_at),
                session=sid,
                source="sessions",
                detail="went on in a new session",
            )
    in_place = [sid for sid in sorted(named) if sid in counted and counted[sid].archived]
    for sid in in_place[:_MOST_READ]:
        for message in messages(store, sid, View.RAW):
            if message.summary:
                yield Event(
                    kind="compacted",
                    at=iso(message.timestamp),
                    session=sid,
                    source="messages",
                    detail="in place",
                )
