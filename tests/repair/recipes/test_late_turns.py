"""late-turns: a session that messages came into after its end is opened again, if that is meant."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import VERSIONS, HomeBuilder
from tests.repair.lineage import END, child, choices, ended, left, mend
from tests.repair.planning import option_steps, plan_of, text_of

Build = Callable[..., HomeBuilder]
LATE = END + 500


def test_turns_beside_a_line_stay_where_they_are(build: Build) -> None:
    home = build("0.19.0")
    ended(home)
    child(home, "new")
    home.message("old", "user", "and the fence?", timestamp=LATE)
    plan = plan_of(home)
    assert choices(plan, "late-turns") == []
    assert "no plan changes whose a message is" in left(plan, "LIN010")[0].reason
    assert "fence" not in text_of(plan)


def test_a_dead_end_is_settled_by_its_own_choice(build: Build) -> None:
    home = build()
    ended(home)
    home.message("old", timestamp=LATE)
    plan = plan_of(home)
    assert "LIN001" in left(plan, "LIN010")[0].reason
    mend(home, option_steps(choices(plan, "dead-end")[0], "reopen"))
    assert home.findings("LIN010") == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("reason", ["new_session", "session_reset"])
def test_after_another_end_the_session_can_be_opened_again(build: Build, reason: str, version: str) -> None:
    home = build(version)
    ended(home, end_reason=reason)
    home.message("old", timestamp=LATE)
    (choice,) = choices(plan_of(home), "late-turns")
    assert [option.id for option in choice.options] == ["reopen", "leave"]
    mend(home, option_steps(choice, "reopen"))
    assert home.sql("SELECT ended_at, end_reason FROM sessions") == [(None, None)]


def test_an_end_that_tells_a_branch_is_not_cleared(build: Build) -> None:
    home = build("0.19.0")
    ended(home, end_reason="branched")
    child(home, "new", first="Another way?")
    home.message("old", timestamp=LATE)
    plan = plan_of(home)
    assert choices(plan, "late-turns") == []
    assert "only its end tells what new is to it" in left(plan, "LIN010")[0].reason


def test_an_end_that_tells_a_reset_is_not_cleared(build: Build) -> None:
    home = build("0.19.0")
    ended(home, end_reason="session_reset", session_key="k")
    child(home, "new", first="Good morning", session_key="k")
    home.message("old", timestamp=LATE)
    assert "only its end tells" in left(plan_of(home), "LIN010")[0].reason
