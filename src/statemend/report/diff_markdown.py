"""What changed between two reports, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statemend.audit.finding import Finding
from statemend.report import diff_words
from statemend.report.diff import SCHEMA, Diff
from statemend.report.markdown import code, escape

#: First line of the document; tells it from any other file.
MARK: Final = f"<!-- {SCHEMA} -->"
MOST: Final = 100


def render(found: Diff) -> str:
    """The whole document, ending in one newline."""
    return "\n".join(_lines(found)).rstrip("\n") + "\n"


def _lines(found: Diff) -> Iterator[str]:
    yield MARK
    yield f"# {escape(found.verdict)}"
    yield ""
    for word, side in (("From", found.before), ("To", found.after)):
        yield f"- {word} {code(side.home)}, {escape(side.generated_at, 40)}: {diff_words.side(side)}"
    for title, items, home in diff_words.sections(found):
        yield from _heading(f"{title} ({len(items):,})")
        for item in items[:MOST]:
            yield from _finding(item.finding, home)
            if item.reason:
                yield f"  - {escape(item.reason)}"
        yield from _more(len(items))
    if found.changed:
        yield from _heading(f"Changed ({len(found.changed):,})")
    for change in found.changed[:MOST]:
        yield from _finding(change.finding, found.after.home)
        for line in diff_words.fields(change):
            yield f"  - {escape(line, 400)}"
    yield from _more(len(found.changed))
    for title, lines in diff_words.notes(found):
        yield from _heading(title)
        for line in lines[:MOST]:
            yield f"- {escape(line)}"
        yield from _more(len(lines))


def _finding(finding: Finding, home: str) -> Iterator[str]:
    about = f" in {code(finding.subject.session, 80)}" if finding.subject.session else ""
    if place := diff_words.store(finding, home):
        about += f" of {code(place)}"
    yield (
        f"- **{finding.severity} {finding.verdict}** {code(finding.id, 60)}{about}: {escape(finding.summary)}"
    )
    if finding.remedy.command:
        yield f"  - Next: {code(finding.remedy.command, 600)}"


def _heading(title: str) -> tuple[str, str, str]:
    return "", f"## {title}", ""


def _more(total: int) -> Iterator[str]:
    if total > MOST:
        yield f"- {total - MOST:,} more in the JSON form"
