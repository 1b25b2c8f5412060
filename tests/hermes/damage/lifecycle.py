"""Damages to how sessions begin and end."""

from __future__ import annotations

import json

from tests.hermes.damage.catalogue import LEFTOVER, Steps, Told, damage
from tests.hermes.damage.means import SESSION, talk
from tests.hermes.home import DAY, HermesHome


@damage("LIF001")
def a_reason_without_an_end(home: HermesHome) -> Steps:
    talk(home)
    yield
    home.rows("UPDATE sessions SET ended_at = NULL WHERE id = ?", SESSION)
    return [Told("LIF001", SESSION)]


@damage("LIF001")
def an_end_without_a_reason(home: HermesHome) -> Steps:
    talk(home)
    yield
    home.rows("UPDATE sessions SET end_reason = NULL WHERE id = ?", SESSION)
    return [Told("LIF001", SESSION)]


@damage("LIF002")
def runs_that_never_end(home: HermesHome) -> Steps:
    """Early releases did not end what cron began."""
    talk(home)
    yield
    for number in range(12):
        home.exchange(home.create_session(f"cron_flood_20261201_0900{number:02}", "cron"), number)
    home.advance(30 * DAY)
    return [Told("LIF002", verdict=LEFTOVER, ids=("cron_flood_20261201_090011",))]


@damage("LIF003")
def an_account_makes_a_ghost(home: HermesHome) -> Steps:
    """Tokens are counted for a session that was deleted meanwhile."""
    talk(home)
    home.delete(SESSION)
    yield
    home.store("update_token_counts", SESSION, 7, 5)
    home.advance(2 * DAY)
    return [Told("LIF003", verdict=LEFTOVER, ids=(SESSION,))]


@damage("LIF004", since="0.16")
def a_lock_never_ends(home: HermesHome) -> Steps:
    """The clock ran far ahead when it was taken."""
    talk(home)
    yield
    assert home.store("try_acquire_compression_lock", SESSION, "somebody")
    home.rows("UPDATE compression_locks SET expires_at = ?", home.now + 900 * DAY)
    return [Told("LIF004", SESSION)]


@damage("LIF005", since="0.18")
def tests_run_with_this_home(home: HermesHome) -> Steps:
    """The gateway of a test keeps its routes here (#82770)."""
    talk(home)
    yield
    scope = "/tmp/pytest-of-somebody/pytest-7/test_routes0/sessions"
    entry = json.dumps({"session_id": SESSION, "session_key": "agent:main:telegram:dm:1"})
    home.store("save_gateway_routing_entry", "agent:main:telegram:dm:1", entry, scope=scope)
    return [Told("LIF005", verdict=LEFTOVER, ids=(SESSION, scope))]
