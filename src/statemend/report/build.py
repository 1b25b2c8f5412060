"""From an audit to a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import apsw
import msgspec

import statemend
from statemend.audit import registry
from statemend.audit.eras import RELEASES
from statemend.audit.outcome import Audit, FailOn, StoreFacts, worst
from statemend.evidence.coverage import ArtifactCoverage, SessionCoverage
from statemend.evidence.inventory import Inventory
from statemend.formats.artifact import Artifact
from statemend.report import join, text, timeline
from statemend.report.checklist import Evidence, checklist
from statemend.report.excerpt import Excerpt
from statemend.report.model import (
    SEVERITIES,
    ArtifactEntry,
    Event,
    Family,
    Holding,
    MessageText,
    Report,
    RuleEntry,
    SessionEntry,
    SkippedEntry,
    StoreEntry,
    Tool,
)
from statemend.report.verdict import sentence
from statemend.store.schema import Era


class Seen(NamedTuple):
    """An audit, and what was read of its store for the report: ``None`` when it cannot be read."""

    audit: Audit
    excerpt: Excerpt | None = None


def build(
    seen: Sequence[Seen],
    *,
    home: str | None = None,
    exports: Iterable[str] = (),
    fail_on: FailOn = FailOn.FAULT,
    contents: Iterable[MessageText] | None = None,
) -> Report:
    """The report of one audit, or of those of all stores of a home. ``home`` is what was audited as it was
    named, by default that of the first; ``exports`` are the folders looked at beside it; ``contents`` the
    texts to show, ``None`` when they were not asked for."""
    audits = [each.audit for each in seen]
    stores = tuple(_store(each.audit.store, each.excerpt, deep=each.audit.deep) for each in seen)
    artifacts = _artifacts(join.artifacts(audits))
    titles = {rule.id: rule.title for rule in registry.all_rules()}
    rules = tuple(
        RuleEntry(
            id=result.id,
            slug=result.slug,
            title=titles.get(result.id, ""),
            status=result.status.value,
            findings=result.findings,
            reason=result.reason,
        )
        for result in join.rules(audits)
    )
    findings = tuple(
        sorted(
            (finding for audit in audits for finding in audit.findings),
            key=lambda item: (
                SEVERITIES.index(item.severity),
                item.rule,
                item.subject.session or "",
                item.subject.artifact or "",
                item.id,
            ),
        )
    )
    passed_over = join.skipped(audits).items()
    entries = (SkippedEntry(item.path, item.reason, unread) for item, unread in passed_over)
    skipped = tuple(sorted(entries, key=_path))
    return Report(
        tool=Tool(name="statemend", version=statemend.__version__, sqlite=apsw.sqlite_lib_version()),
        home=audits[0].home if home is None else home,
        exports=tuple(exports),
        generated_at=text.generated_at(audits[0].at),
        verdict=sentence(findings, rules, stores, skipped),
        fail_on=fail_on,
        exit_code=worst(audits, fail_on),
        stores=stores,
        artifacts=artifacts,
        rules=rules,
        findings=findings,
        sessions=_sessions(seen),
        timeline=timeline.of_all(_events(*each, several=len(seen) > 1) for each in seen),
        lineage=tuple(family for each in seen for family in _families(each, several=len(seen) > 1)),
        checklist=checklist(
            Evidence(
                stores=stores,
                artifacts=artifacts,
                rules=rules,
                findings=findings,
                coverage=tuple(session for audit in audits for session in audit.coverage),
                skipped=skipped,
            )
        ),
        skipped=skipped,
        contents=None if contents is None else tuple(contents),
    )


def _path(item: SkippedEntry) -> str:
    return item.path


def _store(facts: StoreFacts, excerpt: Excerpt | None, *, deep: bool) -> StoreEntry:
    totals = excerpt.totals if excerpt else None
    return StoreEntry(
        path=facts.path,
        size=facts.size,
        profile=facts.profile,
        access=facts.access,
        schema_version=facts.schema_version,
        era=None if facts.era is None else RELEASES[Era[facts.era]],
        unchanged=facts.unchanged,
        deep=deep,
        fault=facts.refusal,
        sessions=facts.sessions,
        live=totals.live if totals else None,
        archived=totals.archived if totals else None,
        rewound=totals.rewound if totals else None,
        unset=totals.unset if totals else None,
    )


def _artifacts(artifacts: Iterable[Artifact]) -> tuple[ArtifactEntry, ...]:
    entries = (
        ArtifactEntry(
            path=artifact.path,
            kind=artifact.kind.value,
            size=artifact.size,
            sha256=artifact.sha256,
            modified_at=text.iso(artifact.modified_at),
            sessions=tuple(
                dict.fromkeys(
                    sid
                    for section in artifact.sections
                    for sid in (*section.lineage, section.session_id)
                    if sid
                )
            ),
            damage=artifact.damage,
        )
        for artifact in artifacts
    )
    return tuple(sorted(entries, key=lambda entry: entry.path))


def _sessions(seen: Sequence[Seen]) -> tuple[SessionEntry, ...]:
    """Every session with a file, a finding, or rows that are not live; what most needs a look comes first."""
    found: list[tuple[bool, SessionEntry]] = []
    for audit, excerpt in seen:
        covered = {each.session_id: each for each in audit.coverage}
        named = {finding.subject.session for finding in audit.findings}
        listed = {*covered, *(sid for sid in named if sid is not None), *(excerpt.rows if excerpt else ())}
        titles = _titles(audit.inventory, excerpt)
        store = audit.store.path if len(seen) > 1 else None
        for sid in listed:
            entry = _session(sid, titles.get(sid), covered.get(sid), excerpt)
            found.append((sid not in named, msgspec.structs.replace(entry, store=store)))
    found.sort(key=lambda item: (item[0], -_lacking(item[1]), item[1].id, item[1].store or ""))
    return tuple(entry for _, entry in found)


def _events(audit: Audit, excerpt: Excerpt | None, *, several: bool) -> Iterator[Event]:
    """What one store and the files beside it tell of. Where there are several, a table is named with its
    store."""
    rows, compactions = (excerpt.rows, excerpt.compactions) if excerpt else ({}, ())
    for event in timeline.events(audit.inventory, audit.findings, rows, compactions):
        in_store = several and event.source in ("sessions", "messages")
        source = f"{audit.store.path}: {event.source}" if in_store else event.source
        yield msgspec.structs.replace(event, source=source)


def _families(seen: Seen, *, several: bool) -> Iterator[Family]:
    store = seen.audit.store.path if several else None
    for family in seen.excerpt.families if seen.excerpt else ():
        yield msgspec.structs.replace(family, store=store)


def _titles(inventory: Inventory, excerpt: Excerpt | None) -> dict[str, str]:
    """The title of each session: the store's, or for one that is gone, that of a file which holds it
    alone."""
    titles = {
        section.session_id: section.title
        for _, section in inventory.sections()
        if section.title and not section.lineage
    }
    return {**titles, **(excerpt.titles if excerpt else {})}


def _lacking(entry: SessionEntry) -> int:
    return (entry.display or 0) - (entry.held or 0) if entry.artifacts else 0


def _session(
    sid: str, title: str | None, covered: SessionCoverage | None, excerpt: Excerpt | None
) -> SessionEntry:
    rows = excerpt.rows.get(sid) if excerpt else None
    uncounted = None if excerpt is None else 0
    return SessionEntry(
        id=sid,
        title=title,
        present=sid in excerpt.present or rows is not None if excerpt else covered is None or covered.present,
        live=rows.live if rows else uncounted,
        archived=rows.archived if rows else uncounted,
        rewound=rows.rewound if rows else uncounted,
        unset=rows.unset if rows else uncounted,
        display=covered.display if covered and covered.present else None,
        held=covered.display - len(covered.unheld) if covered and covered.present else None,
        artifacts=holdings(covered) if covered else (),
    )


def holdings(covered: SessionCoverage) -> tuple[Holding, ...]:
    """How each file holds one session, ordered by path."""
    held = [_holding(artifact) for artifact in (*covered.artifacts, *covered.copies)]
    gone = [
        Holding(artifact=remains.artifact, kind=remains.kind.value, scope="unknown", extra=remains.records)
        for remains in (*covered.remains, *covered.elsewhere)
    ]
    return tuple(sorted((*held, *gone), key=lambda holding: holding.artifact))


def _holding(covered: ArtifactCoverage) -> Holding:
    return Holding(
        artifact=covered.artifact,
        kind=covered.kind.value,
        scope=covered.scope.value,
        exact=covered.exact,
        lossy=covered.lossy,
        masked=covered.masked,
        changed=len(covered.changed),
        missing=len(covered.missing),
        extra=covered.extra,
    )
