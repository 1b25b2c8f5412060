"""A release's own check of its store, ``hermes sessions repair --check-only``, says after our repairs what it
said before the damage, and the SQLite that the release runs on finds every search index to fit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from tests.hermes.families import damage, rotated
from tests.hermes.home import HermesHome, assistant, user
from tests.hermes.judging import planned

from statemend.repair.apply import apply
from statemend.repair.plan import dump
from statemend.repair.run import State

Homes = Callable[..., HermesHome]

LOST, TAGGED, COUNTED = (f"20261110_08{number}000_000099" for number in range(3))
MARK = '{"_delegate_from":"__orphaned__"}'
#: The releases whose check is content with a store that is sound.
SOUND = {"0.19.0", "0.20.1"}


def checked(home: HermesHome) -> tuple[int, str]:
    """What the release says of its store when nothing else has it open."""
    home.stop()
    home.restart()
    told = home.hermes("sessions", "repair", "--check-only")
    home.stop()
    return told.code, told.said


@pytest.mark.parametrize("release", [*sorted(SOUND), "0.22.2"])
def test_the_release_is_as_content_as_before(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    for session_id in (LOST, TAGGED, COUNTED):
        home.chat(session_id).say(user("What lies here?"), assistant("One file."))
        home.end(session_id)
    _, continuation = rotated(home)
    before = checked(home)
    assert ("opens cleanly" in before[1]) is (release in SOUND)
    damage(home, "DELETE FROM sessions WHERE id = ?", LOST)
    damage(home, "UPDATE sessions SET parent_session_id = NULL WHERE id = ?", continuation)
    damage(home, "UPDATE sessions SET message_count = 77 WHERE id = ?", COUNTED)
    damage(home, "UPDATE sessions SET model_config = ? WHERE id = ?", MARK, TAGGED)

    plan = planned(home, {"untag": "untag"})
    assert {step.recipe for step in plan.selected()} == {"rebuild-session", "relink", "counters", "untag"}
    assert plan.work().indexes == (("messages_fts_trigram",) if release == "0.22.2" else ())
    file = home.path.parent / "plan.json"
    file.write_bytes(dump(plan))
    assert apply(file, now=home.now).state is State.APPLIED

    assert checked(home) == before
    with closing(sqlite3.connect(home.state_db)) as connection:
        for index in ("messages_fts", "messages_fts_trigram"):
            connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
