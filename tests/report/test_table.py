from __future__ import annotations

import unicodedata

from tests.report import sample

from statemend.report import table


def test_the_verdict_the_findings_what_was_not_looked_at_and_the_next_command_are_there() -> None:
    shown = table.render(sample.report())
    report = sample.report()
    assert report.verdict in shown
    assert all(finding.id in shown for finding in report.findings)
    assert "LIN004: one page of sessions could not be read" in shown
    assert "Next: statemend show /srv/hermes/state.db 20260812_091500_4f1d2c" in shown


def test_a_clean_home_is_told_in_a_few_lines() -> None:
    assert table.render(sample.clean_report()).splitlines() == [
        "statemend /srv/hermes",
        "No fault and no risk found.",
        "",
        "14 of 14 rules ran, 0 did not apply; 3 files beside the store",
    ]


def test_many_findings_are_counted_not_listed() -> None:
    shown = table.render(sample.large_report())
    assert f"{1000 - table.MOST_FINDINGS} more: -o report.html writes the whole report" in shown


def test_nothing_hostile_reaches_the_terminal() -> None:
    shown = table.render(sample.hostile_report())
    assert not {character for character in shown if unicodedata.category(character) in ("Cc", "Cf")} - {"\n"}
    assert "[U+001B]" in shown
    assert "[U+202E]" in shown
