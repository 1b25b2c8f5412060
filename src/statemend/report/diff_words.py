"""How a comparison of two reports is worded, whatever shows it. Nothing here is escaped."""

from __future__ import annotations

from statemend.report import text
from statemend.report.diff import Change, Diff, Difference, RuleChange, Side
from statemend.report.html import shown_value

_MOST_FIELDS = 6


def sections(found: Diff) -> tuple[tuple[str, tuple[Difference, ...]], ...]:
    """The findings that only one report has, under their headings; those that are not empty."""
    named = (
        ("New", found.new),
        ("Gone", found.gone),
        ("Could not be looked for again", found.unknown),
    )
    return tuple((title, items) for title, items in named if items)


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
