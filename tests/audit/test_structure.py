"""What SQLite's checks of the structure are taken to say, where they stop or say several things at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.audit.builder import DATA, HomeBuilder

from statemend.audit.structure import LINE_LENGTH, LINES, Damage, Part, Structure, examine
from statemend.errors import StoreUnreadable
from statemend.store.connection import Store, open_for_audit

Build = Callable[..., HomeBuilder]


def flip(home: HomeBuilder, name: str, *offsets: int) -> None:
    """Flip bytes of the root page of a table or index."""
    (root,) = home.sql("SELECT rootpage FROM sqlite_master WHERE name = ?", bindings=(name,))[0]
    data = bytearray(home.store.read_bytes())
    for offset in offsets:
        data[(root - 1) * 4096 + offset] ^= 0xFF
    home.store.write_bytes(bytes(data))


def examined(home: HomeBuilder, *, deep: bool = False) -> Structure:
    with open_for_audit(home.store) as store:
        return examine(store, deep=deep)


def record_header(home: HomeBuilder, index: str) -> int:
    """Where, on the root page of an index, the header of its first record begins."""
    (root,) = home.sql("SELECT rootpage FROM sqlite_master WHERE name = ?", bindings=(index,))[0]
    page = home.store.read_bytes()[(root - 1) * 4096 : root * 4096]
    cell = int.from_bytes(page[8:10], "big")
    return cell + 1  # behind the length of the record, one byte for a short one


@pytest.mark.parametrize("deep", [False, True], ids=["default", "deep"])
def test_a_check_that_stops_at_an_index_without_a_word_is_no_clean_one(build: Build, deep: bool) -> None:
    """The pages are sound, and a record in one of them is none: SQLite gives up and names nothing."""
    home = build("0.22.2", rich=True)
    flip(home, "idx_messages_session", record_header(home, "idx_messages_session"))

    structure = examined(home, deep=deep)

    (damage,) = structure.damages
    assert (damage.part, damage.table, damage.total) == (Part.INDEX, "messages", 1)
    assert damage.name == "of messages that SQLite does not name"
    assert set(structure.untrusted) == {"messages"}


def test_an_index_that_is_named_before_the_check_stops_is_told_alone(build: Build) -> None:
    home = build("0.22.2", rich=True)
    flip(home, "idx_messages_session", record_header(home, "idx_messages_session"))
    flip(home, "idx_messages_session_active", 0)

    (damage,) = examined(home).damages

    assert (damage.part, damage.name) == (Part.INDEX, "idx_messages_session_active")


def test_a_table_whose_check_reads_nothing_is_at_fault_itself(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that the disk does not give: SQLite has no word for it."""
    home = build("0.19.0", empty=False)
    rows = Store.rows

    def failing(store: Store, sql: str, *bindings: Any) -> Iterator[tuple[Any, ...]]:
        if sql.endswith("_check('messages')"):
            raise StoreUnreadable("disk I/O error")
        return rows(store, sql, *bindings)

    monkeypatch.setattr(Store, "rows", failing)

    assert examined(home).damages == (
        Damage("messages", Part.TABLE, "messages", ("the check stopped at an unreadable page",), 1),
    )


@pytest.mark.parametrize("deep", [False, True], ids=["default", "deep"])
def test_several_damages_are_told_worst_first_and_each_by_its_own_lines(build: Build, deep: bool) -> None:
    home = build("0.22.2", rich=True)
    for name in ("state_meta", "messages", "idx_sessions_source", "sqlite_autoindex_gateway_routing_1"):
        flip(home, name, 0)

    structure = examined(home, deep=deep)

    assert [(damage.part, damage.name, damage.table) for damage in structure.damages] == [
        (Part.TABLE, "messages", "messages"),
        (Part.TABLE, "state_meta", "state_meta"),
        (Part.INDEX, "idx_sessions_source", "sessions"),
        (Part.INDEX, "sqlite_autoindex_gateway_routing_1", "gateway_routing"),
    ]
    assert structure.untrusted["sessions"] == "its index idx_sessions_source is damaged"


def test_of_very_many_lines_the_first_are_kept_and_all_are_counted(build: Build) -> None:
    home = build("0.22.2", rich=True)
    flip(home, "idx_messages_session", *range(2000, 2400, 40))

    (damage,) = examined(home).damages

    assert damage.name == "idx_messages_session"
    assert damage.total > len(damage.lines) == LINES
    assert all(len(line) <= LINE_LENGTH for line in damage.lines)


def test_a_line_that_names_nothing_is_about_the_table_that_was_asked_about(build: Build) -> None:
    home = build("0.22.2", rich=True)
    flip(home, "sessions", 8)

    (damage,) = examined(home).damages

    assert (damage.part, damage.name) == (Part.TABLE, "sessions")
    assert "database disk image is malformed" in damage.lines


def test_a_table_of_a_search_index_is_taken_for_the_index(build: Build) -> None:
    home = build("0.22.2", rich=True)
    flip(home, "messages_fts_data", 0)

    (damage,) = examined(home, deep=True).damages

    assert (damage.part, damage.name, damage.table) == (Part.SEARCH, "messages_fts", "messages_fts")


def test_a_page_of_an_index_is_none_of_its_table(build: Build) -> None:
    """SQLite says of some lines only which page they are about."""
    home = build("0.22.2", rich=True)
    flip(home, "idx_messages_session", 7)

    (damage,) = examined(home).damages

    assert damage.lines[0].startswith("Fragmentation of ")
    assert (damage.part, damage.name) == (Part.INDEX, "idx_messages_session")


def test_what_belongs_to_no_table_is_told_of_the_file(build: Build) -> None:
    home = build("0.22.2", rich=True)
    home.sql("DELETE FROM messages")
    data = bytearray(home.store.read_bytes())
    data[36:40] = (1).to_bytes(4, "big")  # how many pages are unused
    home.store.write_bytes(bytes(data))

    (damage,) = examined(home, deep=True).damages
    data[32:40] = bytes(8)  # and where they are
    home.store.write_bytes(bytes(data))
    (unused,) = examined(home, deep=True).damages

    assert (damage.name, damage.part, damage.table) == ("the file", Part.FILE, "")
    assert (unused.name, unused.part, unused.table) == ("the file", Part.UNUSED, "")


def loosen(home: HomeBuilder, table: str, column: str, strict: str) -> None:
    """Put a NULL where the schema of the table forbids one."""
    rewrite = "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = '" + table + "'"
    home.sql("PRAGMA writable_schema = ON", rewrite, bindings=(strict, strict.removesuffix(" NOT NULL")))
    home.sql(f"UPDATE {table} SET {column} = NULL WHERE rowid = (SELECT MIN(rowid) FROM {table})")
    home.sql("PRAGMA writable_schema = ON", rewrite, bindings=(strict.removesuffix(" NOT NULL"), strict))


@pytest.mark.parametrize("table", ["sessions", "messages"])
def test_an_index_over_text_with_nuls_is_set_aside_beside_another_damage(build: Build, table: str) -> None:
    home = build("0.19.0", empty=False)
    home.store.write_bytes((DATA / "stores" / "0.19.0.db").read_bytes())
    column = {"sessions": "source", "messages": "role"}[table]
    loosen(home, table, column, f"{column} TEXT NOT NULL")

    structure = examined(home, deep=True)

    assert [(damage.part, damage.table) for damage in structure.damages] == [(Part.VALUES, table)]
    assert structure.method == (
        "integrity_check of the whole file, search indexes included, "
        "those over text with NULs not compared with it"
    )
    assert structure.untrusted == {}


def test_where_the_messages_are_damaged_no_text_is_asked_for_nuls(build: Build) -> None:
    home = build("0.19.0", empty=False)
    home.store.write_bytes((DATA / "stores" / "0.19.0.db").read_bytes())
    flip(home, "messages", 7)

    structure = examined(home, deep=True)

    assert [damage.part for damage in structure.damages] == [Part.TABLE, Part.SEARCH]
    assert structure.damages[1].table == "messages_fts_trigram"
