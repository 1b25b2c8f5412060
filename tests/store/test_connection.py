"""Opening a store for audit: what is seen, and that nothing is left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import apsw
import pytest
from tests.store.folders import changed, copied, crashed, filled, flip, held, pages_of, snapshot

from statemend.errors import StatemendError, StoreHeld, StoreUnreadable, Undetermined, UsageError
from statemend.store import connection, copies
from statemend.store.catalogue import RELEASES
from statemend.store.connection import Access, StoreFault, open_for_audit

Stores = Mapping[str, Path]
ADD = (
    "INSERT INTO messages (session_id, role, content, timestamp) "
    "SELECT id, 'user', 'late', 9e9 FROM sessions LIMIT 1"
)
COUNT = "SELECT count(*) FROM messages"
NOBODY = 65534


@pytest.fixture(scope="module")
def template(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(copied(stores["0.19.0"], tmp_path_factory.mktemp("template")), 2000)


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Path:
    """A store in WAL mode, with 2,000 messages in its session ``many``."""
    return copied(template, tmp_path / "home")


@pytest.mark.parametrize("version", RELEASES)
def test_an_audit_leaves_the_folder_as_it_was(stores: Stores, tmp_path: Path, version: str) -> None:
    path = copied(stores[version], tmp_path / "home")
    before = snapshot(path.parent)

    with open_for_audit(path) as opened:
        assert opened.value(COUNT) == 3
        assert opened.value("PRAGMA main.quick_check(messages)") == "ok"
        assert opened.access is Access.ORIGINAL
        assert opened.unchanged()

    assert snapshot(path.parent) == before


def test_rows_that_are_only_in_the_log_are_seen(store: Path, tmp_path: Path) -> None:
    path = crashed(store, tmp_path / "crashed", ADD)
    before = snapshot(path.parent)

    with open_for_audit(path) as opened:
        assert opened.value(COUNT) == 2004
        assert opened.access is Access.COPY
        assert opened.unchanged()

    assert snapshot(path.parent) == before


def test_rows_of_a_transaction_that_never_ended_are_not_seen(store: Path, tmp_path: Path) -> None:
    spill = ("PRAGMA cache_size = 1", "BEGIN", "UPDATE messages SET content = 'half'")
    path = crashed(store, tmp_path / "crashed", ADD, *spill)

    with open_for_audit(path) as opened:
        assert opened.value(COUNT) == 2004
        assert opened.value("SELECT count(*) FROM messages WHERE content = 'half'") == 0


def test_a_log_that_was_wholly_checkpointed_changes_nothing(store: Path, tmp_path: Path) -> None:
    path = crashed(store, tmp_path / "crashed", ADD, "PRAGMA wal_checkpoint(PASSIVE)")

    with open_for_audit(path) as opened:
        assert opened.value(COUNT) == 2004


def test_frames_of_an_older_generation_in_the_log_are_ignored(store: Path, tmp_path: Path) -> None:
    path = crashed(
        store,
        tmp_path / "crashed",
        "UPDATE messages SET content = 'x'",
        "PRAGMA wal_checkpoint(RESTART)",
        ADD,
    )

    with open_for_audit(path) as opened:
        assert opened.value(COUNT) == 2004


def test_a_log_with_a_damaged_header_is_ignored_as_sqlite_does(store: Path, tmp_path: Path) -> None:
    path = crashed(store, tmp_path / "crashed", ADD)
    flip(Path(f"{path}-wal"), 8)

    with open_for_audit(path) as opened:
        assert opened.value(COUNT) == 2003


def test_the_main_file_can_be_seen_without_the_log_of_another_store(
    stores: Stores, store: Path, tmp_path: Path
) -> None:
    other = filled(copied(stores["0.13.0"], tmp_path / "other"), 500)
    crashed(other, tmp_path / "crashed", "UPDATE messages SET content = 'y'")
    shutil.copyfile(tmp_path / "crashed" / "state.db-wal", f"{store}-wal")
    before = snapshot(store.parent)

    with pytest.raises(StoreUnreadable), open_for_audit(store) as opened:
        list(opened.rows("SELECT * FROM messages"))
    with open_for_audit(store, without_wal=True) as opened:
        assert len(list(opened.rows("SELECT * FROM messages"))) == 2003

    assert snapshot(store.parent) == before


@pytest.fixture
def torn(store: Path, tmp_path: Path) -> Path:
    """A store in rollback mode whose writer died in the middle of a transaction: its journal is hot."""
    source = changed(store, "PRAGMA journal_mode = DELETE")
    spill = (
        "PRAGMA cache_size = 1",
        "BEGIN",
        "UPDATE messages SET content = 'half' WHERE session_id = 'many' AND timestamp < 1400",
    )
    return crashed(source, tmp_path / "torn", *spill, sidecars=("-journal",))


def test_a_hot_journal_is_rolled_back_in_a_copy(torn: Path) -> None:
    before = snapshot(torn.parent)

    with open_for_audit(torn) as opened:
        assert opened.access is Access.COPY
        assert opened.value(COUNT) == 2003
        assert opened.value("SELECT count(*) FROM messages WHERE content = 'half'") == 0
        assert opened.value("PRAGMA main.quick_check(messages)") == "ok"

    assert snapshot(torn.parent) == before


def _name_super_journal(journal: Path, name: Path) -> None:
    text = os.fsencode(name)
    with open(journal, "ab") as file:
        file.write(b"\x00\x00\x00\x00" + text)
        file.write(len(text).to_bytes(4, "big") + (sum(text) & 0xFFFFFFFF).to_bytes(4, "big"))
        file.write(bytes.fromhex("d9d505f920a163d7"))


def test_the_super_journal_that_a_journal_names_is_never_deleted(torn: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"not a journal at all")
    _name_super_journal(Path(f"{torn}-journal"), precious)

    with open_for_audit(torn) as opened:
        assert opened.value("SELECT count(*) FROM messages WHERE content = 'half'") == 0

    assert precious.read_bytes() == b"not a journal at all"


def test_a_journal_whose_super_journal_is_gone_is_ignored_as_sqlite_does(torn: Path, tmp_path: Path) -> None:
    main_alone = Path(shutil.copyfile(torn, tmp_path / "alone.db"))
    _name_super_journal(Path(f"{torn}-journal"), tmp_path / "gone")

    def half(path: Path) -> object:
        with open_for_audit(path) as opened:
            try:
                return opened.value("SELECT count(*) FROM messages NOT INDEXED WHERE content = 'half'")
            except StoreUnreadable:
                return "unreadable"

    assert half(torn) == half(main_alone)


def test_a_held_store_is_refused_and_its_holder_named(store: Path) -> None:
    with held(store, "PRAGMA wal_autocheckpoint = 0", ADD) as process:
        before = snapshot(store.parent)
        with pytest.raises(StoreHeld) as raised, open_for_audit(store):
            pass
        after = snapshot(store.parent)

    assert f"pid {process.pid}" in str(raised.value)
    assert "python" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 4
    assert after == before


@pytest.mark.parametrize(
    "statements",
    [
        ("PRAGMA wal_autocheckpoint = 0", ADD),
        ("PRAGMA wal_autocheckpoint = 0", ADD, "BEGIN IMMEDIATE", "UPDATE messages SET content = 'open'"),
        (ADD, "PRAGMA wal_checkpoint(TRUNCATE)"),
        (ADD, "PRAGMA journal_mode = DELETE"),
        (ADD, "PRAGMA journal_mode = DELETE", "BEGIN IMMEDIATE", "UPDATE sessions SET title = id"),
    ],
    ids=[
        "rows in the log",
        "amid a transaction",
        "empty log",
        "rollback mode",
        "rollback mode amid a transaction",
    ],
)
def test_a_live_copy_is_complete_and_changes_no_sidecar(store: Path, statements: tuple[str, ...]) -> None:
    with held(store, *statements) as process:
        before = snapshot(store.parent)
        with open_for_audit(store, live=True) as opened:
            found = opened.value(COUNT), opened.value("SELECT count(*) FROM messages WHERE content = 'open'")
            access, holders = opened.access, opened.holders
            assert opened.unchanged()
        after = snapshot(store.parent)

    assert found == (2004, 0)
    assert access is Access.BACKUP
    assert [holder.pid for holder in holders] == [process.pid]
    assert after == before


def test_a_live_copy_of_a_store_that_is_held_without_sidecars_creates_none(store: Path) -> None:
    with open(store, "r+b") as source, subprocess.Popen(["sleep", "60"], stdin=source) as looker:
        before = snapshot(store.parent)
        with open_for_audit(store, live=True) as opened:
            assert opened.value(COUNT) == 2003
            assert [holder.pid for holder in opened.holders] == [looker.pid]
        after = snapshot(store.parent)
        looker.kill()

    assert after == before


def test_a_live_copy_of_a_locked_store_gives_up(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_BUSY_MILLISECONDS", 20)
    exclusive = ("PRAGMA journal_mode = DELETE", "BEGIN EXCLUSIVE", "UPDATE sessions SET title = id")
    with (
        held(store, *exclusive),
        pytest.raises(StoreUnreadable, match="locked"),
        open_for_audit(store, live=True),
    ):
        pass


def test_live_changes_nothing_for_a_store_that_nobody_holds(store: Path) -> None:
    with open_for_audit(store, live=True) as opened:
        assert opened.access is Access.ORIGINAL


def test_a_store_that_is_written_to_while_it_is_read_is_told(store: Path) -> None:
    with open_for_audit(store) as opened:
        assert opened.unchanged()
        changed(store, ADD)
        assert not opened.unchanged()


def test_a_store_that_vanishes_while_it_is_read_is_told(store: Path) -> None:
    with open_for_audit(store) as opened:
        store.unlink()
        assert not opened.unchanged()


def test_a_store_that_never_stands_still_is_not_copied(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = crashed(store, tmp_path / "crashed", ADD)
    copy_file = copies._copy_file

    def copy_and_touch(source: str, target: Path) -> None:
        copy_file(source, target)
        facts = path.stat()
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))

    monkeypatch.setattr(copies, "_copy_file", copy_and_touch)
    with pytest.raises(StoreUnreadable, match="changed each of 3 times"), open_for_audit(path):
        pass


def test_private_copies_are_for_this_user_only_and_go_away(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = crashed(store, tmp_path / "crashed", ADD)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    with open_for_audit(path):
        (folder,) = temporary.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o077 for file in folder.iterdir()} == {0}

    assert list(temporary.iterdir()) == []


def test_a_copy_that_has_no_room_is_refused_with_numbers(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = crashed(store, tmp_path / "crashed", ADD)
    monkeypatch.setattr(copies, "_HEADROOM", 1 << 60)
    monkeypatch.setattr(copies, "_share_blocks", lambda source, target: False)

    with (
        pytest.raises(Undetermined, match=r"needs \d+ MiB in .* has \d+ MiB free; set TMPDIR"),
        open_for_audit(path),
    ):
        pass


def test_a_link_is_followed_to_the_rows_in_the_log_of_its_target(store: Path, tmp_path: Path) -> None:
    path = crashed(store, tmp_path / "crashed", ADD)
    link = tmp_path / "link.db"
    link.symlink_to(path)

    with open_for_audit(link) as opened:
        assert opened.value(COUNT) == 2004
        assert opened.path == str(link)


@pytest.mark.parametrize(
    "name", ["a b?c#d%20.db", "ümläut ☃.db", b"\xff\xfe.db".decode("utf-8", "surrogateescape")]
)
def test_a_path_may_have_any_name(store: Path, name: str) -> None:
    path = store.rename(store.parent / name)

    with open_for_audit(path) as opened:
        assert opened.value(COUNT) == 2003


_AS_NOBODY = """
import os, sys
from pathlib import Path
import sqlglot
from statemend.errors import StatemendError
from statemend.store.connection import open_for_audit
with open_for_audit(Path(sys.argv[1])) as opened:  # loads all that is loaded late
    opened.value("SELECT count(*) FROM messages")
os.chdir("/")
os.environ["TMPDIR"] = "/tmp"
if os.getuid() == 0:
    os.setgroups([])
    os.setgid({nobody})
    os.setuid({nobody})
try:
    with open_for_audit(Path(sys.argv[2])) as opened:
        print(opened.access, "|", opened.value("SELECT count(*) FROM messages"), opened.unchanged())
except StatemendError as error:
    print(type(error).__name__, error.exit_code)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def _audit_as_another_user(warm: Path, path: Path) -> str:
    """What an audit by a user without any rights says. If this user has none to drop, by this user."""
    script = _AS_NOBODY.replace("{nobody}", str(NOBODY))
    done = subprocess.run(
        [sys.executable, "-c", script, str(warm), str(path)], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or done.stderr


@pytest.mark.parametrize("log", [False, True], ids=["without a log", "rows in the log"])
def test_a_read_only_folder_is_read_as_another_user(
    stores: Stores, store: Path, open_folder: Path, log: bool
) -> None:
    folder = open_folder / "home"
    path = crashed(store, folder, ADD) if log else copied(store, folder)
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    before = snapshot(folder)

    said = _audit_as_another_user(stores["0.19.0"], path)

    folder.chmod(0o755)
    assert said == ("private copy | 2004 True" if log else "original, immutable | 2003 True")
    assert {name: fact[1:] for name, fact in snapshot(folder).items()} == {
        name: fact[1:] for name, fact in before.items()
    }


@pytest.mark.parametrize("hidden", ["state.db", "state.db-wal", "."])
def test_what_may_not_be_read_cannot_be_determined(
    stores: Stores, store: Path, open_folder: Path, hidden: str
) -> None:
    path = crashed(store, open_folder / "home", ADD)
    (path.parent / hidden).chmod(0)

    said = _audit_as_another_user(stores["0.19.0"], path)

    (path.parent / hidden).chmod(0o755)
    assert said == "Undetermined 3"


def test_no_store_there_is_a_mistake_of_the_request(tmp_path: Path) -> None:
    with pytest.raises(UsageError), open_for_audit(tmp_path / "state.db"):
        pass


def test_a_damaged_first_page_carries_its_facts(store: Path) -> None:
    store.write_bytes(bytes(4096) + store.read_bytes()[4096:])
    before = snapshot(store.parent)

    with pytest.raises(StoreFault, match="overwritten-first-page") as raised, open_for_audit(store):
        pass

    assert raised.value.bundle.fault == "overwritten-first-page"
    assert raised.value.exit_code == 3
    assert snapshot(store.parent) == before


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("messages", "SELECT sum(length(content)) FROM messages"),
        (
            "idx_messages_session",
            "SELECT count(*) FROM messages WHERE session_id >= '' ORDER BY session_id, timestamp",
        ),
        ("sqlite_autoindex_sessions_1", "SELECT count(*) FROM sessions WHERE id > ''"),
    ],
)
def test_a_damaged_page_is_an_error_of_the_store(store: Path, name: str, sql: str) -> None:
    for number, kind in pages_of(store, name):
        if kind == "leaf":
            flip(store, (number - 1) * 4096)

    with open_for_audit(store) as opened, pytest.raises(StoreUnreadable) as raised:
        list(opened.rows(sql))

    assert "malformed" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("version", ["0.13.0", "0.22.2"])
def test_no_flipped_byte_makes_more_than_an_error_of_the_store(
    stores: Stores, tmp_path: Path, version: str
) -> None:
    path = copied(stores[version], tmp_path)
    size = path.stat().st_size
    outcomes = set()
    for offset in [*range(16, 108, 3), *range(108, size, 2011)]:
        flip(path, offset)
        try:
            with open_for_audit(path) as opened:
                for table in ("messages", "sessions", "state_meta"):
                    list(opened.rows(f"SELECT * FROM {table}"))
                    list(opened.rows(f"PRAGMA main.quick_check({table})"))
            outcomes.add("read")
        except StatemendError as error:
            outcomes.add(type(error).__name__)
        finally:
            flip(path, offset)

    assert outcomes == {"read", "StoreUnreadable", "StoreFault"}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM main.messages",
        "UPDATE main.sessions SET title = ''",
        "CREATE TABLE extra (a)",
        "CREATE TEMP TABLE extra (a)",
        "CREATE TEMP VIEW extra AS SELECT 1",
        "DROP VIEW temp.messages",
        "ATTACH ':memory:' AS other",
        "VACUUM INTO '/tmp/copy.db'",
        "PRAGMA user_version = 1",
        "PRAGMA query_only = 0",
        "PRAGMA trusted_schema = 1",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA wal_checkpoint",
        "BEGIN IMMEDIATE",
        "REINDEX",
        "ANALYZE",
        "PRAGMA quick_check(messages)",
        "PRAGMA table_info(messages)",
        "SELECT * FROM pragma_table_info('messages')",
    ],
)
def test_nothing_but_reading_is_allowed(store: Path, statement: str) -> None:
    with open_for_audit(store) as opened, pytest.raises(apsw.AuthError):
        list(opened.rows(statement))


def test_no_extension_is_loaded(store: Path) -> None:
    with open_for_audit(store) as opened, pytest.raises(StoreUnreadable, match="not authorized"):
        opened.value("SELECT load_extension('x')")


def test_a_mistake_in_a_query_names_itself(store: Path) -> None:
    with open_for_audit(store) as opened, pytest.raises(StoreUnreadable, match="no such column: nowhere"):
        opened.value("SELECT nowhere FROM messages")


def test_a_value_and_a_row_are_none_where_there_is_none(store: Path) -> None:
    with open_for_audit(store) as opened:
        assert opened.one("SELECT id FROM messages WHERE id < 0") is None
        assert opened.value("SELECT id FROM messages WHERE id < 0") is None
        assert opened.one("SELECT :a, :b", {"a": 1, "b": b"\x00"}) == (1, b"\x00")


def test_the_store_tells_what_it_has(store: Path) -> None:
    with open_for_audit(store) as opened:
        assert opened.table_exists("async_delegations")
        assert not opened.table_exists("system_prompts")
        assert opened.has_column("messages", "compacted")
        assert not opened.has_column("messages", "display_order")
        assert opened.sqlite_version == apsw.sqlite_lib_version()


def test_cells_of_the_wrong_type_come_as_they_are(store: Path) -> None:
    changed(
        store,
        "INSERT INTO messages (id, session_id, role, content, timestamp, token_count) "
        "VALUES (90001, 'many', x'0102', x'ff00', 'yesterday', 8e252)",
        "INSERT INTO messages (id, session_id, role, content, timestamp) "
        "VALUES (90002, 'many', 5, 6.5, 8e252)",
    )

    with open_for_audit(store) as opened:
        rows = list(
            opened.rows("SELECT role, content, timestamp, token_count FROM messages WHERE id > 90000")
        )

    assert rows == [(b"\x01\x02", b"\xff\x00", "yesterday", 8e252), ("5", "6.5", 8e252, None)]


def test_text_that_is_no_text_comes_escaped_and_the_rest_in_order(store: Path) -> None:
    changed(
        store,
        "DELETE FROM messages WHERE session_id = 'many' AND timestamp > 1006",
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES "
        "('many', 'user', CAST(x'61ff62' AS TEXT), 1), ('many', 'user', CAST(x'eda080' AS TEXT), 2), "
        "('many', 'user', CAST(x'006a736f6e3a' AS TEXT), 3), ('many', 'user', x'ff', 4), "
        "('many', 'user', 'ä', 5), ('many', 'user', NULL, 6)",
    )

    with open_for_audit(store) as opened:
        rows = list(
            opened.rows(
                "SELECT id, content, timestamp FROM messages WHERE session_id = ? ORDER BY id;", ("many",)
            )
        )

    assert [row[0] for row in rows] == sorted({row[0] for row in rows})
    assert len(rows) == 12
    assert [row[1] for row in rows[6:]] == ["a\\xffb", "\\xed\\xa0\\x80", "\0json:", b"\xff", "ä", None]


@pytest.mark.parametrize("bindings", [("\ud800",), {"id": "a\udfff"}])
def test_a_name_that_no_text_can_be_equals_no_row(store: Path, bindings: connection.Bindings) -> None:
    with open_for_audit(store) as opened:
        assert opened.one("SELECT id FROM sessions WHERE id = :id", bindings) is None
        assert opened.value("SELECT count(*) FROM sessions WHERE id <> :id", bindings) == 2


def test_a_name_that_is_no_text_is_an_error_of_the_store(tmp_path: Path) -> None:
    path = changed(
        tmp_path / "state.db",
        "CREATE TABLE xxyyzz (a PRIMARY KEY)",
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT REFERENCES xxyyzz (a))",
    )
    path.write_bytes(path.read_bytes().replace(b"xxyyzz", b"xx\xff\xffzz"))

    with open_for_audit(path) as opened:
        assert "xx\\xff\\xffzz" in opened.schema.tables
        with pytest.raises(StoreUnreadable, match="not valid text"):
            list(opened.rows("PRAGMA main.foreign_key_list(messages)"))
