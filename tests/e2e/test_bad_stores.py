"""Files that are no store, or no longer one: each is a finding and a reason, or one line."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from tests.e2e.conftest import DATA
from tests.e2e.folder import snapshot
from tests.e2e.running import Audit, Refusal, Statemend, found, rules

from statemend.audit.registry import all_rules

PAGE = 4096
Damage = Callable[[Path], None]


def sql(*statements: str) -> Damage:
    """Damage by statements that no constraint stops."""

    def damage(store: Path) -> None:
        connection = apsw.Connection(str(store))
        connection.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            connection.execute(statement)
        connection.close()

    return damage


def without(table: str, column: str) -> Damage:
    """A table without a column; what depends on it goes first."""

    def damage(store: Path) -> None:
        connection = apsw.Connection(str(store))
        listed = connection.execute(
            "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view') "
            "OR (type = 'index' AND tbl_name = ? AND instr(sql, ?) > 0)",
            (table, column),
        ).fetchall()
        for kind, name in listed:
            connection.execute(f'DROP {kind} "{name}"')
        connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.close()

    return damage


def flip(name: str, offset: int = 0) -> Damage:
    """Flip every bit of one byte of the first page of a table or an index."""

    def damage(store: Path) -> None:
        connection = apsw.Connection(str(store))
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,))
        connection.close()
        content = bytearray(store.read_bytes())
        content[(root - 1) * PAGE + offset] ^= 0xFF
        store.write_bytes(content)

    return damage


def content(data: bytes) -> Damage:
    def damage(store: Path) -> None:
        store.write_bytes(data)

    return damage


def cut(size: int) -> Damage:
    def damage(store: Path) -> None:
        os.truncate(store, size)

    return damage


def overwrite(data: bytes, offset: int) -> Damage:
    def damage(store: Path) -> None:
        with store.open("r+b") as file:
            file.seek(offset)
            file.write(data)

    return damage


def database(*statements: str) -> Damage:
    """Another database in the place of the store."""

    def damage(store: Path) -> None:
        store.unlink()
        sql(*statements)(store)

    return damage


def beside(suffix: str, data: bytes) -> Damage:
    def damage(store: Path) -> None:
        store.with_name(store.name + suffix).write_bytes(data)

    return damage


NOISE = random.Random(7).randbytes(PAGE)

#: What is wrong, how the audit ends, and the rule that says so, with words of its summary.
NOT_A_STORE: dict[str, tuple[Damage, str, str]] = {
    "empty": (content(b""), "STO001", "an empty file, and nothing in the home shows that it was ever used"),
    "zeroed": (content(bytes(10 * PAGE)), "STO001", "nothing but zeros"),
    "a text": (content(b"Dear operator,\n" * 900), "STO001", "not an SQLite database"),
    "noise": (content(NOISE * 20), "STO001", "not an SQLite database"),
    "a gzip": (content(b"\x1f\x8b\x08" + NOISE), "STO001", "not an SQLite database"),
    "cut between pages": (cut(20 * PAGE), "STO001", "cut short"),
    "cut inside a page": (cut(20 * PAGE + 77), "STO001", "cut short"),
    "cut inside its header": (cut(50), "STO001", "shorter than one page"),
    "cut to a single byte": (cut(1), "STO001", "shorter than one page"),
    "first page overwritten": (overwrite(NOISE, 0), "STO001", "first page of the store is overwritten"),
    "first page zeroed": (overwrite(bytes(PAGE), 0), "STO001", "first page of the store is overwritten"),
    "list of tables overwritten": (
        overwrite(b"\xff" * (PAGE - 100), 100),
        "STO001",
        "first page of the store is overwritten",
    ),
    "of another program": (
        database("CREATE TABLE moz_places (id, url)", "CREATE VIEW messages AS SELECT * FROM moz_places"),
        "STO004",
        "not a store of Hermes",
    ),
    "without a table": (database("CREATE TABLE a (b)", "DROP TABLE a"), "STO004", "not a store of Hermes"),
    "schema that does not parse": (
        sql(
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_master SET sql = 'CREATE TABLE sessions (((' WHERE name = 'sessions'",
        ),
        "STO003",
        "refuses to open",
    ),
}


#: Of these nothing tells whether anything was lost.
UNDECIDABLE = {"empty"}


@pytest.mark.parametrize("name", NOT_A_STORE)
def test_what_cannot_be_read_is_a_finding_and_leaves_the_rest_open(
    audit: Audit, home: Path, name: str
) -> None:
    damage, rule, words = NOT_A_STORE[name]
    damage(home / "state.db")
    document = audit(home, code=3)

    (finding,) = document["findings"]
    assert finding["rule"] == rule
    assert finding["verdict"] == ("undecidable" if name in UNDECIDABLE else "fault")
    assert words in finding["summary"]
    assert finding["remedy"]["text"]
    (store,) = document["stores"]
    assert store["fault"]
    assert (store["sessions"], store["live"]) == (None, None)
    assert document["verdict"].startswith("The store cannot be read, so nothing is said about what it holds")
    open_ = rules(document, "could not run")
    assert open_.keys() >= {each.id for each in all_rules() if each.needs_store}
    assert all(open_.values()), "each says why"


@pytest.mark.parametrize("name", NOT_A_STORE)
def test_a_session_of_it_cannot_be_shown(refusal: Refusal, home: Path, name: str) -> None:
    NOT_A_STORE[name][0](home / "state.db")
    line = refusal("show", home, "2026", code=3, folder=home)
    assert line.startswith(f"{home}/state.db: ")
    assert line.endswith("; `statemend scan` tells what can be done")


DAMAGED: dict[str, tuple[Damage, int, str, str]] = {
    "table messages": (flip("messages"), 3, "STO003", "the table messages are damaged"),
    "cells of the table messages": (flip("messages", 5), 3, "STO003", "the table messages are damaged"),
    "table sessions": (flip("sessions"), 3, "STO003", "the table sessions are damaged"),
    "table state_meta": (flip("state_meta"), 3, "STO003", "the table state_meta are damaged"),
    "index of messages": (
        flip("idx_messages_session"),
        3,
        "STO003",
        "The index idx_messages_session is damaged",
    ),
    "index of session ids": (
        flip("sqlite_autoindex_sessions_1"),
        3,
        "STO003",
        "The index sqlite_autoindex_sessions_1 is damaged",
    ),
    "no table messages": (sql("DROP TABLE messages"), 1, "STO004", "no table messages"),
    "no table sessions": (sql("DROP TABLE sessions"), 1, "STO004", "no table sessions"),
    "sessions without model_config": (
        without("sessions", "model_config"),
        1,
        "STO004",
        "The table sessions lacks 1 of the columns",
    ),
    "sessions without title": (
        without("sessions", "title"),
        1,
        "STO004",
        "The table sessions lacks 1 of the columns",
    ),
    "sessions without end_reason": (
        without("sessions", "end_reason"),
        1,
        "STO004",
        "The table sessions lacks 1 of the columns",
    ),
    "sessions without started_at": (
        without("sessions", "started_at"),
        1,
        "STO004",
        "The table sessions lacks 1 of the columns",
    ),
    "messages without tool_calls": (
        without("messages", "tool_calls"),
        1,
        "STO004",
        "The table messages lacks 1 of the columns",
    ),
    "messages without timestamp": (
        without("messages", "timestamp"),
        1,
        "STO004",
        "The table messages lacks 1 of the columns",
    ),
    "a log of noise": (beside("-wal", NOISE * 3), 1, "STO002", "no valid header"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named_and_what_does_not_depend_on_it_is_still_said(
    audit: Audit, home: Path, name: str
) -> None:
    damage, code, rule, words = DAMAGED[name]
    damage(home / "state.db")
    document = audit(home, code=code)

    assert [words in finding["summary"] for finding in found(document, rule)] == [True]
    assert document["stores"][0]["fault"] is None
    assert document["verdict"].startswith("1 fault")
    assert len(rules(document, "clean")) >= 3
    assert ("could not run" in document["verdict"]) == (code == 3)
    assert bool(rules(document, "could not run")) == (code == 3)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_session_of_a_damaged_store_is_shown_or_refused(
    statemend: Statemend, home: Path, name: str
) -> None:
    DAMAGED[name][0](home / "state.db")
    before = snapshot(home)
    for form in ("table", "json"):
        told = statemend("show", home, "20260801_120000_ffffff", "--format", form)
        assert told.code in (0, 2, 3)
        assert (told.err == "") == (told.code == 0)
        assert told.err.count("\n") <= 1
        assert "unexpected" not in told.err
    assert snapshot(home) == before


HARMLESS: dict[str, Damage] = {
    "more columns and tables": sql(
        "ALTER TABLE messages ADD COLUMN mood TEXT DEFAULT 3",
        'ALTER TABLE sessions ADD COLUMN "we ird""col;--" BLOB',
        'CREATE TABLE "ev\'il"";-- <script>" (a)',
        "CREATE VIEW prompts AS SELECT * FROM messages",
        "CREATE TRIGGER t AFTER INSERT ON sessions BEGIN DELETE FROM messages; END",
    ),
    "names that are blobs": sql(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET tbl_name = CAST(tbl_name AS BLOB) WHERE name GLOB 'messages_fts*'",
        "UPDATE sqlite_master SET name = CAST(name AS BLOB) WHERE name GLOB 'idx_messages*'",
    ),
    "a journal of noise": beside("-journal", NOISE),
    "an empty log": beside("-wal", b""),
    "a byte of unused space": flip("state_meta", 2000),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_takes_nothing_from_a_store_is_no_fault(audit: Audit, home: Path, name: str) -> None:
    HARMLESS[name](home / "state.db")
    document = audit(home, code=0)
    assert document["verdict"].startswith("No fault and no risk")


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.19.0", "0.20.1", "0.22.2"])
def test_the_pages_of_each_release_are_named_alike(audit: Audit, tmp_path: Path, version: str) -> None:
    shutil.copyfile(DATA / "stores" / f"{version}.db", tmp_path / "state.db")
    flip("messages")(tmp_path / "state.db")
    document = audit(tmp_path / "state.db", code=3)
    assert len(found(document, "STO003")) == 1


@pytest.mark.parametrize("options", [(), ("--deep",)])
def test_an_index_that_tells_another_id_is_not_believed(
    audit: Audit, home: Path, options: tuple[str, ...]
) -> None:
    """An index that names another session than its table would make an orphan of sound messages."""
    store = home / "state.db"
    data = store.read_bytes()
    connection = apsw.Connection(str(store))
    ((root,),) = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_sessions_1'"
    )
    connection.close()
    at = data.index(b"20260801_103000_dddddd", (root - 1) * PAGE, root * PAGE)
    overwrite(b"7", at + 3)(store)
    document = audit(home, *options, code=3)
    assert "sqlite_autoindex_sessions_1" in found(document, "STO003")[0]["summary"]
    assert found(document, "ORP001") == []
