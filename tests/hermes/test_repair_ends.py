"""After half an end is completed or cleared, the releases go on as with any other session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hermes.families import FIRST, damage
from tests.hermes.home import HermesHome
from tests.hermes.judging import digest, repaired

from statemend.audit.engine import audit
from statemend.repair.run import State
from statemend.repair.undo import undo

Homes = Callable[..., HermesHome]


def half_ended(home: HermesHome, column: str) -> None:
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    home.end(FIRST)
    damage(home, f"UPDATE sessions SET {column} = NULL")


def stamp(home: HermesHome) -> list[object]:
    return home.rows("SELECT ended_at, end_reason FROM sessions")[0]


@pytest.mark.parametrize("release", ["0.13.0", "0.19.0", "0.22.2"])
@pytest.mark.parametrize("column", ["ended_at", "end_reason"])
def test_what_is_cleared_goes_on_and_ends_whole(hermes_home: Homes, release: str, column: str) -> None:
    home = hermes_home(release)
    half_ended(home, column)

    repaired(home, {"half-end": "clear"})

    home.exchange(FIRST, 2)
    home.end(FIRST, "cli_close")
    ended_at, reason = stamp(home)
    assert (ended_at is not None, reason) == (True, "cli_close")
    home.stop()
    assert audit(home.path, rules=["LIF"], now=home.now).findings == ()


@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
@pytest.mark.parametrize("column", ["ended_at", "end_reason"])
def test_what_is_completed_stays_ended(hermes_home: Homes, release: str, column: str) -> None:
    home = hermes_home(release)
    half_ended(home, column)

    repaired(home, {"half-end": "complete"})

    whole = stamp(home)
    assert None not in whole
    home.end(FIRST, "another")
    assert stamp(home) == whole


@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_it_is_taken_back_exactly(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    half_ended(home, "ended_at")
    before = digest(home)
    run = repaired(home, {"half-end": "complete"})
    assert digest(home) != before

    assert undo(Path(run.folder), now=home.now).state is State.UNDONE

    assert digest(home) == before
