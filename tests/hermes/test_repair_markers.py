"""Markers that contradict each other, as releases write or accept them: settled, the releases agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hermes.families import FIRST
from tests.hermes.home import HermesHome, assistant, user
from tests.hermes.judging import alarms, contents, digest, listed, repaired

from statemend.repair.run import State
from statemend.repair.undo import undo

Homes = Callable[..., HermesHome]
OTHER = "20261110_090500_000012"
KEY = "agent:main:telegram:dm:7"
NEWEST = ["0.19.0", "0.22.2"]


def stamped(home: HermesHome) -> str:
    """A continuation that the release itself marked as a reset, when it reopened the closed session after a
    reset had ended it, and a crash closed that by compression again; the id of the continuation."""
    chat = home.chat(FIRST)
    chat.turns(8, "garden")
    continuation = chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."))
    home.rows("UPDATE sessions SET session_key = ?", KEY)
    home.store("reopen_session", FIRST)
    home.end(FIRST, "session_reset")
    home.store("reopen_session", FIRST)
    home.end(FIRST, "compression")
    return continuation


def forked(home: HermesHome, *, copied: bool) -> str:
    """A session whose row says that it is a branch and a run, as the release accepts it; its id."""
    home.create_session(FIRST)
    home.exchange(FIRST, 3)
    marks = {"_branched_from": FIRST, "_delegate_from": FIRST, "cwd": "/srv"}
    home.create_session(OTHER, parent_session_id=FIRST, model_config=marks)
    for message in home.messages(FIRST)[:4] if copied else ():
        home.append(OTHER, message["role"], message["content"])
    home.exchange(OTHER, 1)
    return OTHER


def config(home: HermesHome, session: str) -> dict[str, object]:
    row = home.session(session)
    assert row is not None
    return dict(json.loads(row["model_config"] or "{}"))


@pytest.mark.fires("LIN005")
@pytest.mark.parametrize("release", ["0.20.1", "0.22.2"])
def test_a_continuation_that_a_release_marked_as_a_reset_is_followed_again(
    hermes_home: Homes, release: str
) -> None:
    home = hermes_home(release)
    continuation = stamped(home)
    assert config(home, continuation)["_reset_from"] == FIRST
    assert home.lineage(FIRST) == ([FIRST] if release == "0.22.2" else [FIRST, continuation])
    before = contents(home)
    assert alarms(home) == [("LIN005", continuation)]

    repaired(home)

    assert "_reset_from" not in config(home, continuation)
    assert home.tip(FIRST) == continuation
    assert home.lineage(FIRST) == home.lineage(continuation) == [FIRST, continuation]
    assert contents(home) == before
    assert alarms(home) == []
    home.restart()
    assert home.delete(FIRST)
    assert home.session_ids() == [continuation]


@pytest.mark.parametrize("release", NEWEST)
def test_a_continuation_that_is_marked_as_a_branch_is_followed_again(
    hermes_home: Homes, release: str
) -> None:
    home = hermes_home(release)
    chat = home.chat(FIRST)
    chat.turns(8, "garden")
    continuation = chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."))
    marks = json.dumps({**config(home, continuation), "_branched_from": FIRST})
    home.rows("UPDATE sessions SET model_config = ? WHERE id = ?", marks, continuation)
    assert home.tip(FIRST) == FIRST
    assert home.lineage(FIRST) == [FIRST]
    assert alarms(home) == [("LIN005", continuation)]

    repaired(home)

    assert home.tip(FIRST) == continuation
    assert home.lineage(FIRST) == [FIRST, continuation]
    assert listed(home) == {continuation}
    assert alarms(home) == []
    home.restart()
    assert home.delete(FIRST)
    assert home.session_ids() == [continuation]


@pytest.mark.parametrize("release", NEWEST)
def test_a_branch_that_a_deletion_would_take_outlives_its_parent(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    branch = forked(home, copied=True)
    assert OTHER not in listed(home)

    repaired(home)

    assert config(home, branch) == {"_branched_from": FIRST, "cwd": "/srv"}
    assert listed(home) == {FIRST, branch}
    assert home.tip(FIRST) == FIRST
    assert home.lineage(FIRST) == [FIRST]
    assert home.lineage(branch) == [branch]
    home.rows("INSERT INTO messages_fts_trigram (messages_fts_trigram, rank) VALUES ('integrity-check', 1)")
    assert home.delete(FIRST)
    assert home.session_ids() == [branch]


@pytest.mark.parametrize("choice", ["branch", "delegate"])
@pytest.mark.parametrize("release", NEWEST)
def test_the_operator_tells_what_the_rows_do_not(hermes_home: Homes, release: str, choice: str) -> None:
    home = hermes_home(release)
    session = forked(home, copied=False)

    repaired(home, {"markers": choice})

    assert listed(home) == ({FIRST, session} if choice == "branch" else {FIRST})
    assert home.tip(FIRST) == FIRST
    assert home.lineage(FIRST) == [FIRST]
    assert home.delete(FIRST)
    assert home.session_ids() == ([session] if choice == "branch" else [])


@pytest.mark.parametrize("release", NEWEST)
def test_undo_gives_the_markers_back(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    forked(home, copied=True)
    before, found = digest(home), alarms(home)
    run = repaired(home)
    assert alarms(home) == []

    assert undo(Path(run.folder), now=home.now).state is State.UNDONE

    assert digest(home) == before
    assert alarms(home) == found == [("LIN005", OTHER)]


def test_a_deletion_by_a_release_takes_the_branch_that_is_not_repaired(hermes_home: Homes) -> None:
    """The damage that the repair prevents."""
    home = hermes_home("0.22.2")
    forked(home, copied=True)
    assert home.delete(FIRST)
    assert home.session_ids() == []
