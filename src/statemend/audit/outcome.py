"""What an audit yields: how each rule ended, the findings, and the facts they rest on."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from statemend.audit.finding import Finding, Verdict
from statemend.evidence.coverage import SessionCoverage
from statemend.evidence.inventory import Inventory, Skipped
from statemend.store.holders import Holder
from statemend.store.lineage import Graph


class Status(StrEnum):
    """How a rule ended."""

    CLEAN = "clean"
    FINDINGS = "findings"
    NOT_APPLICABLE = "not applicable"  # what it looks at does not exist here
    COULD_NOT_RUN = "could not run"  # it does or may exist, and could not be trusted
    IGNORED = "ignored"  # it was not run, because somebody chose so


class RuleResult(msgspec.Struct, frozen=True):
    """How one rule ended. ``reason`` is empty unless it did not apply, could not run or was ignored. A rule
    that stopped half way keeps the ``findings`` it had. ``seconds`` is wall time."""

    id: str
    slug: str
    status: Status
    reason: str
    findings: int
    seconds: float


class StoreFacts(msgspec.Struct, frozen=True):
    """The store as it was audited.

    ``path`` is as given, ``size`` and ``wal_size`` are bytes, ``access`` says how it was read. What only an
    open store tells is ``None`` when it could not be opened; then ``refusal`` says why. ``unchanged`` is
    whether the original was the same before and after (a live store need not be: its copy is of one
    moment). ``era`` is the release whose columns it has (``V18`` and so on) and ``schema_version`` the
    number it claims, which need not agree. ``profile`` is the profile whose store it is, ``None`` where
    nothing says so.
    """

    path: str
    size: int
    wal_size: int
    siblings: tuple[str, ...]
    journal: str | None
    page_size: int | None
    access: str | None = None
    schema_version: int | None = None
    era: str | None = None
    sqlite_version: str | None = None
    sessions: int | None = None
    messages: int | None = None
    holders: tuple[Holder, ...] = ()
    unchanged: bool | None = None
    refusal: str | None = None
    profile: str | None = None


class Audit(msgspec.Struct, frozen=True):
    """One finished audit.

    ``findings`` are ordered worst first. ``coverage`` and ``graph`` are there when a rule needed them.
    ``unread`` lists the files that a rule would have looked at and that could not be read.
    ``at`` is the time it was made (epoch seconds), ``seconds`` how long it took.
    """

    home: str
    store: StoreFacts
    inventory: Inventory
    unread: tuple[Skipped, ...]
    rules: tuple[RuleResult, ...]
    findings: tuple[Finding, ...]
    coverage: tuple[SessionCoverage, ...]
    graph: Graph | None
    at: float
    seconds: float
    deep: bool
    live: bool

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Why this audit cannot say everything it was asked: one sentence for each cause."""
        causes = [
            f"{result.id} {result.slug} could not run: {result.reason}"
            for result in self.rules
            if result.status is Status.COULD_NOT_RUN
        ]
        if self.store.unchanged is False:
            causes.append(f"{self.store.path} changed while it was read")
        causes += [f"{skipped.path}: {skipped.reason}" for skipped in self.unread]
        return tuple(causes)

    @property
    def ignored(self) -> tuple[str, ...]:
        """What was left out on purpose: one sentence for each rule."""
        return tuple(
            f"{rule.id} {rule.slug} was {rule.reason}" for rule in self.rules if rule.status is Status.IGNORED
        )


class FailOn(StrEnum):
    """Which verdicts make a run fail."""

    FAULT = "fault"
    RISK = "risk"
    NEVER = "never"


#: The verdicts that each choice makes fail.
FAILING = {
    FailOn.FAULT: frozenset({Verdict.FAULT}),
    FailOn.RISK: frozenset({Verdict.FAULT, Verdict.RISK}),
    FailOn.NEVER: frozenset[Verdict](),
}


def worst(audits: Iterable[Audit], fail_on: FailOn = FailOn.FAULT) -> int:
    """The worst exit code of several audits."""
    return max((exit_code(audit, fail_on) for audit in audits), default=0)


def exit_code(audit: Audit, fail_on: FailOn = FailOn.FAULT) -> int:
    """0 clean, 1 when a finding's verdict is one that fails, 3 when something could not be determined."""
    if audit.undetermined:
        return 3
    return int(any(finding.verdict in FAILING[fail_on] for finding in audit.findings))
