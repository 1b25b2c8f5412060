"""From an audit to a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import apsw

import statemend
from statemend.audit import registry
from statemend.audit.finding import Finding, Severity
from statemend.audit.outcome import Audit, FailOn, StoreFacts, exit_code
from statemend.evidence.coverage import ArtifactCoverage, SessionCoverage
from statemend.evidence.inventory import Inventory
from statemend.formats.artifact import Artifact
from statemend.report import text, timeline
from statemend.report.checklist import Evidence, checklist
from statemend.report.excerpt import Excerpt
from statemend.report.model import (
    ArtifactEntry,
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

_SEVERITIES = list(Severity)

#: The releases that each era of columns stands for.
ERAS = {
    "V13": "0.13 to 0.15",
    "V16": "0.16 and 0.17",
    "V18": "0.18 and 0.19",
    "V20": "0.20",
    "V22": "0.22",
}


def build(
    audit: Audit,
    excerpt: Excerpt | None = None,
    *,
    exports: Iterable[str] = (),
    fail_on: FailOn = FailOn.FAULT,
    contents: Iterable[MessageText] | None = None,
) -> Report:
    """The report of ``audit``. ``excerpt`` is what was read of its store, ``None`` when it cannot be read;
    ``exports`` are the folders it looked at beside the home; ``contents`` the texts to show, ``None`` when
    they were not asked for."""
    stores = (_store(audit.store, excerpt, deep=audit.deep),)
    inventory = audit.inventory
    artifacts = _artifacts((*inventory.artifacts, *inventory.logs, *inventory.manifests, *inventory.stores))
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
        for result in sorted(audit.rules, key=lambda result: result.id)
    )
    findings = tuple(
        sorted(
            audit.findings,
            key=lambda item: (
                _SEVERITIES.index(item.severity),
                item.rule,
                item.subject.session or "",
                item.subject.artifact or "",
                item.id,
            ),
        )
    )
    unread = frozenset(audit.unread)
    entries = (SkippedEntry(item.path, item.reason, item in unread) for item in inventory.skipped)
    skipped = tuple(sorted(entries, key=_path))
    rows = excerpt.rows if excerpt else {}
    return Report(
        tool=Tool(name="statemend", version=statemend.__version__, sqlite=apsw.sqlite_lib_version()),
        home=audit.home,
        exports=tuple(exports),
        generated_at=text.generated_at(audit.at),
        verdict=sentence(findings, rules, stores, skipped),
        fail_on=fail_on,
        exit_code=exit_code(audit, fail_on),
        stores=stores,
        artifacts=artifacts,
        rules=rules,
        findings=findings,
        sessions=_sessions(audit.coverage, excerpt, findings, _titles(inventory, excerpt)),
        timeline=timeline.events(inventory, findings, rows, excerpt.compactions if excerpt else ()),
        lineage=excerpt.families if excerpt else (),
        checklist=checklist(
            Evidence(
                stores=stores,
                artifacts=artifacts,
                rules=rules,
                findings=findings,
                coverage=audit.coverage,
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
        access=facts.access,
        schema_version=facts.schema_version,
        era=ERAS.get(facts.era or "", facts.era),
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


def _sessions(
    coverage: Iterable[SessionCoverage],
    excerpt: Excerpt | None,
    findings: Iterable[Finding],
    titles: Mapping[str, str],
) -> tuple[SessionEntry, ...]:
    """Every session with a file, a finding, or rows that are not live; what most needs a look comes first."""
    covered = {each.session_id: each for each in coverage}
    named = {finding.subject.session for finding in findings}
    listed = {*covered, *(sid for sid in named if sid is not None), *(excerpt.rows if excerpt else ())}
    entries = [_session(sid, titles.get(sid), covered.get(sid), excerpt) for sid in listed]
    return tuple(sorted(entries, key=lambda entry: (entry.id not in named, -_lacking(entry), entry.id)))


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
