"""What real releases leave of sessions outside their messages, and what is told of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from tests.hermes.home import HermesHome, assistant, user

from statemend.audit.engine import audit
from statemend.evidence.inventory import Inventory, find_home, take
from statemend.evidence.own_tables import own_tables, records
from statemend.formats.artifact import Artifact, Kind
from statemend.report.session import read
from statemend.store.connection import Store, open_for_audit

Make = Callable[..., HermesHome]
TALK, GONE = "20260801_090000_aaaaaa", "20260801_100000_bbbbbb"


def function(home: HermesHome, module: str, name: str, *args: Any, **options: Any) -> Any:
    return home.process.call("function", module=module, name=name, args=list(args), options=options)


def tables(store: Store, inventory: Inventory) -> dict[Kind, Artifact]:
    return {each.artifact.kind: each.artifact for each in own_tables(store, inventory)}


def owe(home: HermesHome, key: str, content: str) -> None:
    ledger = "gateway.delivery_ledger"
    number = function(home, ledger, "compute_obligation_id", key, "7", content)
    reply = {"session_key": key, "platform": "telegram", "chat_id": "77", "thread_id": None}
    function(home, ledger, "record_obligation", obligation_id=number, content=content, **reply)
    function(home, ledger, "mark_delivered", number)


def delegate(home: HermesHome, session_id: str, goal: str, summary: str) -> None:
    module = "tools.async_delegation"
    record = {"delegation_id": f"deleg_{goal[:4]}", "session_key": "", "goal": goal, "context": None}
    record |= {"parent_session_id": session_id, "dispatched_at": home.now}
    function(home, module, "_persist_dispatch", record)
    result = {"status": "completed", "summary": summary, "api_calls": 1}
    event = {**record, **result, "type": "async_delegation", "completed_at": home.now + 60}
    function(home, module, "_persist_completion", event, result)


@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_replies_and_tasks_outlive_the_session(hermes_home: Make, release: str) -> None:
    home = hermes_home(release)
    session_id = home.gateway_session("77")
    ((key,),) = home.rows("SELECT session_key FROM sessions WHERE id = ?", session_id)
    home.resume(session_id, "telegram").say(user("what is new?"), assistant("Nothing new."))
    owe(home, key, "Nothing new.")
    delegate(home, session_id, "read the news", "There are none.")
    home.stop()

    def told() -> list[tuple[str, Any]]:
        outcome = audit(home.path, now=home.now, rules=["ORP003"])
        return [
            (each.summary, {fact.label: fact.value for fact in each.evidence}) for each in outcome.findings
        ]

    with open_for_audit(home.state_db) as store:
        inventory = take(find_home(home.path), store=store)
        found = tables(store, inventory)
        assert {kind: [each.session_id for each in part.sections] for kind, part in found.items()} == {
            kind: [session_id] for kind in (Kind.ROUTES, Kind.DELEGATIONS, Kind.REPLIES)
        }
        shown = read(store, inventory, session_id).traces
    assert [(each.kind, each.texts, each.certain) for each in shown] == [
        ("routing-table", 0, True),
        ("delegations", 2, True),
        ("owed-replies", 1, True),
    ]
    assert told() == []

    home.restart()
    home.delete(session_id)
    home.rows("DELETE FROM gateway_routing")
    home.stop()
    routes = home.path / "sessions" / "sessions.json"
    routes.unlink(missing_ok=True)

    tasks, replies = told()
    assert tasks[1]["ids"] == [session_id]
    assert tasks[1]["texts of tasks and results"] == 2
    assert (replies[1]["replies"], replies[1]["keys of the chats"]) == (1, [key])
    with open_for_audit(home.state_db) as store:
        inventory = take(find_home(home.path), store=store)
        found = tables(store, inventory)
        texts = {
            kind: [
                each.content for section in part.sections for each in records(store, inventory, part, section)
            ]
            for kind, part in found.items()
        }
    assert texts == {Kind.DELEGATIONS: ["read the news", "There are none."], Kind.REPLIES: ["Nothing new."]}


@pytest.mark.parametrize("release", ["0.13.0", "0.20.1"])
def test_what_the_api_server_kept_outlives_the_session(hermes_home: Make, release: str) -> None:
    home = hermes_home(release)
    said = [user("what is new?"), assistant("Nothing new.")]
    for session_id in (TALK, GONE):
        home.chat(session_id).say(*said)
        data = {"response": {}, "conversation_history": said, "instructions": None, "session_id": session_id}
        home.process.call("keep_response", response_id=f"resp_{session_id}", data=data)
    home.delete(GONE)
    home.stop()

    with open_for_audit(home.state_db) as store:
        inventory = take(find_home(home.path), store=store)
        (kept,) = [each for each in inventory.artifacts if each.kind is Kind.RESPONSES]
        held = read(store, inventory, TALK)
        gone = read(store, inventory, GONE)
    assert [(each.session_id, each.held) for each in kept.sections] == [(TALK, 2), (GONE, 2)]
    assert held.unheld == ()
    assert gone.salvage is not None
    assert (gone.salvage.messages, gone.salvage.lossy) == (2, 2)
    outcome = audit(home.path, now=home.now, rules=["ORP003"])
    assert [each.subject.session for each in outcome.findings] == [GONE]


@pytest.mark.parametrize("release", ["0.13.0", "0.17.0", "0.19.0"])
def test_the_search_index_keeps_what_was_deleted_past_it(hermes_home: Make, release: str) -> None:
    home = hermes_home(release)
    home.chat(TALK).say(user("this stays"), assistant("it does"))
    home.chat(GONE).tool_turn("what is new?", "ls", "nothing", "Nothing new.")
    home.export(GONE, "jsonl")
    home.stop()
    with sqlite3.connect(home.state_db) as connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        ]
        for name in names:
            connection.execute(f"DROP TRIGGER {name}")
        wanted = connection.execute("SELECT content FROM messages WHERE session_id = ?", (GONE,)).fetchall()
        connection.execute("DELETE FROM messages WHERE session_id = ?", (GONE,))
        connection.execute("DELETE FROM sessions WHERE id = ?", (GONE,))
    connection.close()

    with open_for_audit(home.state_db) as store:
        inventory = take(find_home(home.path), store=store)
        (trace,) = read(store, inventory, GONE, with_content=True).traces
    assert (trace.kind, trace.texts, trace.certain) == ("search-index", len(wanted), True)
    assert [
        text.startswith(content) for text, (content,) in zip(trace.contents or (), wanted, strict=True)
    ] == [True] * len(wanted)
