"""A short summary in GitHub-flavoured Markdown, for the page of a CI job or a chat: the verdict, the counts,
the worst findings with the command to run next, and what could not be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statemend.audit.finding import Finding
from statemend.report import baseline
from statemend.report.gaps import gaps, ignored
from statemend.report.html import counts
from statemend.report.markdown import MARK, code, escape, table
from statemend.report.model import SEVERITIES, VERDICTS, Report

MOST_FINDINGS: Final = 10
MOST_GAPS: Final = 10


def render(report: Report) -> str:
    """The document, ending in one newline."""
    return "\n".join(_lines(report)).rstrip("\n") + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield MARK
    yield f"### {escape(report.verdict)}"
    yield ""
    yield f"{code(report.home)}, {report.generated_at}, exit code {report.exit_code}."
    yield ""
    for said in baseline.said(report.baseline, hidden=False):
        yield escape(said, 800)
        yield ""
    if report.findings:
        yield from _counts(report)
        yield from _worst(report)
    yield from _ignored(report)
    yield from _open(report)


def _counts(report: Report) -> Iterator[str]:
    rows = (
        [severity.value, *(f"{number:,}" for number in row.values())]
        for severity, row in counts(report).items()
        if any(row.values())
    )
    yield from table(["severity", *(verdict.value for verdict in VERDICTS)], rows, numbers=len(VERDICTS))
    yield ""


def _worst(report: Report) -> Iterator[str]:
    ordered = sorted(
        report.findings, key=lambda item: (SEVERITIES.index(item.severity), VERDICTS.index(item.verdict))
    )
    for finding in ordered[:MOST_FINDINGS]:
        yield from _finding(finding, several=len(report.stores) > 1)
    left = len(ordered) - MOST_FINDINGS
    if left > 0:
        yield f"- {left:,} more in the full report"
    yield ""


def _finding(finding: Finding, *, several: bool) -> Iterator[str]:
    about = f" in {code(finding.subject.session, 80)}" if finding.subject.session else ""
    about += f" of {code(finding.subject.store)}" if several else ""
    yield (
        f"- **{finding.severity} {finding.verdict}** {code(finding.id, 40)}{about}: "
        f"{escape(finding.summary, 200)}"
    )
    if finding.remedy.command:
        yield f"  - Next: {code(finding.remedy.command, 600)}"


def _ignored(report: Report) -> Iterator[str]:
    for gap in ignored(report):
        yield f"Not looked for: {escape(gap.what)}, {escape(gap.reason, 200)}."
        yield ""


def _open(report: Report) -> Iterator[str]:
    lines = [f"{escape(gap.what)}: {escape(gap.reason, 200)}" for gap in gaps(report)]
    lines += [f"{code(item.path)}: {escape(item.reason, 200)}" for item in report.skipped if item.unread]
    lines += [
        f"{code(store.path)}: changed while it was read"
        for store in report.stores
        if store.unchanged is False
    ]
    if not lines:
        return
    yield "**Could not be determined**"
    yield ""
    for said in lines[:MOST_GAPS]:
        yield f"- {said}"
    if len(lines) > MOST_GAPS:
        yield f"- {len(lines) - MOST_GAPS:,} more in the full report"
