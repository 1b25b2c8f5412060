"""A connection for repair writes what it was allowed to, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from statemend.errors import Refused, StatemendError, StoreHeld
from statemend.store import writing
from statemend.store.permissions import Allowed
from statemend.store.writing import RepairConnection, open_for_repair

FIRST = "SELECT id, session_id FROM main.messages ORDER BY id LIMIT 1"


@pytest.fixture
def path(stores: Mapping[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copy(stores["0.22.2"], tmp_path / "state.db"))


@pytest.fixture
def connection(path: Path) -> Iterator[RepairConnection]:
    with open_for_repair(path) as opened:
        yield opened


def facts(path: Path) -> tuple[object, ...]:
    with closing(apsw.Connection(str(path))) as plain:
        names = (
            "journal_mode",
            "user_version",
            "application_id",
            "schema_version",
            "auto_vacuum",
            "encoding",
        )
        schema = list(plain.execute("SELECT * FROM sqlite_schema ORDER BY name"))
        return (*(plain.pragma(name) for name in names), schema)


FORBIDDEN = (
    "ATTACH DATABASE ':memory:' AS other",
    "DETACH DATABASE main",
    "CREATE TABLE main.other (id INTEGER PRIMARY KEY)",
    "CREATE TEMP TABLE other (id INTEGER PRIMARY KEY)",
    "CREATE TEMP TRIGGER t AFTER INSERT ON main.messages BEGIN DELETE FROM sessions; END",
    "CREATE VIEW main.other AS SELECT 1",
    "CREATE VIRTUAL TABLE main.other USING fts5(text)",
    "DROP TABLE main.messages",
    "DROP TRIGGER main.messages_fts_insert",
    "DROP INDEX main.idx_sessions_source",
    "ALTER TABLE main.messages ADD COLUMN other TEXT",
    "ALTER TABLE main.messages RENAME TO other",
    "PRAGMA journal_mode = MEMORY",
    "PRAGMA user_version = 7",
    "PRAGMA application_id = 7",
    "PRAGMA writable_schema = 1",
    "PRAGMA foreign_keys = 0",
    "PRAGMA synchronous = 0",
    "PRAGMA auto_vacuum = 1",
    "PRAGMA main.wal_checkpoint",
    "PRAGMA optimize",
    "VACUUM",
    "VACUUM INTO 'other.db'",
    "REINDEX",
    "ANALYZE",
    "DELETE FROM main.messages",
    "DELETE FROM main.sessions",
    "INSERT INTO main.state_meta(key, value) VALUES ('a', 'b')",
    "UPDATE main.messages SET content = ''",
    "UPDATE main.sessions SET id = 'other'",
    "REPLACE INTO main.sessions(id, source, started_at) VALUES ('other', 'cli', 1)",
    "INSERT INTO main.messages_fts(messages_fts) VALUES ('rebuild')",
    "DELETE FROM main.messages_fts_data",
    "UPDATE main.sqlite_schema SET sql = ''",
    "DELETE FROM main.sqlite_schema",
    "UPDATE main.sqlite_sequence SET seq = 0",
    "SELECT load_extension('other')",
)


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_what_was_not_allowed_is_refused(
    connection: RepairConnection, path: Path, statement: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    before = path.read_bytes()
    connection.allow({"sessions": Allowed(columns=frozenset({"title"}), insert=False)})
    with pytest.raises((Refused, apsw.SQLError)):
        connection.execute(statement)
    assert path.read_bytes() == before
    assert not (tmp_path / "other.db").exists()


def test_a_refusal_names_what_was_asked(connection: RepairConnection) -> None:
    with pytest.raises(Refused, match="delete from messages"):
        connection.execute("DELETE FROM main.messages")
    with pytest.raises(Refused, match="update sessions title"):
        connection.execute("UPDATE main.sessions SET title = 'x'")
    with pytest.raises(Refused, match="ATTACH"):
        connection.execute("ATTACH ':memory:' AS other")


def test_a_listed_column_may_be_written_and_no_other(connection: RepairConnection) -> None:
    connection.allow({"sessions": Allowed(columns=frozenset({"title"}))})
    with connection.fence():
        assert connection.execute("UPDATE main.sessions SET title = 'new' WHERE rowid = 1") == 1
        with pytest.raises(Refused, match="update sessions model"):
            connection.execute("UPDATE main.sessions SET title = 'new', model = 'other'")
    assert connection.store.value("SELECT title FROM main.sessions WHERE rowid = 1") == "new"


def test_what_was_allowed_for_a_while_is_denied_again(connection: RepairConnection) -> None:
    with connection.allowing({"sessions": Allowed(columns=frozenset({"title"}))}):
        connection.execute("UPDATE main.sessions SET title = 'new' WHERE rowid = 1")
    with pytest.raises(Refused):
        connection.execute("UPDATE main.sessions SET title = 'newer' WHERE rowid = 1")


def test_triggers_of_the_store_do_their_work(connection: RepairConnection) -> None:
    row = connection.store.one(FIRST)
    assert row is not None
    connection.allow({"messages": Allowed(insert=True)})
    with connection.fence():
        connection.execute(
            "INSERT INTO main.messages(session_id, role, content, timestamp) "
            "VALUES (?, 'user', 'zebra', 1.5)",
            (row[1],),
        )
    found = connection.store.one(
        "SELECT id, display_order, message_uid FROM main.messages WHERE content = 'zebra'"
    )
    assert found is not None
    assert found[1] == found[0]
    assert len(found[2]) == 32
    hits = connection.store.rows("SELECT rowid FROM main.messages_fts WHERE messages_fts MATCH 'zebra'")
    assert list(hits) == [(found[0],)]


def test_a_trigger_may_not_reach_further_than_the_search_index(
    path: Path,
) -> None:
    with closing(apsw.Connection(str(path))) as plain:
        plain.execute(
            "CREATE TRIGGER spy AFTER UPDATE OF title ON sessions BEGIN DELETE FROM state_meta; END"
        )
    with open_for_repair(path) as connection:
        connection.allow({"sessions": Allowed(columns=frozenset({"title"}))})
        with pytest.raises(Refused, match="delete from state_meta"):
            connection.execute("UPDATE main.sessions SET title = 'new'")


def test_foreign_keys_hold(connection: RepairConnection) -> None:
    connection.allow({"messages": Allowed(insert=True)})
    with pytest.raises(apsw.ConstraintError, match="FOREIGN KEY"):
        connection.execute(
            "INSERT INTO main.messages(session_id, role, timestamp) VALUES ('nobody', 'user', 1.0)"
        )


def test_an_error_takes_everything_back(connection: RepairConnection, path: Path) -> None:
    before = path.read_bytes()
    connection.allow({"sessions": Allowed(columns=frozenset({"title", "source"}))})
    with pytest.raises(apsw.ConstraintError), connection.fence():  # noqa: PT012 - the first one succeeds
        connection.execute("UPDATE main.sessions SET title = 'new' WHERE rowid = 1")
        connection.execute("UPDATE main.sessions SET title = NULL, source = NULL")
    assert not connection.committed
    assert path.read_bytes() == before


@pytest.mark.parametrize("mode", ["delete", "wal", "truncate"])
def test_journal_mode_and_settings_stay(path: Path, mode: str) -> None:
    with closing(apsw.Connection(str(path))) as plain:
        plain.pragma("journal_mode", mode)
    before = facts(path)
    with open_for_repair(path) as connection:
        connection.allow({"sessions": Allowed(columns=frozenset({"title"}))})
        with connection.fence():
            connection.execute("UPDATE main.sessions SET title = 'new' WHERE rowid = 1")
    assert facts(path) == before
    with closing(apsw.Connection(str(path))) as plain:
        assert plain.execute("SELECT title FROM sessions WHERE rowid = 1").get == "new"
    assert sorted(each.name for each in path.parent.iterdir()) == ["state.db"]


def test_looking_leaves_a_log_with_content_as_it_is(path: Path, tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    with closing(apsw.Connection(str(shutil.copy(path, live / "state.db")))) as writer:
        writer.pragma("journal_mode", "wal")
        writer.execute("UPDATE sessions SET title = 'in the log'")
        for suffix in ("", "-wal"):
            shutil.copy(f"{live}/state.db{suffix}", f"{path}{suffix}")
    before = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    with open_for_repair(path) as connection:
        assert connection.store.value("SELECT title FROM main.sessions") == "in the log"
    assert (path.read_bytes(), Path(f"{path}-wal").read_bytes()) == before


def test_a_store_that_another_process_holds_is_refused(path: Path) -> None:
    code = (
        "import apsw, sys\n"
        "c = apsw.Connection(sys.argv[1]); c.execute('BEGIN IMMEDIATE')\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreHeld, match=rf"pid {holder.pid}"), open_for_repair(path):
            pass
        holder.communicate()


def test_a_writer_makes_the_fence_refuse(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_BUSY_MILLISECONDS", 1)
    with closing(apsw.Connection(str(path))) as other, open_for_repair(path) as connection:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreHeld, match="another process is writing"), connection.fence():
            pass


def test_the_data_version_tells_of_another_writer(path: Path) -> None:
    with open_for_repair(path) as connection:
        before = connection.data_version()
        connection.allow({"sessions": Allowed(columns=frozenset({"title"}))})
        connection.execute("UPDATE main.sessions SET title = 'own'")
        assert connection.data_version() == before
        with closing(apsw.Connection(str(path))) as other:
            other.execute("UPDATE sessions SET title = 'theirs'")
        assert connection.data_version() != before


@pytest.mark.parametrize("content", [b"", b"\0" * 8192, b"not a database" * 100])
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(content)
    with pytest.raises(StatemendError), open_for_repair(path):
        pass
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == ["state.db"]


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(apsw.Connection(str(path))) as plain:
        plain.execute("CREATE TABLE moz_places (id INTEGER PRIMARY KEY)")
    with pytest.raises(StatemendError, match="moz_places"), open_for_repair(path):
        pass


def test_a_recording_holds_rows_and_no_pages_of_an_index(connection: RepairConnection) -> None:
    row = connection.store.one(FIRST)
    assert row is not None
    connection.allow({"messages": Allowed(insert=True), "sessions": Allowed(columns=frozenset({"title"}))})
    with connection.fence(), connection.recording() as session:
        connection.execute("UPDATE main.sessions SET title = 'new' WHERE rowid = 1")
        connection.execute(
            "INSERT INTO main.messages(session_id, role, content, timestamp) "
            "VALUES (?, 'user', 'zebra', 1.5)",
            (row[1],),
        )
        found = [(change.name, change.op) for change in apsw.Changeset.iter(session.changeset())]
    assert sorted(found) == [("messages", "INSERT"), ("sessions", "UPDATE")]
