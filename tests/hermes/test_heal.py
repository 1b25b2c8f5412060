"""Messages that lost their state, and what the releases make of them before and after a repair."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import msgspec
import pytest
from tests.hermes.home import HermesHome, assistant, user

from statemend.audit.engine import audit
from statemend.audit.finding import Verdict
from statemend.repair.apply import apply
from statemend.repair.plan import Plan, dump
from statemend.repair.planner import make_plan
from statemend.repair.run import State

Homes = Callable[..., HermesHome]

SESSION = "20260801_090000_aaaaaa"
NEWEST = ["0.19.0", "0.22.2"]


def change(home: HermesHome, *statements: str) -> None:
    """What another program does while no release runs."""
    home.stop()
    connection = sqlite3.connect(home.state_db, isolation_level=None)
    try:
        connection.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


def loosen(home: HermesHome) -> None:
    """The column as an early release added it to an older store."""
    strict, loose = "active INTEGER NOT NULL DEFAULT 1", "active INTEGER"
    change(
        home, f"UPDATE sqlite_master SET sql = replace(sql, '{strict}', '{loose}') WHERE name = 'messages'"
    )


def repair(home: HermesHome, option: str | None = None) -> Plan:
    """Plan, choose, apply; the release runs again afterwards."""
    plan = make_plan(home.path, now=home.now)
    choices = tuple(msgspec.structs.replace(choice, chosen=option) for choice in plan.choices)
    file = home.path.parent / "plan.json"
    file.write_bytes(dump(msgspec.structs.replace(plan, choices=choices)))
    run = apply(file, now=home.now)
    assert (run.state, run.new, run.remaining) == (State.APPLIED, (), ())
    home.restart()
    return plan


def contents(home: HermesHome, session_id: str = SESSION) -> list[str]:
    return [message["content"] for message in home.messages(session_id)]


@pytest.mark.fires("MSG001")
def test_a_release_that_loses_the_state_of_new_messages_shows_them_after_the_repair(
    hermes_home: Homes,
) -> None:
    home = hermes_home("0.16.0")
    home.create_session(SESSION)
    home.exchange(SESSION, 1)
    loosen(home)
    home.restart()
    home.exchange(SESSION, 2)
    assert contents(home) == ["question 1", "answer 1"]
    assert home.store("search_messages", "question 2") == []
    home.stop()
    (finding,) = audit(home.path, now=home.now).findings
    assert (finding.rule, finding.verdict) == ("MSG001", Verdict.FAULT)

    repair(home)

    assert contents(home) == ["question 1", "answer 1", "question 2", "answer 2"]
    assert home.store("search_messages", "question 2") != []


@pytest.mark.parametrize("release", NEWEST)
def test_a_release_that_heals_by_itself_agrees_with_the_repair(hermes_home: Homes, release: str) -> None:
    home, twin = (hermes_home(release, name) for name in ("home", "twin"))
    for each in (home, twin):
        each.create_session(SESSION)
        for number in range(3):
            each.exchange(SESSION, number)
        loosen(each)
        change(each, "UPDATE messages SET active = NULL WHERE id > 2")

    repair(home)
    twin.restart()

    for each in (home, twin):
        each.append(SESSION, "user", "and now?")
    flags = "SELECT id, role, content, active, compacted FROM messages ORDER BY id"
    assert home.rows(flags) == twin.rows(flags)
    assert contents(home) == contents(twin)
    assert len(contents(home)) == 7
    assert home.session(SESSION)["message_count"] == twin.session(SESSION)["message_count"] == 7


@pytest.mark.parametrize("release", NEWEST)
def test_archived_turns_do_not_come_back_to_the_model(hermes_home: Homes, release: str) -> None:
    """Left alone, the release makes them live when it opens the store: the same turns twice."""
    home = hermes_home(release)
    chat = home.chat(SESSION)
    chat.turns(9)
    chat.compact()
    chat.say(user("Are you still there?"), assistant("I am."), gap=60)
    flags = "SELECT id, active, compacted FROM messages ORDER BY id"
    before, rows = contents(home), home.rows(flags)
    everything = home.store("get_messages", SESSION, include_inactive=True)
    loosen(home)
    said = "UPDATE messages SET active = NULL WHERE compacted = 1 AND id < 5"
    unsaid = "UPDATE messages SET compacted = 0 WHERE active IS NULL AND id < 3"
    change(home, said, unsaid)
    home.restart()
    assert len(contents(home)) == len(before) + 4
    change(home, "UPDATE messages SET compacted = 1 WHERE id < 3", said, unsaid)
    (finding,) = audit(home.path, now=home.now, rules=["MSG001"]).findings
    assert finding.verdict is Verdict.RISK

    plan = repair(home, "aside")

    assert [choice.id.partition("-")[0] for choice in plan.choices] == ["MSG001"]
    assert contents(home) == before
    assert home.rows(flags) == rows
    assert home.store("get_messages", SESSION, include_inactive=True) == everything
    home.append(SESSION, "user", "and now?")
    assert contents(home) == [*before, "and now?"]
