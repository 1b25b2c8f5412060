"""link-chain: segments that no release linked become one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, VERSIONS, HomeBuilder
from tests.repair.lineage import MARKING, SUMMARY, chains, choices, left, mend, tips
from tests.repair.planning import option_steps, plan_of, text_of

from statemend.store.schema import Era

Build = Callable[..., HomeBuilder]
PACE = 1000.0


def segment(home: HomeBuilder, number: int, **values: Any) -> None:
    """One segment of a conversation: it ends a second before the next begins."""
    began = START + number * PACE
    title = "Taxes" if number == 1 else f"Taxes #{number}"
    told = {"title": title, "started_at": began, "ended_at": began + PACE - 1, "end_reason": "cli_close"}
    home.session(f"s{number}", **{**told, "message_count": 2, **values})
    home.message(f"s{number}", "user", "What of my taxes?" if number == 1 else SUMMARY, timestamp=began)
    home.message(
        f"s{number}", "assistant", f"Answer {number}.", timestamp=began + PACE - 2, finish_reason="stop"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_release_follows_the_chain_to_its_end(build: Build, version: str) -> None:
    home = build(version)
    for number in (1, 2, 3):
        segment(home, number)
    plan = plan_of(home)
    (choice,) = choices(plan, "link-chain")
    assert [option.id for option in choice.options] == ["link", "leave"]
    assert "Answer" not in text_of(plan)
    mend(home, option_steps(choice, "link"))
    assert tips(home, "s1", (Era.V13, *MARKING)) == {"s3"}
    assert chains(home, "s3") == {("s1", "s2", "s3")}
    assert home.sql("SELECT id, end_reason FROM sessions ORDER BY id") == [
        ("s1", "compression"),
        ("s2", "compression"),
        ("s3", "cli_close"),
    ]


@pytest.mark.parametrize("end", [None, START + 5000])
def test_an_end_that_is_not_there_or_too_late_is_where_the_next_began(
    build: Build, end: float | None
) -> None:
    home = build("0.16.0")
    segment(home, 1, ended_at=end, end_reason=None if end is None else "cli_close")
    segment(home, 2)
    mend(home, option_steps(choices(plan_of(home), "link-chain")[0], "link"))
    assert home.sql("SELECT ended_at FROM sessions WHERE id = 's1'") == [(START + 2 * PACE,)]
    assert tips(home, "s1", (Era.V13, *MARKING)) == {"s2"}


def test_a_segment_that_was_talked_in_later_is_left(build: Build) -> None:
    home = build()
    segment(home, 1)
    segment(home, 2)
    home.message("s1", timestamp=START + 2 * PACE + 500)
    plan = plan_of(home)
    assert choices(plan, "link-chain") == []
    assert "s1 was talked in after s2 had begun" in left(plan, "LIN013")[0].reason
