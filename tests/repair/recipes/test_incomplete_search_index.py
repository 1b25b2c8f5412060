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
from statemend.repair.undo import undo

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


KEPT = "SELECT COUNT(*) FROM messages_fts_content WHERE c0 LIKE '% of b%'"


@pytest.mark.parametrize("damage", ["lacks messages", "damaged"])
def test_the_only_copy_of_a_text_stays(build: Build, damage: str) -> None:
    home = build("0.19.0")
    home.chat("a", 4)
    home.chat("b", 2)
    with without_triggers(home, event="delete"):
        home.sql("DELETE FROM messages WHERE session_id = 'b'", "DELETE FROM sessions WHERE id = 'b'")
    if damage == "damaged":
        home.sql("UPDATE messages_fts_data SET block = zeroblob(length(block)) WHERE id > 10")
    else:
        with without_triggers(home):
            home.turns("a", 1)
    made = plan(home)
    assert [step.reindex for step in made.steps] == [("messages_fts",)]
    assert {each.rule for each in made.left if "only copy" in each.reason} == {"FTS002"}
    carried_out(home, made)
    assert home.sql(KEPT) == [(2,)]
    assert undo(home.root.parent / "run", now=NOW).state is State.UNDONE
    assert home.sql(KEPT) == [(2,)]


@pytest.mark.parametrize("version", ["0.13.0", "0.19.0"])
def test_what_an_index_is_to_hold_is_not_guessed_without_its_trigger(build: Build, version: str) -> None:
    home = build(version)
    home.chat("a", 4)
    home.sql("DROP TRIGGER messages_fts_insert")
    home.turns("a", 2)
    home.sql("UPDATE sessions SET message_count = 99")
    made = plan(home)
    assert [step.recipe for step in made.steps] == ["counters"]
    assert {each.rule for each in made.left if "trigger" in each.reason} >= {"FTS001"}
    carried_out(home, made)


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
