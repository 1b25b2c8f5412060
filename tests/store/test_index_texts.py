"""Texts of messages that are gone, in the tables of an old search index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import HomeBuilder

from statemend.store.connection import open_for_audit
from statemend.store.index_texts import IndexText, count_leftovers, leftover_texts

INLINE = ("0.13.0", "0.17.0", "0.19.0")
TRIGGERS = ("messages_fts_delete", "messages_fts_trigram_delete")


@pytest.fixture
def build(tmp_path: Path) -> Callable[[str], HomeBuilder]:
    return lambda version: HomeBuilder(tmp_path / "home", version)


def forgotten(home: HomeBuilder, session_id: str, *, detached: bool = True) -> None:
    """Delete a session, with the triggers of the index or after they were dropped."""
    triggers = (f"DROP TRIGGER {name}" for name in TRIGGERS) if detached else ()
    home.sql(*triggers, f"DELETE FROM messages WHERE session_id = '{session_id}'")
    home.sql(f"DELETE FROM sessions WHERE id = '{session_id}'")


def texts(home: HomeBuilder) -> list[IndexText]:
    with open_for_audit(home.store) as store:
        found = list(leftover_texts(store))
        assert count_leftovers(store) == len(found)
    return found


@pytest.mark.parametrize("version", INLINE)
def test_a_deletion_behind_the_back_of_the_index_leaves_the_texts(
    version: str, build: Callable[[str], HomeBuilder]
) -> None:
    home = build(version)
    home.chat("stays", 2)
    rows = home.chat("goes", 2)
    rows.append(home.message("goes", "tool", "total 4", tool_name="terminal"))
    forgotten(home, "goes")
    found = texts(home)
    assert [each.row_id for each in found] == rows
    assert [each.text.split() for each in found] == [
        ["turn", "0", "of", "goes"],
        ["turn", "1", "of", "goes"],
        ["total", "4", "terminal"],
    ]


def test_a_deletion_that_the_index_follows_leaves_none(build: Callable[[str], HomeBuilder]) -> None:
    home = build("0.19.0")
    home.chat("stays", 2)
    home.chat("goes", 2)
    forgotten(home, "goes", detached=False)
    assert texts(home) == []


def test_tables_that_wait_to_be_emptied_are_read(build: Callable[[str], HomeBuilder]) -> None:
    """0.22 renames the tables of the old index, and empties them bit by bit."""
    home = build("0.19.0")
    rows = home.chat("goes", 4)
    kept = "SELECT * FROM messages_fts_trigram_content"
    home.sql(
        f"CREATE TABLE fts_v22_trash_messages_fts_trigram_content AS {kept}",
        "CREATE TABLE fts_v22_trash_messages_fts_content AS SELECT * FROM messages_fts_content WHERE id > 2",
    )
    forgotten(home, "goes", detached=False)
    assert sorted(each.row_id for each in texts(home)) == rows


@pytest.mark.parametrize("version", ["0.20.1", "0.22.2"])
def test_an_index_without_texts_has_none(version: str, build: Callable[[str], HomeBuilder]) -> None:
    home = build(version)
    home.chat("goes", 2)
    home.sql("DELETE FROM messages")
    assert texts(home) == []


def test_a_table_of_such_a_name_with_other_columns_is_left_alone(build: Callable[[str], HomeBuilder]) -> None:
    home = build("0.22.2")
    home.sql(
        "CREATE TABLE fts_v22_trash_messages_fts_content (k, v)",
        "INSERT INTO fts_v22_trash_messages_fts_content VALUES (1, 2)",
    )
    assert texts(home) == []
