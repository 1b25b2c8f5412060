"""Answers at a terminal, wide and narrow."""

from __future__ import annotations

import pytest
from rich.console import Group
from rich.text import Text
from tests.report import sample

from statemend.report import blocks, table
from statemend.report.model import worst_first

WIDTHS = (40, 60, 80, 100, 140)
COMMAND = "statemend undo /srv/hermes.statemend/20261130T110312Z-1f2e3d4c"


@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_says_everything_however_narrow_the_terminal_is(width: int) -> None:
    report = sample.report()
    shown = blocks.plain(table.renderable(report), width)
    words = " ".join(shown.split())
    for finding in worst_first(report.findings):
        assert f"{finding.id} " in shown
        assert finding.severity.value in shown
        assert (finding.subject.session or "") in shown
        if width not in (80, 100):  # where the columns stand between the words of a summary
            assert finding.summary in words
    assert "…" not in shown


def test_prose_has_a_column_while_there_is_room_for_it() -> None:
    rows = blocks.Rows([(Text("ABC001"), Text("high"), Text("word " * 9))], head=("Rule", "How", "What"))
    assert blocks.plain(rows, 39).splitlines()[0] == "Rule    How   What"
    assert blocks.plain(rows, 37).splitlines()[0] == "ABC001  high"
    assert blocks.plain(rows, 37).splitlines()[1].startswith("  word word")


def test_a_column_that_is_empty_takes_no_room() -> None:
    rows = blocks.Rows([(Text("ABC001"), Text(""), Text("word"))], head=("Rule", "Session", "What"))
    assert blocks.plain(rows).splitlines() == ["Rule    What", "ABC001  word"]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_command_stays_in_one_line_to_be_copied(width: int) -> None:
    shown = blocks.plain(Group(blocks.next_step(COMMAND)), width)
    assert shown == f"Next: {COMMAND}\n"


def test_a_fact_without_a_value_is_left_out_and_an_absurd_one_is_cut() -> None:
    shown = blocks.plain(blocks.facts([("run", ""), ("note", "x" * 700), ("end", "\x1b[2J")]), 900)
    assert "run" not in shown
    assert "(700 characters)" in shown
    assert "  end   [U+001B][2J" in shown
