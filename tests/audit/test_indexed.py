"""What the objects and notes of a store say of each search index."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import HomeBuilder

from statemend.audit.indexed import Index, indexes
from statemend.store.connection import open_for_audit

Build = Callable[..., HomeBuilder]
PUTS = "INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);"
TAKES = "DELETE FROM messages_fts WHERE rowid = old.id;"
#: One that an older release made, without texts of its own.
CJK = "CREATE VIRTUAL TABLE messages_fts_cjk USING fts5(content, content='messages', content_rowid='id')"


def known(home: HomeBuilder) -> dict[str, Index]:
    with open_for_audit(home.store) as store:
        return {index.name: index for index in indexes(store)}


@pytest.mark.parametrize(
    ("body", "unfit"),
    [(PUTS + TAKES, ()), (PUTS, ("update",)), (TAKES, ("update",)), ("SELECT 1;", ("update",))],
)
def test_a_trigger_after_an_update_has_to_put_in_and_to_take_out(
    build: Build, body: str, unfit: tuple[str, ...]
) -> None:
    home = build("0.13.0")
    home.sql(
        "DROP TRIGGER messages_fts_update",
        f"CREATE TRIGGER messages_fts_update AFTER UPDATE ON messages BEGIN {body} END",
    )
    index = known(home)["messages_fts"]
    assert (index.keeps_text, index.unfit, index.lacks) == (True, unfit, ())


@pytest.mark.parametrize(
    ("note", "detached"),
    [
        ("fts_stale", {"messages_fts", "messages_fts_trigram", "messages_fts_cjk"}),
        ("fts_cjk_stale", {"messages_fts_cjk"}),
        ("fts_other", set()),
    ],
)
def test_a_note_detaches_all_indexes_or_one(build: Build, note: str, detached: set[str]) -> None:
    home = build("0.22.2")
    home.sql(CJK, f"INSERT INTO state_meta (key, value) VALUES ('{note}', '1')")
    found = known(home)
    assert set(found) == {"messages_fts", "messages_fts_trigram", "messages_fts_cjk"}
    assert {name for name, index in found.items() if index.detached} == detached
    assert found["messages_fts_cjk"].lacks == ("insert", "update", "delete")


def test_a_rebuild_is_waited_for_where_its_own_notes_say_so(build: Build) -> None:
    home = build("0.22.2")
    home.sql(
        CJK,
        "INSERT INTO state_meta (key, value) VALUES ('fts_rebuild_high_water', '90')",
        "INSERT INTO state_meta (key, value) VALUES ('fts_rebuild_progress', '40')",
        "INSERT INTO state_meta (key, value) VALUES ('fts_cjk_rebuild_progress', '7')",
    )
    found = known(home)
    assert {name: (index.waiting_from, index.waiting_to) for name, index in found.items()} == {
        "messages_fts": (40, 90),
        "messages_fts_trigram": (40, 90),
        "messages_fts_cjk": (None, None),
    }
    home.sql("UPDATE state_meta SET value = 'soon' WHERE key LIKE 'fts_rebuild%'")
    index = known(home)["messages_fts"]
    assert (index.waiting_from, index.waiting_to) == (-1, None)
