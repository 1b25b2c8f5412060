"""The report for a terminal: the verdict, the counts, the findings, what was not looked at, what to do
next."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from statemend.audit.finding import Finding, Severity
from statemend.report import baseline, blocks, text
from statemend.report.gaps import gaps, ignored
from statemend.report.html import counts
from statemend.report.model import Report, StoreEntry, worst_first
from statemend.report.paths import relative, within

MOST_FINDINGS = 50

_STYLE = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "blue",
    Severity.INFO: "dim",
}
_SHAPE = {
    Severity.CRITICAL: "■",
    Severity.HIGH: "▲",
    Severity.MEDIUM: "◆",
    Severity.LOW: "●",
    Severity.INFO: "○",
}


def render(report: Report) -> str:
    """The report as plain text, for a file or a pipe."""
    return blocks.plain(renderable(report))


def renderable(report: Report) -> RenderableType:
    """The report for a ``rich`` console; nothing in it is read as markup."""
    return Group(*_parts(report))


def severity_text(severity: Severity) -> Text:
    """The severity as shape, word and colour."""
    return Text(f"{_SHAPE[severity]} {severity.value}", style=_STYLE[severity])


def _parts(report: Report) -> Iterator[RenderableType]:
    worst = next((finding.severity for finding in worst_first(report.findings)), None)
    yield Text("statemend ", style="dim") + Text(text.clip(report.home, 200), style="dim")
    yield Text(text.clip(report.verdict, 300), style=_STYLE[worst] if worst else "bold")
    if len(report.stores) > 1:
        yield from (Text(_store(store)) for store in report.stores)
    if report.findings:
        yield Text(_numbers(report))
        yield Text()
        yield _findings(report)
        left = len(report.findings) - MOST_FINDINGS
        if left > 0:
            yield Text(f"{left:,} more: -o report.html writes the whole report", style="dim")
    yield from _known(report)
    yield from _not_looked_at(report)
    yield from _next(report)


def _store(store: StoreEntry) -> str:
    """One of several stores: where it is, and what it holds."""
    if store.fault is not None:
        return f"  {text.clip(store.path, 200)}: not read"
    rows = [store.live, store.archived, store.rewound, store.unset]
    parts = (
        None if store.schema_version is None else f"schema {store.schema_version}",
        text.size(store.size),
        None if store.sessions is None else text.count(store.sessions, "session"),
        None if store.live is None else text.count(sum(number or 0 for number in rows), "message"),
    )
    return f"  {text.clip(store.path, 200)}: {', '.join(filter(None, parts))}"


def _numbers(report: Report) -> str:
    rows = counts(report)
    return ", ".join(
        f"{sum(row.values()):,} {severity}" for severity, row in rows.items() if sum(row.values())
    )


def _findings(report: Report) -> blocks.Rows:
    several = len(report.stores) > 1
    rows = [
        (
            Text(finding.id),
            severity_text(finding.severity),
            Text(text.clip(finding.subject.session or "", 60)),
            *([Text(text.clip(_within(report, finding.subject.store), 200))] if several else []),
            Text(_what(finding)),
        )
        for finding in worst_first(report.findings)[:MOST_FINDINGS]
    ]
    return blocks.Rows(rows, head=("Finding", "Severity", "Session", *(["Store"] if several else []), "What"))


def _within(report: Report, store: str) -> str:
    return relative(store, report.home) if within(store, report.home) else store


def _what(finding: Finding) -> str:
    summary = text.clip(finding.summary, 200)
    return summary if finding.verdict == "fault" else f"{finding.verdict}: {summary}"


def _known(report: Report) -> Iterator[RenderableType]:
    lines = baseline.said(report.baseline, hidden=False)
    if lines:
        yield Text()
        yield from (Text(line) for line in lines)


def _not_looked_at(report: Report) -> Iterator[RenderableType]:
    lines = [f"{gap.what}: {gap.reason}" for gap in (*gaps(report), *ignored(report))]
    lines += [f"{item.path}: {item.reason}" for item in report.skipped[:10]]
    if len(report.skipped) > 10:
        lines.append(f"{len(report.skipped) - 10:,} more files")
    if lines:
        yield Text()
        yield Text("Not looked at", style="bold")
        for line in lines:
            yield Padding(Text(text.clip(line, 240)), (0, 0, 0, 2))
    aside = sum(rule.status == "not applicable" for rule in report.rules)
    ran = sum(rule.status in ("clean", "findings") for rule in report.rules)
    yield Text()
    yield Text(
        f"{ran} of {text.count(len(report.rules), 'rule')} ran, {aside} did not apply; "
        f"{text.count(len(report.artifacts), 'file')} beside "
        f"{'the store' if len(report.stores) == 1 else 'the stores'}",
        style="dim",
    )


def _next(report: Report) -> Iterator[RenderableType]:
    ordered = worst_first(report.findings)
    for finding in ordered[:1]:
        command = finding.remedy.command or f"statemend explain {finding.rule}"
        place = text.clip(_within(report, finding.subject.store), 200)
        yield blocks.next_step(command, label=f"Next, for {place}" if len(report.stores) > 1 else "Next")
