"""The catalogue against real stores, and the views that give every store one shape."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import apsw
import pytest
from tests.store.folders import changed, copied, filled, snapshot

from statemend.errors import StoreUnreadable
from statemend.store.catalogue import CATALOGUE, RELEASES, SCHEMA_NUMBERS, expected
from statemend.store.connection import open_for_audit
from statemend.store.schema import Era, FtsLayout

Stores = Mapping[str, Path]
ON_DEMAND = {name for name, table in CATALOGUE.items() if table.on_demand}


def _physical(store: Path) -> dict[str, dict[str, tuple[str, str | None]]]:
    """Type and default of every column of every table, without those of SQLite and of the search index."""
    connection = apsw.Connection(
        f"file:{store}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    try:
        names = connection.execute(
            "SELECT name FROM sqlite_schema "
            "WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '%fts%'"
        ).fetchall()
        return {
            name: {row[1]: (row[2], row[4]) for row in connection.execute(f'PRAGMA table_info("{name}")')}
            for (name,) in names
        }
    finally:
        connection.close()


@pytest.mark.parametrize("version", RELEASES)
def test_every_column_of_a_real_store_is_known_with_its_first_release(stores: Stores, version: str) -> None:
    earlier = [_physical(stores[release]) for release in RELEASES[: RELEASES.index(version)]]

    for table, columns in _physical(stores[version]).items():
        known = {column.name: column for column in CATALOGUE[table].columns}
        is_new = not any(table in shapes for shapes in earlier)
        assert (CATALOGUE[table].since == version) is is_new
        for name, (kind, default) in columns.items():
            assert (known[name].type, known[name].default) == (kind, default)
            first_seen_here = not any(name in shapes.get(table, {}) for shapes in earlier)
            assert (known[name].since == version) is first_seen_here, (table, name)


@pytest.mark.parametrize("version", RELEASES)
def test_what_a_release_is_expected_to_have_is_what_its_store_has(stores: Stores, version: str) -> None:
    shapes = {table: frozenset(columns) for table, columns in _physical(stores[version]).items()}

    assert shapes == expected(version)


def test_the_newest_real_store_has_every_table_in_the_order_of_the_catalogue(stores: Stores) -> None:
    shapes = _physical(stores[RELEASES[-1]])

    assert set(shapes) | ON_DEMAND == set(CATALOGUE)
    assert not set(shapes) & ON_DEMAND
    for table, columns in shapes.items():
        assert list(columns) == [column.name for column in CATALOGUE[table].columns]


@pytest.mark.parametrize(
    ("version", "era", "layout"),
    [
        ("0.13.0", Era.V13, FtsLayout.INLINE),
        ("0.14.0", Era.V13, FtsLayout.INLINE),
        ("0.15.2", Era.V13, FtsLayout.INLINE),
        ("0.16.0", Era.V16, FtsLayout.INLINE),
        ("0.17.0", Era.V16, FtsLayout.INLINE),
        ("0.18.2", Era.V18, FtsLayout.INLINE),
        ("0.19.0", Era.V18, FtsLayout.INLINE),
        ("0.20.1", Era.V20, FtsLayout.EXTERNAL),
        ("0.22.2", Era.V22, FtsLayout.EXTERNAL),
    ],
)
def test_each_release_has_its_number_its_era_and_its_index(
    stores: Stores, version: str, era: Era, layout: FtsLayout
) -> None:
    with open_for_audit(stores[version]) as opened:
        schema = opened.schema

    assert (schema.version, schema.era, schema.fts_layout) == (SCHEMA_NUMBERS[version], era, layout)


@pytest.mark.parametrize("version", RELEASES)
def test_every_canonical_column_can_be_asked_for_in_every_store(stores: Stores, version: str) -> None:
    with open_for_audit(stores[version]) as opened:
        for table in CATALOGUE.values():
            columns = ", ".join(f"typeof({column.name})" for column in table.columns)
            list(opened.rows(f"SELECT {columns} FROM {table.name}"))


def test_a_column_that_is_not_there_has_its_default(stores: Stores) -> None:
    with open_for_audit(stores["0.13.0"]) as opened:
        row = opened.one(
            "SELECT active, compacted, platform_message_id, observed, display_order FROM messages"
        )
        usage = opened.value("SELECT count(*) FROM session_model_usage")

    assert row == (1, 0, None, 0, None)
    assert usage == 0
    assert not opened.schema.has("session_model_usage")
    assert not opened.schema.has("messages", "active")
    assert opened.schema.has("messages", "content")


@pytest.mark.parametrize(
    ("sql", "plan"),
    [
        ("SELECT * FROM messages WHERE session_id = ?", "SEARCH main.messages USING INDEX"),
        ("SELECT * FROM messages WHERE id = ?", "SEARCH main.messages USING INTEGER PRIMARY KEY (rowid=?)"),
        (
            "SELECT * FROM sessions WHERE id = ?",
            "SEARCH main.sessions USING INDEX sqlite_autoindex_sessions_1",
        ),
        ("SELECT * FROM sessions WHERE parent_session_id = ?", "USING INDEX idx_sessions_parent"),
        (
            "SELECT count(*) FROM messages LEFT JOIN sessions AS s ON s.id = session_id WHERE role = ?",
            "SEARCH main.sessions USING",
        ),
        ("SELECT role FROM messages ORDER BY id LIMIT ?", "SCAN main.messages"),
    ],
)
@pytest.mark.parametrize("version", ["0.13.0", "0.22.2"])
def test_the_views_are_flattened_so_that_indexes_work(
    stores: Stores, version: str, sql: str, plan: str
) -> None:
    with open_for_audit(stores[version]) as opened:
        steps = [row[3] for row in opened.rows(f"EXPLAIN QUERY PLAN {sql}", ("x",))]

    assert any(plan in step for step in steps)
    assert not any("MATERIALIZE" in step or "CO-ROUTINE" in step or "TEMP B-TREE" in step for step in steps)


def test_columns_in_the_order_of_an_upgrade_are_read_by_name(stores: Stores, tmp_path: Path) -> None:
    path = changed(
        copied(stores["0.13.0"], tmp_path),
        "ALTER TABLE messages ADD COLUMN compacted INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE messages ADD COLUMN active INTEGER",
        "ALTER TABLE messages ADD COLUMN Display_Kind TEXT",
        "UPDATE messages SET active = NULL, compacted = 1, display_kind = 'x' WHERE id = 1",
    )

    with open_for_audit(path) as opened:
        assert opened.one("SELECT active, compacted, display_kind FROM messages WHERE id = 1") == (
            None,
            1,
            "x",
        )
        assert opened.schema.era is Era.V20
        assert opened.schema.version == 11


def test_an_extra_column_is_known_and_does_not_disturb(stores: Stores, tmp_path: Path) -> None:
    path = changed(
        copied(stores["0.22.2"], tmp_path), "ALTER TABLE messages ADD COLUMN anthropic_content_blocks TEXT"
    )

    with open_for_audit(path) as opened:
        assert opened.schema.has("messages", "anthropic_content_blocks")
        assert opened.value("SELECT count(*) FROM messages") == 3


def test_a_store_without_messages_is_still_a_store(stores: Stores, tmp_path: Path) -> None:
    path = changed(copied(stores["0.22.2"], tmp_path), "DROP TABLE messages")

    with open_for_audit(path) as opened:
        assert not opened.schema.has("messages")
        assert opened.value("SELECT count(*) FROM messages") == 0
        assert opened.value("SELECT count(*) FROM sessions") == 1


def test_a_store_without_a_column_that_all_have_reads_nulls(stores: Stores, tmp_path: Path) -> None:
    path = changed(
        copied(stores["0.13.0"], tmp_path),
        "DROP TRIGGER messages_fts_update",
        "ALTER TABLE messages DROP COLUMN finish_reason",
    )

    with open_for_audit(path) as opened:
        assert opened.value("SELECT count(*) FROM messages WHERE finish_reason IS NULL") == 3
        assert not opened.schema.has("messages", "finish_reason")


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (
            ("CREATE TABLE songs (id)", "CREATE TABLE albums (id)"),
            "of another program, with the tables 'albums', 'songs'",
        ),
        (('CREATE TABLE "a\nb" (id)',), r"'a\\nb'"),
        (("VACUUM",), "holds no tables"),
        (("CREATE VIEW messages AS SELECT 1 AS id",), "holds no tables"),
        (
            ("CREATE TABLE t (id)", "CREATE VIEW messages AS SELECT id FROM t"),
            "of another program, with the tables 't'",
        ),
        (("CREATE VIRTUAL TABLE messages USING fts5(content)",), "of another program"),
        (tuple(f"CREATE TABLE t{n} (id)" for n in range(9)), "'t0', 't1', 't2', 't3', 't4' …"),
    ],
    ids=["songs", "odd name", "nothing", "view", "view of a table", "virtual table", "many tables"],
)
def test_a_database_of_another_program_is_named(
    tmp_path: Path, statements: tuple[str, ...], said: str
) -> None:
    path = changed(tmp_path / "state.db", "PRAGMA user_version = 1", *statements)
    before = snapshot(tmp_path)

    with pytest.raises(StoreUnreadable, match=said) as raised, open_for_audit(path):
        pass

    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith(f"{path}: ")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("statement", "version"),
    [
        ("DELETE FROM schema_version", None),
        ("UPDATE schema_version SET version = 'new'", None),
        ("INSERT INTO schema_version VALUES (22)", 31),
        ("DROP TABLE schema_version", None),
    ],
)
def test_the_number_may_be_missing_or_odd(
    stores: Stores, tmp_path: Path, statement: str, version: int | None
) -> None:
    with open_for_audit(changed(copied(stores["0.22.2"], tmp_path), statement)) as opened:
        assert opened.schema.version == version
        assert opened.schema.era is Era.V22


HOSTILE = (
    "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    "CREATE TRIGGER again AFTER INSERT ON messages BEGIN DELETE FROM sessions; END",
    "CREATE INDEX computed ON messages (printf('%d', id))",
    "CREATE TABLE session_turn_leases "
    "(conversation_id TEXT, holder TEXT AS (hex(zeroblob(conversation_id))))",
    "CREATE VIEW system_prompts AS SELECT i AS hash, i AS prompt FROM endless",
)


def test_nothing_that_a_hostile_schema_holds_is_executed(stores: Stores, tmp_path: Path) -> None:
    path = changed(
        copied(stores["0.19.0"], tmp_path), *HOSTILE, "INSERT INTO session_turn_leases VALUES (100000000)"
    )

    with open_for_audit(path) as opened:
        assert opened.value("SELECT count(*) FROM messages") == 3
        assert opened.value("SELECT count(*) FROM system_prompts") == 0
        assert opened.rows("SELECT conversation_id, holder FROM session_turn_leases").__next__() == (
            "100000000",
            None,
        )
        with pytest.raises(StoreUnreadable, match="cannot read"):
            opened.value("SELECT * FROM endless")
        assert not opened.schema.has("system_prompts")
        assert not opened.schema.has("session_turn_leases", "holder")


def test_an_index_by_an_unknown_function_is_no_obstacle(stores: Stores, tmp_path: Path) -> None:
    path = copied(stores["0.19.0"], tmp_path)
    connection = apsw.Connection(str(path))
    connection.create_scalar_function("strange", lambda value: value, 1, deterministic=True)
    connection.execute("CREATE INDEX by_strange ON messages (strange(role))")
    connection.close()

    with open_for_audit(path) as opened:
        assert opened.value("SELECT count(*) FROM messages WHERE session_id > ''") == 3


@pytest.mark.parametrize("pragma", ["page_size = 512", "page_size = 65536", "encoding = 'UTF-16be'"])
def test_any_page_size_and_encoding_is_read(tmp_path: Path, pragma: str) -> None:
    path = changed(
        tmp_path / "state.db",
        f"PRAGMA {pragma}",
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, started_at REAL) WITHOUT ROWID",
        "CREATE TABLE messages "
        "(id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL)",
    )
    filled(path, 1000)
    changed(
        path,
        "INSERT INTO messages (content) VALUES ('grüße'), (CAST(x'd800' AS TEXT))",
    )

    with open_for_audit(path) as opened:
        assert (
            opened.value("SELECT count(*) FROM messages AS m JOIN sessions AS s ON s.id = m.session_id")
            == 1000
        )
        last = [text for (text,) in opened.rows("SELECT content FROM messages WHERE id > 1000 ORDER BY id")]

    assert last[0] == "grüße"
    assert last[1] == ("\\xd8\\x00" if "UTF-16" in pragma else "\\xd8\0")
