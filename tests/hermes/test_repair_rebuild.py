"""A session whose row another program deleted is rebuilt, and the releases take it for one of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.hermes.families import forget
from tests.hermes.home import DAY, HOUR, Conversation, HermesError, HermesHome, assistant, user
from tests.hermes.judging import digest, planned

from statemend.repair.apply import apply
from statemend.repair.plan import dump
from statemend.repair.run import Run, State
from statemend.repair.session_row import MARK
from statemend.repair.undo import undo

Homes = Callable[..., HermesHome]

TALKING = "20260801_090000_aaaaaa"
OTHER = "20260801_091500_bbbbbb"
NEWEST = ["0.19.0", "0.22.2"]
#: What a rebuilt row has in its own way, or what belongs to a moment that has passed.
OWN = frozenset(
    {"model_config", "pinned", "last_activity_at", "last_activity_description", "last_activity_provenance"}
)


def talk(home: HermesHome) -> Conversation:
    """A chat with tool calls and archived turns, exported once, and gone on with since."""
    home.chat(OTHER).say(user("hello"), assistant("hi"))
    chat = home.chat(TALKING)
    chat.tool_turn("What lies here?", "ls", "notes.txt", "One file.")
    chat.turns(9)
    chat.compact()
    chat.tool_turn("And now?", "ls", "notes.txt", "Still one.")
    home.title(TALKING, "The garden")
    home.export(TALKING, "jsonl")
    chat.say(user("Are you still there?"), assistant("I am."), gap=60)
    return chat


def row(home: HermesHome) -> dict[str, Any]:
    names = [each[1] for each in home.rows("PRAGMA table_info(sessions)")]
    (values,) = home.rows("SELECT * FROM sessions WHERE id = ?", TALKING)
    return dict(zip(names, values, strict=True))


def contents(home: HermesHome) -> list[list[Any]]:
    return home.rows("SELECT * FROM messages ORDER BY id")


def repaired(home: HermesHome) -> Run:
    """Plan and apply; the release runs again afterwards."""
    plan = planned(home)
    assert [step.recipe for step in plan.steps] == ["rebuild-session"]
    file = home.path.parent / "plan.json"
    file.write_bytes(dump(plan))
    run = apply(file, now=home.now)
    assert (run.state, run.new, run.remaining) == (State.APPLIED, (), ())
    home.restart()
    return run


@pytest.mark.parametrize("release", NEWEST)
def test_what_could_not_be_appended_can_be_again_and_all_is_as_it_was(
    hermes_home: Homes, release: str
) -> None:
    home = hermes_home(release)
    talk(home)
    before = row(home)
    shown, exported, stored = home.messages(TALKING), home.store("export_session", TALKING), contents(home)
    forget(home, TALKING)
    assert home.session(TALKING) is None
    with pytest.raises(HermesError, match="FOREIGN KEY constraint failed"):
        home.append(TALKING, "user", "and now?")

    repaired(home)

    after = row(home)
    assert {name: value for name, value in after.items() if name not in OWN} == {
        name: value for name, value in before.items() if name not in OWN
    }
    assert MARK in after["model_config"]
    assert home.messages(TALKING) == shown
    assert contents(home) == stored
    again = home.store("export_session", TALKING)
    assert again["messages"] == exported["messages"]
    home.append(TALKING, "user", "and now?")
    assert [message["content"] for message in home.messages(TALKING)][len(shown) :] == ["and now?"]
    assert row(home)["message_count"] == before["message_count"] + 1


@pytest.mark.fires("EXP004")
@pytest.mark.parametrize("release", NEWEST)
def test_an_agent_goes_on_with_a_rebuilt_session(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    talk(home)
    forget(home, TALKING)
    repaired(home)

    chat = home.resume(TALKING)
    chat.say(user("Where were we?"), assistant("In the garden."))

    assert [message["content"] for message in home.messages(TALKING)][-2:] == [
        "Where were we?",
        "In the garden.",
    ]
    assert TALKING in {listed["id"] for listed in home.store("list_sessions_rich", limit=100)}


@pytest.mark.parametrize("release", NEWEST)
def test_a_rebuilt_session_is_deleted_whole_when_the_user_asks(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    talk(home)
    forget(home, TALKING)
    repaired(home)

    assert home.delete(TALKING)

    assert home.session(TALKING) is None
    assert home.rows("SELECT COUNT(*) FROM messages WHERE session_id = ?", TALKING) == [[0]]
    assert home.rows("PRAGMA foreign_key_check") == []
    assert home.session(OTHER) is not None


@pytest.mark.parametrize("release", NEWEST)
def test_without_any_export_the_messages_alone_make_the_row(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    home.create_session(TALKING)
    for number in range(3):
        home.exchange(TALKING, number)
    before = row(home)
    forget(home, TALKING)

    repaired(home)

    after = row(home)
    assert after["source"] == "recovered"
    assert (after["message_count"], after["tool_call_count"]) == (
        before["message_count"],
        before["tool_call_count"],
    )
    home.append(TALKING, "user", "and now?")
    assert len(home.messages(TALKING)) == 7


def test_while_an_agent_was_talking_what_the_store_still_has_is_reached_again(hermes_home: Homes) -> None:
    """0.19 talks on without the row and loses what it says; the log tells. What was stored comes back."""
    home = hermes_home("0.19.0")
    chat = talk(home)
    shown = home.messages(TALKING)
    home.advance(HOUR)
    forget(home, TALKING)
    chat.say(user("Do you hear me?"), assistant("Yes."), gap=60)

    repaired(home)

    assert home.messages(TALKING) == shown
    plan = planned(home)
    assert plan.steps == ()
    assert "ORP004" in {left.rule for left in plan.left}


def test_the_newest_release_does_not_prune_what_was_rebuilt(hermes_home: Homes) -> None:
    home = hermes_home("0.22.2")
    for session_id in (TALKING, OTHER):
        home.create_session(session_id)
        home.exchange(session_id, 1)
    forget(home, TALKING)
    repaired(home)
    for session_id in (TALKING, OTHER):
        home.end(session_id)
    home.advance(400 * DAY)

    home.store("maybe_auto_prune_and_vacuum", retention_days=90, min_interval_hours=0, vacuum=False)

    assert home.session_ids() == [TALKING]
    assert len(home.messages(TALKING)) == 2


@pytest.mark.parametrize("release", NEWEST)
def test_the_repair_is_taken_back_exactly(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    talk(home)
    forget(home, TALKING)
    before = digest(home)
    run = repaired(home)
    assert digest(home) != before

    assert undo(Path(run.folder), now=home.now).state is State.UNDONE

    assert digest(home) == before
