"""The counter of each release, and what its clean-up of empty sessions does when the counter is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.hermes.home import HermesHome
from tests.hermes.operations import Family, Life, families

from statemend.audit.engine import audit
from statemend.audit.finding import Finding, Severity
from statemend.store.connection import open_for_audit

MakeHome = Callable[..., HermesHome]
SESSION = "20260801_090000_aaaaaa"


def drift(home: HermesHome) -> tuple[Finding, ...]:
    found = audit(home.path, rules=["CNT001"], now=home.now)
    assert found.undetermined == ()
    return found.findings


def test_no_release_drifts_by_itself(hermes_home: MakeHome, version: str) -> None:
    home = hermes_home(version)
    chat = home.chat(SESSION)
    chat.turns(6)
    chat.undo()
    chat.turns(2)
    if home.release.at_least("0.18"):
        chat.compact()
        chat.turns(1)
        chat.undo()
    chat.rotate()
    chat.turns(1)
    chat.branch()
    chat.turns(1)
    chat.close()
    home.stop()

    assert drift(home) == ()


@pytest.mark.parametrize("release", ["0.19.0", "0.20.1", "0.22.2"])
@settings(
    derandomize=True,
    deadline=None,
    max_examples=1,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(lives=families(12))
def test_no_life_of_a_session_makes_its_counter_drift(
    lives: list[Family], release: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("life")
    with HermesHome(release, folder / "home") as home:
        store = Life(home).run(lives, folder / "lives" / "state.db")

    found = audit(store, rules=["CNT001"])

    assert found.undetermined == ()
    assert found.findings == ()


def test_a_clean_up_that_believes_the_counter_deletes_the_messages(
    hermes_home: MakeHome, version: str
) -> None:
    home = hermes_home(version)
    home.create_session(SESSION)
    home.exchange(SESSION, 1)
    home.end(SESSION)
    home.rows("UPDATE sessions SET message_count = 0 WHERE id = ?", SESSION)
    home.stop()
    (finding,) = drift(home)
    warned = finding.severity is Severity.HIGH

    after = HermesHome(version, home.path, now=home.now)
    if home.release.at_least("0.16"):
        after.store("delete_empty_sessions")
    after.stop()

    with open_for_audit(home.state_db) as store:
        left = store.value("SELECT COUNT(*) FROM messages")
    assert (left == 0) is warned
