"""An audit reads a store once and leaves nothing behind: not beside it, and not in the temporary folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from tests.e2e.conftest import DATA
from tests.e2e.folder import snapshot
from tests.e2e.running import Audit, Refusal, Statemend, rules

from statemend.store import connection

#: Releases whose exports leave out what compaction archived.
LOSSY = ("0.18.2", "0.19.0", "0.20.1")
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


@pytest.fixture
def linked(home: Path, tmp_path: Path) -> Path:
    """A home whose store is a link to a file elsewhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (home / "state.db").rename(elsewhere / "real.db")
    (home / "state.db").symlink_to(elsewhere / "real.db")
    return home


def test_a_store_behind_a_link_is_audited_and_both_folders_stay(
    audit: Audit, linked: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    before = snapshot(elsewhere)
    assert audit(linked, code=0)["stores"][0]["sessions"] == 14
    assert snapshot(elsewhere) == before


def test_no_report_is_written_into_either_folder(refusal: Refusal, linked: Path, tmp_path: Path) -> None:
    for folder in (linked, tmp_path / "elsewhere"):
        line = refusal("scan", linked, "-o", folder / "r.html", code=4, folder=tmp_path)
        assert "lies in the audited home, where nothing is written" in line


@pytest.mark.parametrize("verb", [("scan",), ("show", "20260801_120000_ffffff")])
@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_no_verb_leaves_a_trace_in_any_journal_mode(
    statemend: Statemend, home: Path, verb: tuple[str, ...], journal: str
) -> None:
    db = apsw.Connection(str(home / "state.db"))
    db.execute(f"PRAGMA journal_mode = {journal}")
    db.close()
    before = snapshot(home)
    assert statemend(verb[0], home, *verb[1:]).code == 0
    assert snapshot(home) == before
    assert [path.name for path in home.iterdir()] == ["state.db"]


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.18.2", "0.19.0", "0.20.1", "0.22.2"])
def test_the_exports_of_each_release_stay_as_they_are(audit: Audit, tmp_path: Path, version: str) -> None:
    home = tmp_path / "home"
    shutil.copytree(DATA / "exports" / version, home / "session-exports")
    (home / "session-exports" / "state.db").rename(home / "state.db")
    document = audit(home, "--with-content", code=1 if version in LOSSY else 0)
    assert len(document["artifacts"]) > 10
    assert rules(document, "could not run") == {}
