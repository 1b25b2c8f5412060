"""What was found, and what became of it; what was had back; what nobody knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final

from statemend.audit.finding import Finding, Severity, Verdict
from statemend.repair.export_result import ExportedFile, Reexport
from statemend.repair.export_result import State as ExportState
from statemend.repair.run import State
from statemend.report.gaps import ignored
from statemend.report.model import Report
from statemend.report.story.commands import again, command, export_again
from statemend.report.story.model import Statement
from statemend.report.story.sources import Audited, Exported, Repaired, Source, of
from statemend.report.text import count

#: The rules whose findings say that text is gone. All others are about what is still there.
GONE: Final = frozenset({"EXP002", "ORP004"})


class Weight(Enum):
    """What a finding means for the story."""

    LOST = "text that is gone"
    ENDANGERED = "text that the next export, prune or upgrade loses"
    WRONG = "something else that is wrong"
    UNKNOWN = "something that the evidence does not tell"
    LAWFUL = "something that is as it should be"


def weight_of(finding: Finding) -> Weight:
    """What a finding means for the story."""
    if finding.verdict is Verdict.UNDECIDABLE:
        return Weight.UNKNOWN
    if finding.verdict is Verdict.LEFTOVER:
        return Weight.LAWFUL
    if finding.rule in GONE:
        return Weight.LOST
    if finding.verdict is Verdict.RISK or finding.severity is Severity.CRITICAL:
        return Weight.ENDANGERED
    return Weight.WRONG


def findings(audits: Sequence[Audited], sources: Sequence[Source]) -> Iterator[tuple[Finding, Statement]]:
    """Each finding once, as the latest report has it, with when it was seen and what ended it."""
    latest: dict[str, tuple[Finding, Report, str]] = {}
    for audit in audits:
        for finding in audit.report.findings:
            first = latest[finding.id][2] if finding.id in latest else audit.report.generated_at
            latest[finding.id] = (finding, audit.report, first)
    ended = {
        served: repaired.path
        for repaired in of(sources, Repaired)
        if repaired.run.state is State.APPLIED and not repaired.undone
        for served in repaired.run.served
        if served not in repaired.run.remaining
    }
    for finding, report, first in latest.values():
        asked = again(report, finding.rule)
        end: str | None
        if run := ended.get(finding.id):
            end, shown = run, command("verify", run)
        elif later := _gone(finding.id, report, audits):
            end, shown = later, asked
        else:
            end, shown = None, finding.remedy.command or asked
        yield (
            finding,
            Statement(
                text=finding.summary,
                session=finding.subject.session,
                finding=finding.id,
                first=first,
                last=report.generated_at,
                ended=end,
                command=shown,
            ),
        )


def _gone(finding_id: str, last_seen: Report, audits: Sequence[Audited]) -> str | None:
    """The first later report of the same home whose rule ran and that no longer has the finding."""
    rule = finding_id.partition("-")[0]
    for audit in audits:
        report = audit.report
        later = report.generated_at > last_seen.generated_at and report.home == last_seen.home
        ran = any(entry.id == rule and entry.status in ("clean", "findings") for entry in report.rules)
        hidden = report.baseline is not None and finding_id in report.baseline.hidden
        if later and ran and not hidden:
            return audit.path
    return None


def not_seen(audits: Sequence[Audited]) -> Iterator[Statement]:
    """What the last report of each home could not look at."""
    last = {audit.report.home: audit for audit in audits}
    for audit in last.values():
        report = audit.report
        for store in report.stores:
            if store.fault:
                yield Statement(text=f"{store.path} could not be read: {store.fault}", command=again(report))
        for rule in report.rules:
            if rule.status == "could not run":
                yield Statement(
                    text=f"{rule.id} {rule.slug} could not run: {rule.reason}",
                    command=again(report, rule.id),
                )
        for gap in ignored(report):
            yield Statement(text=f"{gap.what} not looked for: {gap.reason}", command=again(report))
        for item in report.skipped:
            if item.unread:
                yield Statement(text=f"{item.path} was not read: {item.reason}", command=again(report))


def recovered(sources: Sequence[Source]) -> Iterator[Statement]:
    """What repairs gave back, each value with where it came from, and what exports preserve."""
    preserved: set[tuple[str, str | None]] = set()
    for source in sources:
        match source:
            case Repaired(path=path, plan=plan, run=run) if run.state is State.APPLIED and not source.undone:
                for step in plan.selected():
                    yield Statement(
                        text=step.title,
                        session=step.sessions[0] if step.sessions else None,
                        finding=step.finding,
                        ended=path,
                        sources=tuple(
                            f"{each.column}: {each.origin}"
                            + (f" ({each.artifact}{_locator(each.locator)})" if each.artifact else "")
                            for each in step.sources
                        ),
                        command=command("verify", path),
                    )
            case Exported(done=done):
                for file in done.files:
                    key = (file.session, file.sha256)
                    if file.state is ExportState.COMPLETE and key not in preserved:
                        preserved.add(key)
                        yield _preserved(file, done)
            case _:
                continue


def _preserved(file: ExportedFile, done: Reexport) -> Statement:
    return Statement(
        text=f"Preserved whole: {count(file.messages, 'message')}, {file.archived:,} of them archived",
        session=file.session,
        sources=(f"{file.path}, sha256 {file.sha256}",),
        command=export_again(done.store, [file.session], done.format.value),
    )


def _locator(locator: str | None) -> str:
    return f", {locator}" if locator else ""
