"""Real releases multiply archived rows; after a collapse they and 0.22.2 show what they showed, and go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.hermes.home import DAY, Conversation, HermesHome, Oracle, assistant, user
from tests.hermes.oracles import check_active, check_display, copy_store, plain, substance

from statemend.audit.engine import audit
from statemend.repair import cleanup_plan
from statemend.repair.cleanup import Cleanup, apply
from statemend.repair.collapse_planner import make_collapse_plan
from statemend.repair.run import State
from statemend.repair.undo import undo
from statemend.store.connection import open_for_audit
from statemend.store.identity import store_digest
from statemend.store.repeats import repeats

Homes = Callable[..., HermesHome]
Ask = Callable[[str], Oracle]
CHAT = "20260801_090000_aaaaaa"
#: What reads the store without a trace of the copies. 0.22.2 gives each row without a uid one of its own.
READERS: list[tuple[str, str, dict[str, Any]]] = [
    ("0.22.2", "get_messages", {"include_compacted": True}),
    ("0.22.2", "get_messages", {}),
    ("0.22.2", "get_messages_as_conversation", {}),
    ("0.19.0", "get_messages", {}),
    ("0.19.0", "get_messages_as_conversation", {}),
]
DRAWN = {"message_uid", "_message_uid"}


def talk(home: HermesHome, times: int) -> Iterator[Conversation]:
    """A conversation that is taken up again and again, each time from what the store has of it."""
    home.chat(CHAT).turns(3, "plan")
    for number in range(times):
        chat = home.resume(CHAT)
        for part in range(2):
            output = f"{number} {part} " + "a line of output\n" * 600
            chat.tool_turn(f"How far is {number} {part}?", f"cat {number} {part}", output, "There it is.")
        yield chat


def shown(ask: Ask, path: Path, scratch: Path) -> list[Any]:
    found = []
    for version, method, options in READERS:
        ((answer),) = ask(version).ask(copy_store(path, scratch), [(method, [CHAT], options)])
        found.append([{k: v for k, v in each.items() if k not in DRAWN} for each in plain(answer)])
    return found


def without_ids(messages: list[dict[str, Any]]) -> set[str]:
    return {str({**each, "id": 0}) for each in substance(messages)}


def collapsed(home: HermesHome, folder: Path) -> Cleanup:
    made = make_collapse_plan(home.path, sessions=[CHAT], now=home.now + DAY)
    assert made.kept == ()
    file = folder / "cleanup.json"
    file.write_bytes(cleanup_plan.dump(made))
    return apply(file, run_dir=folder / "run", now=home.now + DAY)


def check_collapse(home: HermesHome, oracle: Ask, folder: Path) -> None:
    """Collapse the stopped home: all see what they saw, and the release goes on."""
    path = home.state_db
    with open_for_audit(path) as store:
        surplus = repeats(store, CHAT).surplus
    assert surplus
    before = shown(oracle, path, folder / "before")
    known = {one.id for one in audit(home.path, now=home.now + DAY).findings}

    done = collapsed(home, folder)

    assert done.run is not None
    assert done.receipt is not None
    assert (done.run.state, done.receipt.rows) == (State.APPLIED, {"messages": len(surplus)})
    assert shown(oracle, path, folder / "after") == before
    assert {one.id for one in audit(home.path, now=home.now + DAY).findings} <= known
    assert home.path.joinpath("state.db-wal").exists() is False

    home.restart()
    highest = max(surplus)
    found = home.store("search_messages", "output")
    assert len({each["id"] for each in found}) == len(found) > 0
    chat = home.resume(CHAT)
    chat.say(user("and now?"), assistant("On we go."))
    chat.turns(2, "later")
    chat.compact()
    assert home.append(CHAT, "user", "still here") > highest
    home.stop()
    check_active(path, oracle(home.release.version), folder / "then")
    check_display(path, oracle("0.22.2"), folder / "then")
    ((then),) = oracle("0.22.2").ask(
        copy_store(path, folder / "then"), [("get_messages", [CHAT], {"include_compacted": True})]
    )
    assert without_ids(before[0]) <= without_ids(then)


@pytest.mark.fires("MSG003")
@pytest.mark.parametrize("version", ["0.20.1", "0.22.2"])
def test_pruning_multiplies_and_a_collapse_makes_up_for_it(
    hermes_home: Homes, oracle: Ask, tmp_path: Path, version: str
) -> None:
    with hermes_home(version) as home:
        assert all(chat.prune() for chat in talk(home, 12))
        home.stop()
        ((finding),) = audit(home.path, rules=["MSG003"], now=home.now).findings
        assert finding.subject.session == CHAT
        check_collapse(home, oracle, tmp_path)
        assert audit(home.path, rules=["MSG003"], now=home.now).findings == ()


def test_a_row_for_each_compaction_is_lawful_and_goes_when_asked(
    hermes_home: Homes, oracle: Ask, tmp_path: Path
) -> None:
    with hermes_home("0.18.2") as home:
        for chat in talk(home, 4):
            chat.compact()
        home.stop()
        assert audit(home.path, rules=["MSG003"], now=home.now).findings == ()
        check_collapse(home, oracle, tmp_path)


def test_a_store_that_a_newer_release_took_over(hermes_home: Homes, oracle: Ask, tmp_path: Path) -> None:
    """0.22.2 gives each row a uid of its own, and a place in the display. An undo is exact there too."""
    with hermes_home("0.19.0") as home:
        for chat in talk(home, 4):
            chat.compact()
        home.stop()
        assert audit(home.path, rules=["MSG003"], now=home.now).findings == ()
        home.upgrade("0.22.2")
        home.store("get_messages", CHAT, include_compacted=True)
        home.append(CHAT, "user", "new here?")
        home.stop()
        with open_for_audit(home.state_db) as store:
            old = store_digest(store)
        (tmp_path / "first").mkdir()
        collapsed(home, tmp_path / "first")
        assert undo(tmp_path / "first" / "run", now=home.now + DAY).state is State.UNDONE
        with open_for_audit(home.state_db) as store:
            assert store_digest(store) == old
        check_collapse(home, oracle, tmp_path)
