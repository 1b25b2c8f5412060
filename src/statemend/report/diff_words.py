"""How a comparison of two reports is worded, whatever shows it. Nothing here is escaped."""

from __future__ import annotations

from statemend.audit.finding import Finding
from statemend.report import text
from statemend.report.diff import Change, Diff, Difference, RuleChange, Side
from statemend.report.html import shown_value
from statemend.report.paths import relative, within

_MOST_FIELDS = 6


def sections(found: Diff) -> tuple[tuple[str, tuple[Difference, ...], str], ...]:
    """The findings that only one report has, under their headings and with the home of that report; those
    that are not empty."""
    named = (
        ("New", found.new, found.after.home),
        ("Gone", found.gone, found.before.home),
        ("Could not be looked for again", found.unknown, found.before.home),
    )
    return tuple((title, items, home) for title, items, home in named if items)


def store(finding: Finding, home: str) -> str:
    """Whose store a finding is of: empty for the home's own, and for one that was audited alone."""
    path = finding.subject.store
    place = relative(path, home) if within(path, home) else path
    return "" if place in (".", "state.db") else place


def notes(found: Diff) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What else there is to know, as lines under headings; those that are not empty."""
    named = (
        ("Rules that ended otherwise", tuple(_rule(change) for change in found.rules)),
        ("The second report could not determine", found.undetermined),
        ("To keep in mind", found.caveats),
    )
    return tuple((title, lines) for title, lines in named if lines)


def side(of: Side) -> str:
    """What one report holds."""
    hidden = f", {of.hidden:,} more hidden by a baseline" if of.hidden else ""
    return f"{text.count(of.findings, 'finding')}{hidden}, exit code {of.exit_code}"


def fields(change: Change) -> list[str]:
    """What a finding says differently, a line for each; the first few, then how many more."""
    lines = [
        f"{field.field}: {shown_value(field.before)} → {shown_value(field.after)}"
        for field in change.fields[:_MOST_FIELDS]
    ]
    left = len(change.fields) - len(lines)
    return [*lines, f"{left:,} more"] if left else lines


def _rule(change: RuleChange) -> str:
    absent = "not run"
    ended = f"{change.id} {change.slug}: {change.before or absent} → {change.after or absent}"
    return f"{ended} ({change.reason})" if change.reason else ended
