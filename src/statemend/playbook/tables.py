"""What a scan found, as tables that a check may ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from statemend.audit.finding import Finding
from statemend.report import text
from statemend.report.model import ArtifactEntry, Report, SessionEntry
from statemend.store.question import Relation

Row = tuple[Any, ...]

_FINDINGS = {
    "id": "TEXT",
    "rule": "TEXT",
    "verdict": "TEXT",
    "severity": "TEXT",
    "store": "TEXT",
    "session": "TEXT",
    "artifact": "TEXT",
    "messages": "INTEGER",
    "summary": "TEXT",
    "remedy": "TEXT",
    "command": "TEXT",
}
_ARTIFACTS = {
    "path": "TEXT",
    "kind": "TEXT",
    "size": "INTEGER",
    "sha256": "TEXT",
    "modified_at": "TEXT",
    "sessions": "INTEGER",
    "damage": "TEXT",
}
_COVERAGE = {
    "session": "TEXT",
    "display": "INTEGER",
    "held": "INTEGER",
    "artifact": "TEXT",
    "kind": "TEXT",
    "scope": "TEXT",
    "exact": "INTEGER",
    "lossy": "INTEGER",
    "masked": "INTEGER",
    "changed": "INTEGER",
    "missing": "INTEGER",
    "extra": "INTEGER",
}
#: The tables of a scan, and their columns.
SCAN_TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "findings": _FINDINGS,
    "artifacts": _ARTIFACTS,
    "coverage": _COVERAGE,
}


class Tables(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan found, for the tables ``findings``, ``artifacts`` and ``coverage``. Coverage has a row for
    each session and file that holds some of it, and one without a file for a session that no file holds."""

    findings: tuple[Finding, ...] = ()
    artifacts: tuple[ArtifactEntry, ...] = ()
    coverage: tuple[SessionEntry, ...] = ()

    @classmethod
    def of(cls, report: Report) -> Tables:
        """What a report tells, for the three tables."""
        return cls(findings=report.findings, artifacts=report.artifacts, coverage=report.sessions)

    def relations(self) -> dict[str, Relation]:
        """The three tables by name, each with its columns and rows; texts as UTF-8 can hold them."""
        return {
            "findings": Relation(_FINDINGS, [_finding(one) for one in self.findings]),
            "artifacts": Relation(_ARTIFACTS, [_artifact(one) for one in self.artifacts]),
            "coverage": Relation(_COVERAGE, [row for one in self.coverage for row in _coverage(one)]),
        }


def _finding(one: Finding) -> Row:
    subject, remedy = one.subject, one.remedy
    return _storable(
        one.id,
        one.rule,
        str(one.verdict),
        str(one.severity),
        subject.store,
        subject.session,
        subject.artifact,
        len(subject.message_ids),
        one.summary,
        remedy.text,
        remedy.command,
    )


def _artifact(one: ArtifactEntry) -> Row:
    return _storable(one.path, one.kind, one.size, one.sha256, one.modified_at, len(one.sessions), one.damage)


def _coverage(one: SessionEntry) -> list[Row]:
    held = (one.id, one.display, one.held)
    if not one.artifacts:
        return [_storable(*held, None, None, None, 0, 0, 0, 0, one.display, 0)]
    return [
        _storable(
            *held,
            part.artifact,
            part.kind,
            part.scope,
            part.exact,
            part.lossy,
            part.masked,
            part.changed,
            part.missing,
            part.extra,
        )
        for part in one.artifacts
    ]


def _storable(*cells: Any) -> Row:
    return tuple(text.encodable(cell) if isinstance(cell, str) else cell for cell in cells)
