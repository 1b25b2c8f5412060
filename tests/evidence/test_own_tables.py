"""What a store tells of sessions outside their messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder
from tests.audit.rules.test_sto005_store_younger_than_evidence import export
from tests.store.test_index_texts import forgotten

from statemend.evidence.inventory import find_home, take
from statemend.evidence.own_tables import OwnTable, own_tables, records
from statemend.formats.artifact import Kind, Record, Section
from statemend.store.connection import open_for_audit

CHAT = "agent:main:telegram:dm:7"


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    made = HomeBuilder(tmp_path / "home", "0.19.0")
    made.chat("talk", 2, session_key=CHAT)
    return made


def owe(home: HomeBuilder, content: str, chat: str = CHAT, at: float = START) -> None:
    """A reply that the gateway wrote down before it sent it."""
    if not home.columns("delivery_obligations"):
        home.sql(
            "CREATE TABLE delivery_obligations (obligation_id TEXT PRIMARY KEY, session_key TEXT NOT NULL, "
            "platform TEXT NOT NULL, chat_id TEXT NOT NULL, thread_id TEXT, content TEXT NOT NULL, "
            "state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, created_at REAL NOT NULL, "
            "updated_at REAL NOT NULL, owner_pid INTEGER, owner_started_at INTEGER, last_error TEXT)"
        )
    (count,) = home.sql("SELECT COUNT(*) FROM delivery_obligations")[0]
    home.insert(
        "delivery_obligations",
        obligation_id=f"{count:024x}",
        session_key=chat,
        platform="telegram",
        chat_id="7",
        content=content,
        state="delivered",
        created_at=at,
        updated_at=at + 1,
    )


def delegate(home: HomeBuilder, parent: str | None, task: Any, result: Any = None) -> None:
    """A task that was handed to a subagent."""
    (count,) = home.sql("SELECT COUNT(*) FROM async_delegations")[0]
    home.insert(
        "async_delegations",
        delegation_id=f"deleg_{count}",
        origin_session="",
        parent_session_id=parent,
        state="completed" if result is not None else "running",
        dispatched_at=START + count,
        completed_at=None if result is None else START + count + 60,
        updated_at=START,
        task_json=task if isinstance(task, str) else json.dumps(task),
        event_json=None if result is None else json.dumps({"type": "async_delegation", **result}),
        result_json=None if result is None else json.dumps(result),
    )


def tables(home: HomeBuilder) -> dict[Kind, OwnTable]:
    with open_for_audit(home.store) as store:
        inventory = take(find_home(home.root), store=store)
        return {each.artifact.kind: each for each in own_tables(store, inventory)}


def texts(home: HomeBuilder, kind: Kind, number: int = 0) -> list[Record]:
    with open_for_audit(home.store) as store:
        inventory = take(find_home(home.root), store=store)
        table = {each.artifact.kind: each.artifact for each in own_tables(store, inventory)}[kind]
        return list(records(store, inventory, table, table.sections[number]))


def named(table: OwnTable) -> list[tuple[str, int | None]]:
    return [(section.session_id, section.held) for section in table.artifact.sections]


def test_a_store_without_them_has_none(home: HomeBuilder) -> None:
    assert tables(home) == {}


def test_a_route_names_the_session_of_its_chat(home: HomeBuilder) -> None:
    for key, entry in (("a", {"session_id": "talk"}), ("b", {"session_id": 7}), ("c", {})):
        home.insert("gateway_routing", scope="", session_key=key, entry_json=entry, updated_at=START)
    home.insert("gateway_routing", scope="", session_key="d", entry_json="{", updated_at=START)
    (section,) = tables(home)[Kind.ROUTES].artifact.sections
    assert section == Section("talk", 0, 0, title="a", last_at=START)


def test_tasks_and_results_are_counted_by_the_session_that_handed_them_out(home: HomeBuilder) -> None:
    delegate(home, "talk", {"goal": "count the files"}, {"summary": "there are four"})
    batch = {"goal": "2 tasks", "goals": ["first", "second"], "is_batch": True}
    delegate(home, "talk", batch, {"results": [{"summary": "one"}, {"summary": None}, 3]})
    delegate(home, "gone", "no JSON at all")
    delegate(home, None, {"goal": "whose is it?"})
    found = tables(home)[Kind.DELEGATIONS]
    assert named(found) == [("", 1), ("gone", 0), ("talk", 5)]
    assert [(each.candidates, bool(each.reason)) for each in found.open_questions] == [((), True)]
    talk = found.artifact.sections[2]
    assert (talk.first_at, talk.last_at) == (START, START + 61)
    assert [(each.role, each.content) for each in texts(home, Kind.DELEGATIONS, 2)] == [
        ("task", "count the files"),
        ("result", "there are four"),
        ("task", "first"),
        ("task", "second"),
        ("result", "one"),
    ]


def test_a_reply_is_of_the_session_of_its_chat_that_has_its_text(home: HomeBuilder) -> None:
    home.chat("earlier", 2, session_key=CHAT, started_at=START - 99)
    owe(home, " turn 1 of talk\n", at=START + 5)
    owe(home, "turn 1 of earlier", at=START + 3)
    owe(home, "never stored", at=START + 4)
    owe(home, "to a chat that is gone", chat="agent:main:telegram:dm:8")
    found = tables(home)[Kind.REPLIES]
    assert named(found) == [("earlier", 1), ("", 1), ("talk", 1), ("", 1)]
    assert [each.candidates for each in found.open_questions] == [("earlier", "talk"), ()]
    (reply,) = texts(home, Kind.REPLIES, 1)
    assert (reply.role, reply.content, reply.timestamp) == ("assistant", "never stored", START + 4)


def test_texts_of_the_search_index_are_of_the_session_that_a_file_names(home: HomeBuilder) -> None:
    home.chat("goes", 2)
    export(home, "goes")
    home.message("goes", content="after the export", timestamp=START + 9)
    forgotten(home, "goes")
    found = tables(home)[Kind.INDEX]
    assert named(found) == [("", 1), ("goes", 2)]
    assert [each.section.session_id for each in found.open_questions] == [""]
    assert [each.content.strip() for each in texts(home, Kind.INDEX)] == ["after the export"]
    assert found.artifact.path == f"{home.store}!messages_fts_content"
    assert found.artifact.size == sum(
        len(each.content) for n in (0, 1) for each in texts(home, Kind.INDEX, n)
    )
