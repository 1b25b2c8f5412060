from __future__ import annotations

from markdown_it import MarkdownIt
from tests.report import sample

from statemend.report import markdown, summary
from statemend.report.baseline import apply_baseline
from statemend.report.model import SkippedEntry, StoreEntry

GITHUB = MarkdownIt("gfm-like", {"linkify": False, "html": True})


def test_the_verdict_the_counts_the_worst_and_what_stays_open_are_there() -> None:
    shown = summary.render(sample.report())
    assert shown.startswith(markdown.MARK)
    assert f"### {sample.report().verdict}" in shown
    assert "| critical | 2 | 0 | 0 | 0 |" in shown
    order = [shown.index(finding.id) for finding in sample.FINDINGS[:2]]
    assert order == sorted(order)
    assert "Next: `statemend show /srv/hermes/state.db 20260812_091500_4f1d2c" in shown
    assert "- LIN004: one page of sessions could not be read" in shown


def test_a_clean_home_is_three_lines() -> None:
    assert summary.render(sample.clean_report()).split("\n\n")[1:] == [
        "`/srv/hermes`, 2026-10-01T03:12:44Z, exit code 0.\n"
    ]


def test_it_stays_short_whatever_was_found() -> None:
    shown = summary.render(sample.large_report())
    assert len(shown) < 6000
    assert f"- {1000 - summary.MOST_FINDINGS} more in the full report" in shown


def test_everything_that_could_not_be_determined_is_named() -> None:
    stores = (StoreEntry(path=sample.STORE, size=1, unchanged=False),)
    skipped = (SkippedEntry("/x/a.md", "permission denied", unread=True), SkippedEntry("/x/b", "no kind"))
    shown = summary.render(sample.report(stores=stores, skipped=skipped))
    assert "- `/x/a.md`: permission denied" in shown
    assert f"- `{sample.STORE}`: changed while it was read" in shown
    assert "/x/b" not in shown


def test_a_hostile_report_shows_no_markup_of_others() -> None:
    flat = []
    for token in GITHUB.parse(summary.render(sample.hostile_report())):
        flat += [token, *(token.children or ())]
    assert {token.content for token in flat if token.type == "html_inline"} <= {"<!-- -->"}
    assert [token.content.strip() for token in flat if token.type == "html_block"] == [markdown.MARK]
    assert not [token for token in flat if token.type in ("link_open", "image")]
    assert not {"\x1b", "\u202e"} & set(summary.render(sample.hostile_report()))


def test_a_baseline_is_told() -> None:
    shown = summary.render(apply_baseline(sample.report(), [sample.FINDINGS[0].id, "EXP003-0000000001"]))
    assert "; 1 known finding hidden by the baseline." in shown
    assert "\n1 known finding of the baseline no longer found: EXP003-0000000001." in shown
    assert sample.FINDINGS[0].id not in shown


def test_message_texts_are_not_in_it() -> None:
    assert "second line" not in summary.render(sample.hostile_report())
