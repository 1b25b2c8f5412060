"""The demo home is indistinguishable in shape from what release 0.19.0 writes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from tests.hermes.home import HermesHome, assistant, user

from statemend.demo import build as demo

pytestmark = pytest.mark.hermes

VOLATILE = re.compile(r'(exported_at: |Exported at: |SHA256 of exported body: )[`"][^`"]+[`"]')


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo.build(tmp_path_factory.mktemp("demo") / "home")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HermesHome]:
    """A home of the release itself that went through what the demo home tells."""
    with HermesHome("0.19.0", tmp_path_factory.mktemp("real") / "home") as home:
        chat = home.chat("20260801_090500_aaaaaa")
        chat.tool_turn("How full is the disk?", "df -h", "40 %", "It is 40 % full.")
        chat.turns(8)
        chat.say(user("Enough?"), assistant("Enough."))
        chat.undo()
        chat.compact()
        chat.close()
        home.export("20260801_090500_aaaaaa", "md")
        gateway = home.gateway_session("81225")
        home.append(gateway, "user", "hello")
        home.stop()
        yield home


def _rows(store: Path, sql: str) -> list[tuple[object, ...]]:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"file:{store}?immutable=1", flags=flags).execute(sql).fetchall()


def test_tables_indexes_and_triggers_are_the_release_s_own(made: Path, real: HermesHome) -> None:
    sql = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'telegram%' ORDER BY 1, 2"
    assert _rows(made / "state.db", sql) == _rows(real.state_db, sql)


def test_file_settings_are_alike(made: Path, real: HermesHome) -> None:
    for pragma in ("page_size", "auto_vacuum", "encoding", "user_version", "application_id"):
        assert _rows(made / "state.db", f"PRAGMA {pragma}") == _rows(real.state_db, f"PRAGMA {pragma}"), (
            pragma
        )
    assert _rows(made / "state.db", "SELECT version FROM schema_version") == [(22,)]


@pytest.mark.parametrize("table", ["sessions", "messages"])
def test_each_column_holds_a_type_that_the_release_stores(made: Path, real: HermesHome, table: str) -> None:
    for _, name, declared, not_null, _, _ in _rows(made / "state.db", f"PRAGMA table_info({table})"):
        sql = f'SELECT DISTINCT typeof("{name}") FROM {table} ORDER BY 1'
        stored = {row[0] for row in _rows(made / "state.db", sql)}
        lawful = {str(declared).lower()} | (set() if not_null else {"null"})
        assert stored <= lawful, name
        always = {row[0] for row in _rows(real.state_db, sql)}
        if always == {"integer"}:
            assert stored == always, f"{name} is never NULL in a real store"


def test_tool_calls_are_encoded_alike(made: Path, real: HermesHome) -> None:
    for store in (made / "state.db", real.state_db):
        for (calls,) in _rows(store, "SELECT tool_calls FROM messages WHERE tool_calls IS NOT NULL"):
            decoded = json.loads(str(calls))
            assert calls == json.dumps(decoded)
            assert {"id", "type", "function"} <= decoded[0].keys()


def test_the_release_reads_the_demo_home_and_exports_the_same_bytes(made: Path, tmp_path: Path) -> None:
    home_path = tmp_path / "home"
    home_path.mkdir()
    shutil.copy(made / "state.db", home_path / "state.db")
    with HermesHome("0.19.0", home_path, now=demo.AUDITED_AT) as home:
        assert home.value("PRAGMA integrity_check", []) == "ok"
        assert len(home.messages(demo.COMPACTED)) == 5
        done = home.export(demo.COMPACTED, "md")
    (ours,) = made.glob(f"session-exports/{demo.COMPACTED}*.md")
    (theirs,) = (path for path in done.files if path.suffix == ".md")
    assert ours.name == theirs.name
    assert VOLATILE.sub(r"\1", ours.read_text()) == VOLATILE.sub(r"\1", theirs.read_text())


def test_the_manifest_has_the_release_s_members(made: Path, real: HermesHome) -> None:
    kept = [
        [json.loads(line) for line in (home / "session-exports" / "manifest.jsonl").read_text().splitlines()]
        for home in (made, real.path)
    ]
    ours, theirs = ({key: type(value) for entry in lines for key, value in entry.items()} for lines in kept)
    assert ours == theirs
    for lines in kept:
        assert [list(entry) for entry in lines] == [sorted(entry) for entry in lines]


def test_the_append_that_failed_fails_again(made: Path, tmp_path: Path) -> None:
    shutil.copy(made / "state.db", tmp_path / "state.db")
    with HermesHome("0.19.0", tmp_path, now=demo.AUDITED_AT) as home:
        with pytest.raises(Exception, match="FOREIGN KEY constraint failed"):
            home.append(demo.ORPHANED, "user", "still there?")
        assert home.tip(demo.FORKED) == demo.CONTINUED
        assert home.lineage(demo.FORKED) == [demo.FORKED, demo.REAPED]
        listed = {row["id"] for row in home.store("list_sessions_rich", limit=500)}
    assert demo.MISTAGGED not in listed
    assert demo.COMPACTED in listed
