"""Another store as an artifact: its sessions, its rows, and no trace of the reading."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.store.rows import Rows

from statemend.errors import StoreUnreadable
from statemend.formats import stores
from statemend.formats.artifact import Kind, Section
from statemend.store.connection import open_for_audit
from statemend.store.history import View, records


@pytest.fixture(params=["0.13.0", "0.19.0", "0.22.2"])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Rows:
    """A store of each era with one session of which not every row is live."""
    made = Rows(tmp_path, request.param).session("s1", started_at=100.0, title="One")
    made.message("s1", "first", at=101.0).message("s1", "second", at=102.0, role="assistant")
    return made


def test_lists_sessions_with_their_rows_and_times(rows: Rows) -> None:
    (section,) = (each for each in stores.read(rows.path).sections if each.session_id == "s1")
    assert (section.title, section.started_at) == ("One", 100.0)
    assert (section.held, section.inactive) == (2, 0)
    assert (section.first_at, section.last_at) == (101.0, 102.0)


def test_shows_whole_rows_as_the_release_hands_them_out(rows: Rows) -> None:
    shown = list(stores.records(rows.path, Section("s1", 0, 0)))
    with open_for_audit(rows.path) as store:
        assert [record.row for record in shown] == list(records(store, "s1", View.RAW))
    assert [(each.position, each.role, each.content) for each in shown] == [
        (0, "user", "first"),
        (1, "assistant", "second"),
    ]


def test_leaves_no_trace(rows: Rows) -> None:
    before = sorted(os.listdir(rows.path.parent)), rows.path.read_bytes()
    stores.read(rows.path)
    list(stores.records(rows.path, Section("s1", 0, 0)))
    assert (sorted(os.listdir(rows.path.parent)), rows.path.read_bytes()) == before


def test_a_row_whose_role_is_no_text_is_shown_too(tmp_path: Path) -> None:
    made = Rows(tmp_path, "0.19.0").session("s1", started_at=100.0)
    made.message("s1", "text", at=101.0)
    made.run("UPDATE messages SET role = x'00ff'")
    (record,) = stores.records(made.path, Section("s1", 0, 0))
    assert record.role == "b'\\x00\\xff'"
    assert record.row is not None
    assert record.row["role"] == b"\x00\xff"


def test_a_broken_store_is_said_to_be(rows: Rows) -> None:
    data = rows.path.read_bytes()
    rows.path.write_bytes(data[: len(data) // 2])
    found = stores.read(rows.path)
    assert found.kind is Kind.STORE
    assert found.sections == ()
    assert found.damage is not None
    assert "page-count" in found.damage
    with pytest.raises(StoreUnreadable, match=str(rows.path)):
        list(stores.records(rows.path, Section("s1", 0, 0)))


def test_a_database_of_another_program_is_unclassified(tmp_path: Path) -> None:
    made = Rows(tmp_path, "0.19.0")
    made.run("ALTER TABLE messages RENAME COLUMN role TO speaker")
    assert stores.read(made.path).kind is Kind.UNCLASSIFIED
