"""An audit reads a store once and leaves nothing behind: not beside it, and not in the temporary folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.folder import snapshot
from tests.e2e.running import Statemend

from statemend.store import connection

#: Writes one row and keeps the store open until its standard input is closed.
_HOLD = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA wal_autocheckpoint = 0")
db.execute(
    "INSERT INTO messages (session_id, role, content, timestamp) "
    "SELECT id, 'user', 'only in the log', 1.79e9 FROM sessions ORDER BY id LIMIT 1"
)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def held(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the store of ``home`` open, with a row that is only in its write-ahead log."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(home / "state.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder
        holder.communicate("")


def crashed(home: Path, tmp_path: Path, holder: subprocess.Popen[str]) -> Path:
    """The home as it would lie there had the holder been killed: main file and log."""
    copy = tmp_path / "crashed"
    shutil.copytree(home, copy)
    holder.kill()
    holder.wait()
    return copy


def copies(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Path]:
    """Where copies of the store go while a test runs."""
    made: list[Path] = []
    original = getattr(connection, name)

    def counted(bundle: object, folder: Path) -> Path:
        made.append(folder)
        return Path(original(bundle, folder))

    monkeypatch.setattr(connection, name, counted)
    return made


@pytest.mark.parametrize("options", [(), ("--with-content",), ("--deep",)])
def test_a_store_with_a_log_is_copied_once_for_audit_and_report(
    statemend: Statemend,
    home: Path,
    held: subprocess.Popen[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
) -> None:
    folder = crashed(home, tmp_path, held)
    before = snapshot(folder)
    made = copies(monkeypatch, "copy_store")
    assert statemend("scan", folder, "--format", "html", *options).code == 1
    assert [folder.exists() for folder in made] == [False]
    assert snapshot(folder) == before


def test_a_live_store_is_copied_once_for_audit_and_report(
    statemend: Statemend, home: Path, held: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = copies(monkeypatch, "_live_copy")
    assert statemend("scan", home, "--live", "--format", "html", "--with-content").code == 1
    assert [folder.exists() for folder in made] == [False]
