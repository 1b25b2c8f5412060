"""What changed between two reports, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from statemend.audit.finding import Finding
from statemend.report import blocks, diff_words, text
from statemend.report.diff import Diff, Difference
from statemend.report.table import severity_text

MOST = 50


def renderable(found: Diff) -> RenderableType:
    """The comparison for a ``rich`` console; nothing in it is read as markup."""
    return Group(*_parts(found))


def _parts(found: Diff) -> Iterator[RenderableType]:
    for word, side in (("from", found.before), ("to", found.after)):
        named = f"{word:4} {text.clip(side.generated_at, 40)} {text.clip(side.home, 200)}"
        yield Text(f"{named}: {diff_words.side(side)}", style="dim")
    yield Text(text.clip(found.verdict, 300), style="bold")
    for title, items, home in diff_words.sections(found):
        yield from _section(title, [_row(item.finding, home, _what(item)) for item in items])
    changed = [
        _row(change.finding, found.after.home, _lines(diff_words.fields(change))) for change in found.changed
    ]
    yield from _section("Changed", changed)
    for title, lines in diff_words.notes(found):
        yield from _heading(title)
        for line in lines[:MOST]:
            yield Padding(Text(text.clip(line, 300)), (0, 0, 0, 2))
        yield from _more(len(lines))
    if found.new:
        first = found.new[0].finding
        command = first.remedy.command or f"statemend explain {first.rule}"
        yield Text()
        place = diff_words.store(first, found.after.home)
        yield blocks.next_step(command, label=f"Next, for {text.clip(place, 200)}" if place else "Next")


def _section(title: str, rows: Sequence[Sequence[Text]]) -> Iterator[RenderableType]:
    if not rows:
        return
    yield from _heading(f"{title} ({len(rows):,})")
    yield Padding(blocks.Rows(rows[:MOST]), (0, 0, 0, 2))
    yield from _more(len(rows))


def _heading(title: str) -> Iterator[RenderableType]:
    yield Text()
    yield Text(title, style="bold")


def _more(total: int) -> Iterator[RenderableType]:
    if total > MOST:
        yield Text(f"  {total - MOST:,} more: --format json has them all", style="dim")


def _row(finding: Finding, home: str, what: Text) -> Sequence[Text]:
    return (
        Text(text.clip(finding.id, 60)),
        severity_text(finding.severity),
        Text(finding.verdict.value),
        Text(text.clip(finding.subject.session or "", 60)),
        Text(text.clip(diff_words.store(finding, home), 200)),
        what,
    )


def _what(item: Difference) -> Text:
    what = Text(text.clip(item.finding.summary, 200))
    if item.reason:
        what.append(f" ({text.clip(item.reason, 240)})", style="dim")
    return what


def _lines(lines: Sequence[str]) -> Text:
    return Text("\n".join(text.clip(line, 400) for line in lines))
