"""After a lineage repair the releases themselves agree: resume, export, lists and delete."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hermes.families import FIRST, damage, forked, hijacked, rotated
from tests.hermes.home import HermesError, HermesHome, assistant, user
from tests.hermes.judging import alarms, contents, digest, listed, planned, repaired

from statemend.repair.run import State
from statemend.repair.undo import undo

Homes = Callable[..., HermesHome]
NEWEST = ["0.19.0", "0.22.2"]
UPGRADES = [("0.16.0", "0.19.0"), ("0.13.0", "0.22.2")]


@pytest.mark.parametrize("release", NEWEST)
def test_a_cut_continuation_is_followed_again(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    first, continuation = rotated(home)
    before = contents(home)
    damage(home, "UPDATE sessions SET parent_session_id = NULL WHERE id = ?", continuation)
    home.restart()
    assert home.tip(first) == first
    assert listed(home) == {first, continuation}

    repaired(home)

    assert home.tip(first) == continuation
    assert home.lineage(first) == home.lineage(continuation) == [first, continuation]
    assert listed(home) == {continuation}
    assert contents(home) == before
    assert alarms(home) == []
    home.restart()
    assert home.delete(first)
    assert home.session_ids() == [continuation]


@pytest.mark.parametrize("release", NEWEST)
def test_a_reopened_dead_end_takes_messages_again(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    home.end(FIRST, "compression")
    if release == "0.22.2":
        with pytest.raises(HermesError, match="CompressionSessionClosedError"):
            home.append(FIRST, "user", "Are you there?")

    repaired(home, {"dead-end": "reopen"})

    home.append(FIRST, "user", "Are you there?")
    assert [message["content"] for message in home.messages(FIRST)][-1] == "Are you there?"
    assert home.tip(FIRST) == FIRST
    assert home.lineage(FIRST) == [FIRST]
    assert alarms(home) == []


@pytest.mark.parametrize("keep", ["older", "younger"])
@pytest.mark.parametrize("release", NEWEST)
def test_one_continuation_is_followed_and_the_other_stays_as_a_branch(
    hermes_home: Homes, release: str, keep: str
) -> None:
    home = hermes_home(release)
    first, older, younger = forked(home)
    before = contents(home)
    kept, other = (older, younger) if keep == "older" else (younger, older)

    repaired(home, {"fork": f"continue:{kept}"})

    assert home.tip(first) == kept
    assert home.lineage(first) == [first, kept]
    assert home.tip(other) == other
    assert home.lineage(other) == [other]
    assert listed(home) == {kept, other}
    assert contents(home) == before
    assert alarms(home) == []
    home.restart()
    assert home.delete(first)
    assert set(home.session_ids()) == {kept, other}


@pytest.mark.parametrize("path", UPGRADES, ids="-".join)
def test_resume_no_longer_ends_in_an_old_subagent_run(hermes_home: Homes, path: tuple[str, str]) -> None:
    home = hermes_home(path[0])
    run, continuation = hijacked(home, path[1])
    assert home.tip(FIRST) == run

    repaired(home, {"fork": f"continue:{continuation}"})

    assert home.tip(FIRST) == continuation
    assert home.lineage(FIRST) == [FIRST, continuation]
    assert listed(home) == {continuation, run}
    assert alarms(home) == []
    home.restart()
    assert home.delete(FIRST)
    assert set(home.session_ids()) == {continuation, run}


@pytest.mark.parametrize("path", UPGRADES, ids="-".join)
def test_a_run_that_is_marked_as_one_is_hidden_and_goes_with_its_parent(
    hermes_home: Homes, path: tuple[str, str]
) -> None:
    home = hermes_home(path[0])
    _, continuation = hijacked(home, path[1])

    repaired(home, {"fork": f"hide-runs:{continuation}"})

    assert home.tip(FIRST) == continuation
    assert listed(home) == {continuation}
    assert alarms(home) == []
    home.restart()
    assert home.delete(FIRST)
    assert home.session_ids() == [continuation]


@pytest.mark.parametrize("path", UPGRADES, ids="-".join)
def test_a_chat_that_the_migration_hid_is_listed_again(hermes_home: Homes, path: tuple[str, str]) -> None:
    home = hermes_home(path[0])
    chat = home.chat(FIRST)
    chat.tool_turn("Disk?", "df", "95%", "Nearly full.")
    chat.tool_turn("And now?", "df", "96%", "Fuller.")
    home.end(FIRST)
    given = json.loads(home.session(FIRST)["model_config"])
    home.upgrade(path[1])
    assert listed(home) == set()

    repaired(home)

    assert listed(home) == {FIRST}
    assert json.loads(home.session(FIRST)["model_config"]) == given
    home.rows("INSERT INTO messages_fts_trigram (messages_fts_trigram, rank) VALUES ('integrity-check', 1)")
    assert alarms(home) == []


@pytest.mark.parametrize("path", UPGRADES, ids="-".join)
def test_the_continuation_of_a_reopened_session_is_listed_and_outlives_it(
    hermes_home: Homes, path: tuple[str, str]
) -> None:
    home = hermes_home(path[0])
    first, continuation = rotated(home)
    home.store("reopen_session", first)
    home.resume(first).say(user("Once more"), assistant("Gladly."))
    home.end(first)
    home.upgrade(path[1])
    assert listed(home) == {first}

    repaired(home, {"untag": "branch"})

    assert listed(home) == {first, continuation}
    assert home.tip(first) == first
    assert alarms(home) == []
    home.restart()
    assert home.delete(first)
    assert home.session_ids() == [continuation]


@pytest.mark.parametrize("release", NEWEST)
def test_a_marked_continuation_is_followed_again(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    first, continuation = rotated(home)
    mark(home, continuation, first)
    home.restart()
    assert home.tip(first) == first

    repaired(home)

    assert home.tip(first) == continuation
    assert home.lineage(first) == [first, continuation]
    assert listed(home) == {continuation}
    home.rows("INSERT INTO messages_fts_trigram (messages_fts_trigram, rank) VALUES ('integrity-check', 1)")
    assert home.delete(first)
    assert home.session_ids() == [continuation]


def mark(home: HermesHome, session: str, parent: str) -> None:
    """A false subagent mark, the search index following it as after the release's own rebuild."""
    statement = "UPDATE sessions SET model_config = json_object('_delegate_from', ?) WHERE id = ?"
    damage(home, statement, parent, session)
    damage(home, "INSERT INTO messages_fts_trigram (messages_fts_trigram) VALUES ('rebuild')")


def cut(home: HermesHome) -> None:
    _, continuation = rotated(home)
    damage(home, "UPDATE sessions SET parent_session_id = NULL WHERE id = ?", continuation)


def dead(home: HermesHome) -> None:
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    home.end(FIRST, "compression")


def marked(home: HermesHome) -> None:
    first, continuation = rotated(home)
    mark(home, continuation, first)


@pytest.mark.parametrize(
    ("break_it", "recipe"),
    [(cut, "relink"), (dead, "dead-end"), (forked, "fork"), (marked, "untag")],
    ids=["relink", "dead-end", "fork", "untag"],
)
@pytest.mark.parametrize("release", NEWEST)
def test_undo_gives_the_store_back(
    hermes_home: Homes, release: str, break_it: Callable[[HermesHome], object], recipe: str
) -> None:
    home = hermes_home(release)
    break_it(home)
    before = digest(home)
    found = alarms(home)
    plan = planned(home)
    choose = {recipe: next(o.id for c in plan.choices for o in c.options)} if plan.choices else {}
    run = repaired(home, choose)
    assert alarms(home) != found

    assert undo(Path(run.folder), now=home.now).state is State.UNDONE

    assert digest(home) == before
    assert alarms(home) == found
    home.restart()
    home.rows("INSERT INTO messages_fts_trigram (messages_fts_trigram, rank) VALUES ('integrity-check', 1)")
