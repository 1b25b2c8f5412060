"""The recipe search-index where an index lacks messages or holds some that are gone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import NOW, HomeBuilder
from tests.audit.rules.test_fts001_rows_not_indexed import without_triggers

from statemend.repair.apply import apply
from statemend.repair.plan import Plan, dump
from statemend.repair.planner import draft
from statemend.repair.run import State

Build = Callable[..., HomeBuilder]


def plan(home: HomeBuilder) -> Plan:
    return draft(home.root, now=NOW, deep=True).plan


def carried_out(home: HomeBuilder, made: Plan) -> None:
    file = home.root.parent / "plan.json"
    file.write_bytes(dump(made))
    assert apply(file, run_dir=home.root.parent / "run", now=NOW).state is State.APPLIED


@pytest.mark.parametrize("version", ["0.13.0", "0.19.0", "0.20.1", "0.22.2"])
@pytest.mark.parametrize("index", ["messages_fts", "messages_fts_trigram"])
def test_an_index_that_lacks_messages_is_built_anew(build: Build, version: str, index: str) -> None:
    home = build(version)
    home.chat("a", 4)
    with without_triggers(home, index):
        home.turns("a", 2)
    made = plan(home)
    assert [step.reindex for step in made.steps] == [(index,)]
    carried_out(home, made)
    assert home.findings("FTS001", deep=True) == []
    again = plan(home)
    assert (again.steps, again.left) == ((), ())


@pytest.mark.parametrize("version", ["0.20.1", "0.22.2"])
def test_what_an_index_without_texts_kept_is_dropped(build: Build, version: str) -> None:
    home = build(version)
    home.chat("a", 4)
    home.chat("b", 2)
    with without_triggers(home, event="delete"):
        home.sql("DELETE FROM messages WHERE session_id = 'b'", "DELETE FROM sessions WHERE id = 'b'")
    made = plan(home)
    assert [step.reindex for step in made.steps] == [("messages_fts",)]
    carried_out(home, made)
    assert home.findings("FTS002", deep=True) == []


def test_the_only_copy_of_a_text_is_left_alone(build: Build) -> None:
    home = build("0.19.0")
    home.chat("a", 4)
    home.chat("b", 2)
    with without_triggers(home, event="delete"):
        home.sql("DELETE FROM messages WHERE session_id = 'b'", "DELETE FROM sessions WHERE id = 'b'")
    with without_triggers(home):
        home.turns("a", 1)
    made = plan(home)
    assert made.steps == ()
    left = [each for each in made.left if "only copy" in each.reason]
    assert {each.rule for each in left} == {"FTS001", "FTS002"}


def test_an_index_that_is_damaged_and_lacks_messages_is_built_once(build: Build) -> None:
    home = build("0.22.2")
    home.chat("a", 6)
    home.sql("UPDATE messages_fts_data SET block = zeroblob(length(block)) WHERE id > 10")
    with without_triggers(home):
        home.sql("DROP TRIGGER messages_fts_delete")
        home.sql(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('a', 'user', 'x', 1.8e9)"
        )
    made = plan(home)
    assert {step.reindex for step in made.steps if step.reindex} == {("messages_fts",)}
