"""The demo home: written without Hermes, the same each time, and never over anything."""

from __future__ import annotations

import stat
from pathlib import Path

import apsw
import pytest

from statemend.demo import build as demo
from statemend.errors import UsageError


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo.build(tmp_path_factory.mktemp("demo") / "home")


def _rows(home: Path, sql: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(
        f"file:{home / 'state.db'}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    return connection.execute(sql).fetchall()


def test_the_store_is_sound_but_for_the_orphans(home: Path) -> None:
    assert _rows(home, "PRAGMA integrity_check") == [("ok",)]
    violations = _rows(home, "PRAGMA foreign_key_check")
    orphans = _rows(home, f"SELECT id FROM messages WHERE session_id = '{demo.ORPHANED}'")
    assert {(row[0], row[1]) for row in violations} == {("messages", row[0]) for row in orphans}
    assert orphans


def test_the_search_index_follows_the_rows(home: Path) -> None:
    indexed = _rows(home, "SELECT COUNT(*) FROM messages_fts_docsize")
    assert indexed == _rows(home, "SELECT COUNT(*) FROM messages")


def test_most_sessions_are_healthy(home: Path) -> None:
    (total,) = _rows(home, "SELECT COUNT(*) FROM sessions")[0]
    damaged = [name for name in dir(demo) if name.isupper() and str(getattr(demo, name)).startswith("2026")]
    assert total > 4 * len(damaged)


def test_the_swept_session_left_an_export_and_no_row(home: Path) -> None:
    assert _rows(home, f"SELECT 1 FROM sessions WHERE id = '{demo.SWEPT}'") == []
    assert _rows(home, f"SELECT 1 FROM messages WHERE session_id = '{demo.SWEPT}'") == []
    assert [path.suffix for path in home.glob(f"session-exports/{demo.SWEPT}*")] == [".md"]


def test_every_file_is_private(home: Path) -> None:
    files = [path for path in home.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {path.name for path in files} >= {"state.db", "manifest.jsonl", "agent.log", "errors.log"}


def test_two_demos_are_alike_byte_for_byte(home: Path, tmp_path: Path) -> None:
    again = demo.build(tmp_path / "again")
    names = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())
    assert names == sorted(str(path.relative_to(again)) for path in again.rglob("*") if path.is_file())
    for name in names:
        assert (home / name).read_bytes() == (again / name).read_bytes(), name
        assert (home / name).stat().st_mtime == (again / name).stat().st_mtime, name


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"mine")
    with pytest.raises(UsageError, match="already holds something"):
        demo.build(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["state.db"]
    assert (tmp_path / "state.db").read_bytes() == b"mine"


def test_a_file_in_the_way_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError):
        demo.build(tmp_path / "file")
    with pytest.raises(UsageError, match="cannot write the demo home"):
        demo.build(tmp_path / "file" / "below")
