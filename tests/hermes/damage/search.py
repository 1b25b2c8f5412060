"""Damages to the search index."""

from __future__ import annotations

from typing import Any

from tests.hermes.damage.catalogue import LEFTOVER, RISK, Steps, Told, damage
from tests.hermes.damage.means import SESSION, rows, talk
from tests.hermes.home import HermesHome


def _without_triggers(home: HermesHome, event: str, statement: str, *bindings: Any) -> None:
    """Run a statement while the triggers that keep the indexes up to date after ``event`` are away."""
    triggers = home.rows(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name GLOB ?", f"messages_fts*_{event}"
    )
    for name, _ in triggers:
        home.rows(f"DROP TRIGGER {name}")
    home.rows(statement, *bindings)
    for _, sql in triggers:
        home.rows(sql)


@damage("FTS001")
def a_row_is_written_past_the_index(home: HermesHome) -> Steps:
    talk(home)
    yield
    columns = "session_id, role, content, timestamp"
    copied = "session_id, role, 'past the index', timestamp + 1.5"
    _without_triggers(
        home,
        "insert",
        f"INSERT INTO messages ({columns}) SELECT {copied} FROM messages WHERE session_id = ? LIMIT 1",
        SESSION,
    )
    row = rows(home, SESSION)[-1]
    home.rows("UPDATE sessions SET message_count = message_count + 1 WHERE id = ?", SESSION)
    return [Told("FTS001", rows=frozenset({row}))]


@damage("FTS002", follows="CNT001")
def a_row_is_deleted_past_the_index(home: HermesHome) -> Steps:
    row = talk(home)[-1]
    yield
    _without_triggers(home, "delete", "DELETE FROM messages WHERE id = ?", row)
    lawful = [Told("FTS002", verdict=LEFTOVER)] if home.release.at_least("0.22") else []
    return [Told("FTS002"), *lawful]


@damage("FTS003")
def a_trigger_is_dropped(home: HermesHome) -> Steps:
    """As a release does that runs on a Python without full-text search."""
    talk(home)
    yield
    home.rows("DROP TRIGGER messages_fts_insert")
    verdict = LEFTOVER if home.release.at_least("0.16") else RISK
    return [Told("FTS003", verdict=verdict, ids=("messages_fts_insert",))]
