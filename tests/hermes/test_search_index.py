"""The releases keep, lose and heal their search indexes as the rules about them say."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest
from tests.hermes.home import HermesHome
from tests.hermes.scenes import Scene

from statemend.audit.engine import audit

Homes = Callable[..., HermesHome]
FIRST = "20261110_090000_000011"
TRIGGER = "messages_fts_insert"


def told(home: HermesHome, *rules: str) -> list[tuple[str, str, object]]:
    """Rule, verdict and index of each finding; the running release is stopped first."""
    home.stop()
    outcome = audit(home.path, rules=rules or ("FTS001", "FTS002"), now=home.now, deep=True)
    assert outcome.undetermined == ()
    return [
        (one.rule, one.verdict.value, next(fact.value for fact in one.evidence if fact.label == "name"))
        for one in outcome.findings
    ]


def finds(home: HermesHome, word: str) -> int:
    return len(home.store("search_messages", word))


def test_the_index_of_a_home_in_use_is_whole(lived_in: Callable[[str], Scene], version: str) -> None:
    scene = lived_in(version)
    outcome = audit(scene.home, rules=("FTS",), now=scene.now, deep=True)
    assert (outcome.undetermined, outcome.findings) == ((), ())


def test_a_lost_trigger_hides_messages_until_the_store_is_opened_anew(
    hermes_home: Homes, version: str
) -> None:
    home = hermes_home(version)
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    home.append(FIRST, "user", "marmalade")
    home.rows(f"DROP TRIGGER {TRIGGER}")
    home.append(FIRST, "user", "marmalade once more")
    assert finds(home, "marmalade") == 1
    heals = home.release.at_least("0.16")
    assert told(home) == [("FTS001", "leftover" if heals else "fault", "messages_fts")]
    assert told(home, "FTS003") == [("FTS003", "leftover" if heals else "risk", "messages_fts")]

    home.restart()

    assert finds(home, "marmalade") == (2 if heals else 1)
    assert {rule for rule, _, _ in told(home, "FTS")} == (set() if heals else {"FTS001", "FTS003"})


@pytest.mark.parametrize("release", ["0.13.0", "0.19.0", "0.22.2"])
def test_rows_written_past_the_triggers_stay_unfound_for_good(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    home.append(FIRST, "user", "marmalade")
    home.stop()
    with sqlite3.connect(home.state_db) as connection:
        (sql,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (TRIGGER,)).fetchone()
        connection.execute(f"DROP TRIGGER {TRIGGER}")
        connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) "
            "SELECT session_id, role, 'marmalade again', timestamp + 1 FROM messages ORDER BY id DESC LIMIT 1"
        )
        connection.execute(sql)
    connection.close()
    assert told(home) == [("FTS001", "fault", "messages_fts")]

    home.restart()

    assert finds(home, "marmalade") == 1
    assert told(home) == [("FTS001", "fault", "messages_fts")]


@pytest.mark.parametrize("release", ["0.13.0", "0.19.0", "0.22.2"])
def test_a_deletion_past_the_triggers_leaves_words_behind(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    home.stop()
    with sqlite3.connect(home.state_db) as connection:
        name = "messages_fts_delete"
        (sql,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
        connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM messages WHERE role = 'user'")
        connection.execute(sql)
    connection.close()
    assert told(home) == [("FTS002", "fault", "messages_fts")]


@pytest.mark.near_miss("FTS001")
@pytest.mark.parametrize("release", ["0.21.4", "0.22.2"])
def test_a_run_of_cron_that_a_chat_goes_on_with_keeps_its_old_messages_out(
    hermes_home: Homes, release: str
) -> None:
    home = hermes_home(release)
    run = home.create_session("cron_report_20261110_090000", "cron")
    home.exchange(run, 1)
    home.end(run, "cron_complete")
    home.gateway_session("77")
    assert home.gateway_session("77", switch=run) == run
    home.exchange(run, 2)
    assert home.value("SELECT source FROM sessions WHERE id = ?", [run]) == "telegram"
    assert home.value("SELECT COUNT(*) FROM messages_fts_trigram_docsize", []) == 2
    assert told(home) == []


def test_a_change_of_layout_leaves_the_index_whole(hermes_home: Homes) -> None:
    home = hermes_home("0.19.0")
    home.create_session(FIRST)
    for number in range(5):
        home.exchange(FIRST, number)
    home.upgrade("0.22.2")
    home.exchange(FIRST, 5)
    assert told(home) == []
    home.restart()
    assert home.hermes("sessions", "optimize-storage", "--yes").code == 0
    home.exchange(FIRST, 6)
    assert finds(home, "question") >= 5
    assert told(home) == []
