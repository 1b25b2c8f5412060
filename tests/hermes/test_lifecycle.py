"""The releases begin, end and hold sessions as the rules about lifecycle say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.hermes.families import FIRST, damage
from tests.hermes.home import DAY, HOUR, HermesError, HermesHome
from tests.hermes.judging import told
from tests.hermes.scenes import Scene

from statemend.audit.engine import audit

Homes = Callable[..., HermesHome]


def test_a_home_in_use_leaves_nothing_worth_telling(lived_in: Callable[[str], Scene], version: str) -> None:
    scene = lived_in(version)
    outcome = audit(scene.home, rules=("LIF",), now=scene.now + 30 * DAY)
    assert (outcome.undetermined, outcome.findings) == ((), ())


@pytest.mark.fires("LIF001")
@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_an_import_brings_half_an_end_along(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    message = {"role": "user", "content": "hello", "timestamp": home.now}
    record = {"id": FIRST, "source": "cli", "started_at": home.now, "ended_at": home.now + 9}
    home.store("import_sessions", [{**record, "messages": [message]}])
    assert told(home, "LIF") == [("LIF001", "fault", FIRST)]


@pytest.mark.fires("LIF002")
@pytest.mark.parametrize("release", ["0.13.0", "0.19.0", "0.22.2"])
def test_runs_that_nobody_ended_stay_open(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    for number in range(10):
        home.create_session(f"cron_job_20261110_0900{number:02}", "cron")
        home.advance(2 * HOUR)
    home.restart()
    home.advance(8 * DAY)
    assert len(home.rows("SELECT 1 FROM sessions WHERE ended_at IS NULL")) == 10
    assert told(home, "LIF") == [("LIF002", "leftover", None)]


@pytest.mark.parametrize("release", ["0.13.0", "0.22.2"])
def test_the_next_end_overwrites_a_reason_without_an_end(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    home.end(FIRST, "compression")
    damage(home, "UPDATE sessions SET ended_at = NULL")
    assert told(home, "LIF") == [("LIF001", "fault", FIRST)]
    home.restart()
    home.end(FIRST, "cli_close")
    assert home.value("SELECT end_reason FROM sessions", []) == "cli_close"


@pytest.mark.parametrize("release", ["0.13.0", "0.22.2"])
def test_an_end_without_a_reason_never_gets_one(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    home.end(FIRST)
    damage(home, "UPDATE sessions SET end_reason = NULL")
    home.restart()
    home.end(FIRST, "cli_close")
    assert told(home, "LIF") == [("LIF001", "fault", FIRST)]


@pytest.mark.fires("LIF003")
def test_an_account_of_tokens_makes_a_ghost(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    home.delete(FIRST)
    home.store("update_token_counts", FIRST, 7, 5)
    home.advance(2 * DAY)
    assert told(home, "LIF") == [("LIF003", "leftover", None)]


@pytest.mark.parametrize("release", ["0.16.0", "0.19.0", "0.22.2"])
def test_a_lock_without_end_holds_off_every_compression(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    assert home.store("try_acquire_compression_lock", FIRST, "first")
    home.advance(600)
    assert home.store("try_acquire_compression_lock", FIRST, "second")
    damage(home, "UPDATE compression_locks SET expires_at = ?", home.now + 900 * DAY)
    assert told(home, "LIF") == [("LIF004", "fault", FIRST)]
    home.restart()
    home.advance(30 * DAY)
    assert not home.store("try_acquire_compression_lock", FIRST, "third")


def test_a_turn_lease_without_end_keeps_the_session(hermes_home: Homes) -> None:
    home = hermes_home("0.22.2")
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    assert home.store("try_acquire_session_turn_lease", FIRST, "somebody")
    damage(home, "UPDATE session_turn_leases SET expires_at = ?", home.now + 900 * DAY)
    assert told(home, "LIF") == [("LIF004", "fault", FIRST)]
    home.restart()
    with pytest.raises(HermesError, match="SessionActiveWriteGuardError"):
        home.store("delete_session", FIRST, exclude_active_write_guards=True)
