"""The releases hide, list and follow what strays from its line as the rules about it say."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.hermes.families import FIRST, unlinked
from tests.hermes.home import HermesHome, assistant, user
from tests.hermes.judging import listed, told
from tests.hermes.scenes import Scene

from statemend.audit.engine import audit

Homes = Callable[..., HermesHome]
GOAL = "Which birds sing at night?"
RULES = ("LIN007", "LIN011", "LIN013")
#: Releases that never fill in what a bare row lacks.
FORGETTING = ("0.13.0", "0.16.0")


def test_a_home_in_use_is_silent(lived_in: Callable[[str], Scene], version: str) -> None:
    scene = lived_in(version)
    outcome = audit(scene.home, rules=RULES, now=scene.now)
    assert (outcome.undetermined, outcome.findings) == ((), ())


def asking(home: HermesHome) -> tuple[str, str]:
    """A subagent whose row could not be made, and then was by an account of tokens; it and who asked it."""
    chat = home.chat(FIRST)
    asked = {"name": "delegate_task", "arguments": json.dumps({"goal": GOAL})}
    calls = [{"id": "call_1", "type": "function", "function": asked}]
    chat.say(user("Find out about birds"), {"role": "assistant", "content": "", "tool_calls": calls})
    home.break_next("create_session")
    helper = chat.delegate(GOAL)
    helper.say(user(GOAL))
    home.store("update_token_counts", helper.session_id, input_tokens=5)
    helper.say(assistant("Nightingales do."))
    helper.close()
    return FIRST, helper.session_id


@pytest.mark.fires("LIN011", only=FORGETTING)
def test_a_run_whose_row_could_not_be_made_is_listed_as_a_chat(hermes_home: Homes, version: str) -> None:
    home = hermes_home(version)
    parent, run = asking(home)
    row = home.session(run)
    assert row is not None
    if version in FORGETTING:
        assert (row["source"], row["parent_session_id"], row["model_config"]) == ("unknown", None, None)
        assert listed(home) == {parent, run}
        assert told(home) == [("LIN011", "fault", run)]
    else:
        assert row["parent_session_id"] == parent
        assert listed(home) == {parent}
        assert told(home) == []


def test_a_run_that_was_over_before_its_parent_was_stored(hermes_home: Homes) -> None:
    home = hermes_home("0.19.0")
    chat = home.chat(FIRST)
    home.break_next("create_session")
    chat.say(user("Find out about birds"))
    helper = chat.delegate(GOAL)
    helper.say(user(GOAL))
    home.store("update_token_counts", helper.session_id, input_tokens=5)
    helper.say(assistant("Nightingales do."))
    helper.close()
    asked = {"name": "delegate_task", "arguments": json.dumps({"goal": GOAL})}
    calls = [{"id": "call_1", "type": "function", "function": asked}]
    chat.say({"role": "assistant", "content": "", "tool_calls": calls})
    assert listed(home) == {FIRST, helper.session_id}
    assert told(home, "LIN011") == [("LIN011", "fault", helper.session_id)]


@pytest.mark.fires("LIN007")
@pytest.mark.parametrize("newer", ["0.19.0", "0.22.2"])
def test_the_migration_hides_a_chat_that_went_on_in_an_unmarked_branch(
    hermes_home: Homes, newer: str
) -> None:
    home = hermes_home("0.13.0")
    first = home.gateway_session("42")
    chat = home.resume(first, "telegram")
    chat.say(user("one"), assistant("first"))
    branch = home.create_session("20260801_093000_abcdef12", "telegram", parent_session_id=first)
    for role, text in (("user", "one"), ("assistant", "first"), ("user", "two"), ("assistant", "second")):
        home.append(branch, role, text, gap=0.1)
    home.stop()
    routes = home.path / "sessions" / "sessions.json"
    entries = json.loads(routes.read_text())
    for entry in entries.values():
        entry["session_id"] = branch
    routes.write_text(json.dumps(entries))

    home.upgrade(newer)

    assert home.gateway_session("42") == branch
    assert branch not in listed(home)
    assert told(home) == [("LIN007", "fault", branch)]


@pytest.mark.fires("LIN013")
@pytest.mark.parametrize("release", ["0.13.0", "0.22.2"])
def test_no_release_follows_a_chain_without_links(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    ids = unlinked(home)
    assert home.tip(ids[0]) == ids[0]
    assert listed(home) == set(ids)
    if release == "0.22.2":
        assert home.lineage(ids[0]) == ids[:1]
    assert told(home) == [("LIN013", "fault", ids[0])]
