"""After the repairs of rings, late turns and branches without a mark the releases themselves agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hermes.families import FIRST, branched, unlinked, unmark
from tests.hermes.home import HermesHome, assistant, user
from tests.hermes.judging import alarms, contents, digest, listed, repaired

from statemend.repair.run import State
from statemend.repair.undo import undo

Homes = Callable[..., HermesHome]
NEWEST = ["0.19.0", "0.22.2"]


def hidden_branch(home: HermesHome) -> tuple[str, str]:
    """A branch that lost its mark, and whose parent went on; the parent and the branch."""
    parent, branch = branched(home)
    unmark(home)
    home.restart()
    home.store("reopen_session", parent)
    home.append(parent, "user", "still here")
    return parent, branch


def reset_in_use(home: HermesHome) -> str:
    """A chat that was reset, and that a message came into afterwards."""
    home.create_session(FIRST)
    home.exchange(FIRST, 1)
    home.end(FIRST, "session_reset")
    home.advance(600)
    home.append(FIRST, "user", "Are you there?")
    return FIRST


def ring(home: HermesHome) -> tuple[str, str, str]:
    """Three sessions, each compressed into the next, and the first a child of the last."""
    chat = home.chat(FIRST)
    ids = [FIRST]
    for topic in ("garden", "shed"):
        chat.turns(9, topic)
        ids.append(chat.rotate())
    chat.say(user("And the fence?"), assistant("Paint it."))
    home.rows("UPDATE sessions SET parent_session_id = ? WHERE id = ?", ids[2], FIRST)
    return ids[0], ids[1], ids[2]


@pytest.mark.parametrize("release", NEWEST)
def test_a_branch_that_gets_its_mark_is_listed_and_outlives_its_parent(
    hermes_home: Homes, release: str
) -> None:
    home = hermes_home(release)
    parent, branch = hidden_branch(home)
    assert branch not in listed(home)
    rows = contents(home)

    repaired(home)

    assert listed(home) == {parent, branch}
    assert home.store("resolve_resume_session_id", parent) == parent
    assert contents(home) == rows
    assert alarms(home) == []
    home.restart()
    assert home.delete(parent)
    assert home.session_ids() == [branch]


@pytest.mark.parametrize("release", NEWEST)
def test_a_reset_chat_that_talk_went_into_is_open_again(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    reset_in_use(home)
    assert alarms(home) == [("LIN010", FIRST)]

    repaired(home, {"late-turns": "reopen"})

    row = home.session(FIRST)
    assert row is not None
    assert (row["ended_at"], row["end_reason"]) == (None, None)
    home.append(FIRST, "assistant", "Yes.")
    assert [message["content"] for message in home.messages(FIRST)][-2:] == ["Are you there?", "Yes."]
    assert alarms(home) == []


@pytest.mark.parametrize("release", NEWEST)
def test_a_ring_that_is_opened_is_a_line_again(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    first, second, last = ring(home)
    rows = contents(home)

    repaired(home, {"cycle": f"first:{first}"})

    assert home.tip(first) == last
    assert home.lineage(last) == home.lineage(first) == [first, second, last]
    assert contents(home) == rows
    assert alarms(home) == []


@pytest.mark.parametrize(
    ("break_it", "choose"),
    [
        (hidden_branch, {}),
        (reset_in_use, {"late-turns": "reopen"}),
        (ring, {"cycle": f"first:{FIRST}"}),
        (unlinked, {"link-chain": "link"}),
    ],
    ids=["branch-mark", "late-turns", "cycle", "link-chain"],
)
@pytest.mark.parametrize("release", NEWEST)
def test_undo_gives_the_store_back(
    hermes_home: Homes, release: str, break_it: Callable[[HermesHome], object], choose: dict[str, str]
) -> None:
    home = hermes_home(release)
    break_it(home)
    before = digest(home)
    found = alarms(home)
    run = repaired(home, choose)
    assert alarms(home) != found
    assert undo(Path(run.folder), now=home.now).state is State.UNDONE
    assert digest(home) == before
    assert alarms(home) == found


def run_without_a_parent(home: HermesHome) -> tuple[str, str]:
    """A subagent's run that was over before the row of its parent was stored; the parent and the run."""
    chat = home.chat(FIRST)
    home.break_next("create_session")
    chat.say(user("Find out about birds"))
    helper = chat.delegate("Which birds sing at night?")
    helper.say(user("Which birds sing at night?"))
    home.store("update_token_counts", helper.session_id, input_tokens=5)
    helper.say(assistant("Nightingales do."))
    helper.close()
    asked = {"name": "delegate_task", "arguments": json.dumps({"goal": "Which birds sing at night?"})}
    calls = [{"id": "call_1", "type": "function", "function": asked}]
    chat.say({"role": "assistant", "content": "", "tool_calls": calls})
    chat.say(
        {"role": "tool", "tool_call_id": "call_1", "content": "Nightingales do."}, assistant("Nightingales.")
    )
    return FIRST, helper.session_id


def test_a_run_that_gets_its_parent_is_hidden_and_goes_with_it(hermes_home: Homes) -> None:
    home = hermes_home("0.19.0")
    parent, run = run_without_a_parent(home)
    assert listed(home) == {parent, run}
    rows = contents(home)

    repaired(home, {"adopt": f"run-of:{parent}"})

    assert listed(home) == {parent}
    assert contents(home) == rows
    assert alarms(home) == []
    home.restart()
    assert home.delete(parent)
    assert home.session_ids() == []


@pytest.mark.parametrize("release", NEWEST)
def test_a_chain_that_is_linked_is_followed_to_its_end(hermes_home: Homes, release: str) -> None:
    home = hermes_home(release)
    ids = unlinked(home)
    rows = contents(home)
    assert home.tip(ids[0]) == ids[0]

    repaired(home, {"link-chain": "link"})

    assert home.tip(ids[0]) == ids[2]
    assert home.lineage(ids[2]) == ids
    assert listed(home) == {ids[2]}
    assert contents(home) == rows
    assert alarms(home) == []
