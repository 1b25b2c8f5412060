"""rearchive: rows that were archived and are live again go back, or stay, as the operator says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import HomeBuilder
from tests.repair.lineage import left
from tests.repair.planning import carry_out, only_choice, option_steps, plan_of

Build = Callable[..., HomeBuilder]
RELEASES = ["0.18.2", "0.19.0", "0.20.1", "0.22.2"]


def came_back(home: HomeBuilder, **counter: int) -> list[int]:
    """A session whose first four rows were archived and are live again."""
    rows = home.chat("s", 4, **counter)
    home.sql("UPDATE messages SET compacted = 1")
    home.turns("s", 2)
    return rows


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize(("option", "flags"), [("archive", (0, 1)), ("live", (1, 0))])
def test_each_option_settles_it(build: Build, version: str, option: str, flags: tuple[int, int]) -> None:
    home = build(version)
    rows = came_back(home)
    choice = only_choice(plan_of(home, rules=["MSG", "CNT"]))
    assert [each.id for each in choice.options] == ["archive", "live", "leave"]

    carry_out(home, option_steps(choice, option))

    marks = ", ".join(map(str, rows))
    assert set(home.sql(f"SELECT active, compacted FROM messages WHERE id IN ({marks})")) == {flags}
    assert home.sql(f"SELECT DISTINCT active, compacted FROM messages WHERE id NOT IN ({marks})") == [(1, 0)]
    assert home.findings("MSG002") == []
    assert home.findings("CNT001") == []


@pytest.mark.parametrize(("option", "live"), [("archive", 2), ("live", 6)])
def test_the_counter_is_set_with_them_and_by_nobody_else(build: Build, option: str, live: int) -> None:
    home = build()
    came_back(home)
    home.sql("UPDATE sessions SET message_count = 40")
    plan = plan_of(home, rules=["MSG002", "CNT001"])
    assert [one.rule for one in plan.left] == ["CNT001"]
    (step,) = option_steps(only_choice(plan), option)
    assert [operation.table for operation in step.operations] == ["messages"] * 4 + ["sessions"]
    carry_out(home, (step,))
    assert home.sql("SELECT message_count FROM sessions") == [(live,)]


def test_flags_of_another_kind_are_left_to_whoever_knows(build: Build) -> None:
    home = build()
    came_back(home)
    home.message("s", active=7)
    (one,) = left(plan_of(home, rules=["MSG002"]), "MSG002")
    assert "nothing in the store tells what these rows were" in one.reason


def test_without_the_row_of_the_session_it_waits(build: Build) -> None:
    home = build()
    came_back(home)
    home.sql("DELETE FROM sessions")
    (one,) = left(plan_of(home, rules=["MSG002"]), "MSG002")
    assert "ORP001" in one.reason
