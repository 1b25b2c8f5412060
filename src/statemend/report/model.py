"""The report as data: the contract ``statemend/report/v1`` that every output is made from.

Times are ISO 8601 in UTC, ``2026-09-24T03:12:44Z``. A ``clock`` is the wall time of the machine that wrote a
log, whose zone is unknown. Lists are sorted, so that two reports of the same home are equal but for
``generated_at``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.outcome import FailOn

SCHEMA: Final = "statemend/report/v1"

SEVERITIES = tuple(Severity)
VERDICTS = tuple(Verdict)

RuleStatus = Literal["clean", "findings", "not applicable", "could not run", "ignored"]
Answer = Literal["yes", "no", "unknown"]
EventKind = Literal["append-failed", "deleted", "compacted", "exported"]


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in the order in which people are shown them: worst first, rule by rule."""
    return sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severity), finding.rule))


class Tool(msgspec.Struct, frozen=True):
    """The program that made the report. ``sqlite`` is the version of the SQLite library inside it."""

    name: str
    version: str
    sqlite: str


class StoreEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One audited store. ``size`` is bytes of the main file; ``access`` says how it was read. Row counts are
    ``None`` where the store could not be read, and ``fault`` then says why. ``unchanged`` is whether the
    files were the same after the audit as before it, ``deep`` whether the whole file was checked and not
    only its tables. ``profile`` is the profile whose store it is, ``None`` where nothing says so."""

    path: str
    size: int
    profile: str | None = None
    access: str | None = None
    schema_version: int | None = None
    era: str | None = None
    unchanged: bool | None = None
    deep: bool = False
    fault: str | None = None
    sessions: int | None = None
    live: int | None = None
    archived: int | None = None
    rewound: int | None = None
    unset: int | None = None


class ArtifactEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file beside the store. ``sessions`` are the ids it holds; ``damage`` is what is wrong with the
    file."""

    path: str
    kind: str
    size: int
    sha256: str
    modified_at: str | None = None
    sessions: tuple[str, ...] = ()
    damage: str | None = None


class RuleEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of this audit and what became of it. ``reason`` says why it did not apply, could
    not run or was ignored.
    ``findings`` counts those in this report, ``hidden`` those that a baseline hides."""

    id: str
    slug: str
    title: str
    status: RuleStatus
    findings: int = 0
    hidden: int = 0
    reason: str = ""


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """How one artifact covers one session: counts of logical messages of the session's display view.
    ``extra`` counts what the artifact holds and the store does not."""

    artifact: str
    kind: str
    scope: str
    exact: int = 0
    lossy: int = 0
    masked: int = 0
    changed: int = 0
    missing: int = 0
    extra: int = 0


class SessionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One session: its rows by state, and how much of its ``display`` view lies in some artifact (``held``).
    ``present`` is false for a session known only from artifacts or logs. Row counts are ``None`` where the
    rows could not be counted. ``store`` is the path of the store in a report of several, else ``None``."""

    id: str
    store: str | None = None
    title: str | None = None
    present: bool = True
    live: int | None = 0
    archived: int | None = 0
    rewound: int | None = 0
    unset: int | None = 0
    display: int | None = None
    held: int | None = None
    artifacts: tuple[Holding, ...] = ()


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of the incident. Either ``at`` or ``clock`` is set. ``source`` names the file or table that
    tells it, ``count`` how many such moments this entry stands for, ``until`` when the last of them was."""

    kind: EventKind
    at: str | None = None
    clock: str | None = None
    until: str | None = None
    session: str | None = None
    count: int = 1
    source: str
    detail: str = ""


class FamilyNode(msgspec.Struct, frozen=True, kw_only=True):
    """One session of a family, as far as lineage goes."""

    id: str
    title: str | None = None
    source: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    end_reason: str | None = None
    messages: int | None = None
    present: bool = True


class FamilyEdge(msgspec.Struct, frozen=True, kw_only=True):
    """One parent link and what it means."""

    parent: str
    child: str
    relation: str
    evidence: tuple[str, ...] = ()


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A family of sessions whose line is not plain. ``start`` is the session that export and resume are asked
    for, ``export`` the chain that an export writes, ``resume`` the session that a resume opens (``None``:
    this release has no such thing). ``findings`` are the ids that speak of it. ``store`` is the path of the
    store in a report of several, else ``None``."""

    id: str
    store: str | None = None
    start: str
    nodes: tuple[FamilyNode, ...]
    edges: tuple[FamilyEdge, ...]
    export: tuple[str, ...] | None = None
    resume: str | None = None
    findings: tuple[str, ...] = ()


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One question of the review of export integrity, answered from the evidence of this home alone."""

    id: str
    title: str
    question: str
    answer: Answer
    because: str
    rules: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


class SkippedEntry(msgspec.Struct, frozen=True):
    """A file that was not looked at, and why. ``unread`` is true when it may hold what a rule looked for, so
    that something stays open, false when it is none of the files that the rules look at."""

    path: str
    reason: str
    unread: bool = False


class MessageText(msgspec.Struct, frozen=True):
    """The text of one message that a finding names, or, ``first``, of the first message of a session that it
    tells of as a candidate. Only in reports made with ``--with-content``."""

    store: str
    message_id: int
    session: str
    role: str
    text: str
    first: bool = False


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The findings that were known before, by id. ``hidden`` are found again and left out of the report,
    ``gone`` are no longer found, and of ``unknown`` nothing can be said: this audit did not look as far as
    the one that found them."""

    hidden: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an audit found, looked at, and could not look at. ``exports`` are the folders that were
    looked at beside the home, as given. ``fail_on`` is what ``exit_code`` was made with. ``baseline`` is
    ``None`` unless one was given, ``contents`` unless the texts of the messages were asked for."""

    schema: Literal["statemend/report/v1"] = SCHEMA
    tool: Tool
    home: str
    exports: tuple[str, ...] = ()
    generated_at: str
    verdict: str
    fail_on: FailOn = FailOn.FAULT
    exit_code: int
    baseline: Baseline | None = None
    stores: tuple[StoreEntry, ...] = ()
    artifacts: tuple[ArtifactEntry, ...] = ()
    rules: tuple[RuleEntry, ...] = ()
    findings: tuple[Finding, ...] = ()
    sessions: tuple[SessionEntry, ...] = ()
    timeline: tuple[Event, ...] = ()
    lineage: tuple[Family, ...] = ()
    checklist: tuple[Check, ...] = ()
    skipped: tuple[SkippedEntry, ...] = ()
    contents: tuple[MessageText, ...] | None = None
