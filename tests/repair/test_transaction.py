"""A search index is rebuilt no oftener than it must be."""

from __future__ import annotations

from tests.repair import plans

from statemend.repair.plan import Kind, Operation
from statemend.repair.transaction import rebuilding_once


def rebuild(index: str) -> Operation:
    return Operation(kind=Kind.REINDEX, table=index)


def session(session_id: str) -> Operation:
    return plans.insert("sessions", "id", {"id": session_id})


WORDS, PARTS = rebuild("messages_fts"), rebuild("messages_fts_trigram")
MESSAGE = Operation(kind=Kind.UPDATE, table="messages", key={"id": 1}, after={"active": 1})


def test_each_index_is_rebuilt_once_after_the_last_row() -> None:
    asked = [session("a"), PARTS, WORDS, session("b"), PARTS, session("c"), PARTS, WORDS]
    assert rebuilding_once(asked) == (session("a"), session("b"), session("c"), PARTS, WORDS)


def test_a_message_is_changed_after_the_rebuild_that_comes_before_it() -> None:
    asked = [WORDS, MESSAGE, session("a"), WORDS]
    assert rebuilding_once(asked) == tuple(asked)


def test_nothing_else_is_left_out() -> None:
    asked = [session("a"), session("a"), MESSAGE, MESSAGE]
    assert rebuilding_once(asked) == tuple(asked)
