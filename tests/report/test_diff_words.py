"""A comparison as people see it: on a terminal and in Markdown."""

from __future__ import annotations

import msgspec
from markdown_it import MarkdownIt
from rich.console import Console
from tests.report import sample

from statemend.report import diff_markdown, diff_table
from statemend.report.diff import Diff, diff

GITHUB = MarkdownIt("gfm-like", {"linkify": False, "html": True})


def table(found: Diff) -> str:
    console = Console(width=160, color_system=None)
    with console.capture() as captured:
        console.print(diff_table.renderable(found))
    return captured.get()


def every_part() -> Diff:
    """Something under every heading."""
    before = msgspec.structs.replace(sample.report(), rules=sample.RULES[:11] + sample.RULES[12:])
    lost, archived, orphan, *rest = sample.FINDINGS
    cycle = sample.finding("LIN004", "c", "a cycle")
    grown = msgspec.structs.replace(archived, summary="81 archived messages")
    before = msgspec.structs.replace(before, findings=(lost, archived, cycle, *rest), home="/old")
    return diff(before, sample.report(findings=(grown, orphan, *rest)))


def test_every_part_is_shown_in_both() -> None:
    found = every_part()
    for shown in (table(found), diff_markdown.render(found)):
        for part in (
            "New (1)",
            "Gone (1)",
            "Could not be looked for again (1)",
            "Changed (1)",
            "Rules that ended otherwise",
            "The second report could not determine",
            "To keep in mind",
            "2026-10-01T03:12:44Z",
            "→ 81 archived messages",
            "LIN004 cycle: not run → could not run",
        ):
            assert part in shown, part
        assert all(each.finding.id in shown for each in (*found.new, *found.gone, *found.unknown))
    assert f"Next: {found.new[0].finding.remedy.command}" in " ".join(table(found).split())


def test_nothing_new_is_told_in_a_few_lines() -> None:
    found = diff(sample.clean_report(), sample.clean_report())
    assert len(table(found).splitlines()) == 3
    assert "Nothing new, nothing gone, nothing changed." in table(found)
    assert len(diff_markdown.render(found).splitlines()) == 5


def test_many_are_counted_not_listed() -> None:
    found = diff(sample.clean_report(), sample.large_report())
    assert f"{1000 - diff_table.MOST} more" in table(found)
    assert f"{1000 - diff_markdown.MOST} more" in diff_markdown.render(found)
    assert len(diff_markdown.render(found)) < 60_000


def test_nothing_hostile_is_obeyed() -> None:
    hostile = sample.hostile_report()
    louder = msgspec.structs.replace(hostile.findings[0], summary=sample.HOSTILE)
    for found in (
        diff(sample.report(), hostile),
        diff(hostile, sample.report()),
        diff(hostile, msgspec.structs.replace(hostile, findings=(louder,))),
    ):
        document = diff_markdown.render(found)
        for shown in (table(found), document):
            assert not {"\x1b", "\u202e"} & set(shown)
        flat = []
        for token in GITHUB.parse(document):
            flat += [token, *(token.children or ())]
        assert {token.content for token in flat if token.type == "html_inline"} <= {"<!-- -->"}
        assert [token.content.strip() for token in flat if token.type == "html_block"] == [diff_markdown.MARK]
        assert not [token for token in flat if token.type in ("link_open", "image")]
