"""The releases take late turns, serve a chat twice and branch without a mark as the rules about lines say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.hermes.families import FIRST, branched, unmark
from tests.hermes.home import DAY, HOUR, HermesError, HermesHome, assistant, user
from tests.hermes.judging import listed, told
from tests.hermes.scenes import Scene

from statemend.audit.engine import audit

Homes = Callable[..., HermesHome]
RULES = ("LIN006", "LIN010", "LIN012")
ACCEPTING = ("0.13.0", "0.16.0", "0.18.2", "0.19.0")


def test_a_home_in_use_is_silent(lived_in: Callable[[str], Scene], version: str) -> None:
    scene = lived_in(version)
    outcome = audit(scene.home, rules=RULES, now=scene.now)
    assert (outcome.undetermined, outcome.findings) == ((), ())


@pytest.mark.fires("LIN010", only=ACCEPTING)
def test_a_turn_after_the_compression_stands_beside_the_line(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    chat = home.chat(FIRST)
    chat.turns(10, "garden")
    chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."))
    home.advance(600)
    if version not in ACCEPTING:
        with pytest.raises(HermesError, match="CompressionSessionClosedError"):
            home.append(FIRST, "user", "And the gate?")
        assert told(home, *RULES) == []
        return
    home.append(FIRST, "user", "And the gate?")
    assert all(row["content"] != "And the gate?" for row in home.messages(chat.session_id))
    assert told(home, *RULES) == [("LIN010", "fault", FIRST)]


@pytest.mark.parametrize("release", ["0.13.0", "0.22.2"])
def test_a_clock_that_was_set_back_makes_no_late_turns(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    home.advance(DAY)
    home.chat(FIRST).turns(10, "garden")
    home.process.now -= 2 * HOUR
    home.process.call("rest", now=home.now)
    chat = home.resume(FIRST)
    chat.rotate()
    chat.say(user("And the fence?"), assistant("Paint it."), gap=3 * HOUR)
    ended = home.value("SELECT ended_at FROM sessions WHERE id = ?", [FIRST])
    assert home.messages(FIRST)[-1]["timestamp"] > ended + HOUR
    assert told(home, "LIN") == []


@pytest.mark.fires("LIN012")
@pytest.mark.parametrize("release", ["0.18.2", "0.22.2"])
def test_two_sessions_of_one_chat_are_told(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    first = home.gateway_session("42")
    second = home.gateway_session("42", reset=True)
    home.store("reopen_session", first)
    for number in range(3):
        home.advance(60)
        home.exchange(first, number)
        home.exchange(second, number)
    assert told(home, *RULES) == [("LIN012", "undecidable", None)]


@pytest.mark.fires("LIN006")
def test_a_branch_without_a_mark_is_lost_when_its_parent_goes_on(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    parent, branch = branched(home)
    unmark(home)
    home.restart()
    if version == "0.22.2":  # it begins the branch before it ends the parent
        assert branch not in listed(home)
        assert told(home, *RULES) == [("LIN006", "fault", branch)]
        return
    assert branch in listed(home)
    assert told(home, *RULES) == ([("LIN006", "leftover", branch)] if version >= "0.16" else [])

    home.restart()
    home.store("reopen_session", parent)
    home.append(parent, "user", "still here")

    assert branch not in listed(home)
    assert told(home, *RULES) == [("LIN006", "fault", branch)]


def test_a_branch_without_a_mark_is_no_rival_of_the_continuation(hermes_home: Homes) -> None:
    home = hermes_home("0.13.0")
    parent, branch = branched(home)
    home.store("reopen_session", parent)
    again = home.resume(parent)
    again.turns(9, "pond")
    again.rotate()
    again.say(user("Fish?"), assistant("Two."))
    assert home.tip(parent) == again.session_id
    assert told(home, "LIN") == [("LIN006", "fault", branch)]


@pytest.mark.parametrize(("release", "turns"), [("0.16.0", 2), ("0.19.0", 3), ("0.22.2", 2)])
def test_an_undo_beyond_the_summary_makes_no_branch_of_a_continuation(
    hermes_home: Homes, release: str, turns: int
) -> None:
    home = hermes_home(release)
    chat = home.chat(FIRST)
    chat.turns(9, "garden")
    chat.rotate()
    for _ in range(turns):
        chat.undo()
    chat.say(user("ok"), assistant("fine"))
    first_rows = "SELECT active FROM messages WHERE session_id = ? ORDER BY id LIMIT 4"
    assert {0, 1} == {active for (active,) in home.rows(first_rows, chat.session_id)}
    assert told(home, "LIN") == []
    if release == "0.19.0":
        home.restart()
        again = home.resume(chat.session_id)
        again.turns(7, "pond")
        again.compact()
        assert told(home, "LIN") == []


@pytest.mark.parametrize("release", ["0.18.2", "0.19.0", "0.22.2"])
def test_resume_of_the_parent_goes_into_a_branch_without_a_mark(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    parent, branch = branched(home)
    assert home.store("resolve_resume_session_id", parent) == parent
    unmark(home)
    home.restart()
    assert home.store("resolve_resume_session_id", parent) == branch
