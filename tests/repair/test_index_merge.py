"""An index that a cleanup and its undo went over stays sound under the SQLite that Python has."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.repair import plans
from tests.repair.cleanups import NOW, cleaned

from statemend.repair.cleanup import apply
from statemend.repair.undo import undo


@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_no_deletion_waits_in_an_index(tmp_path: Path, release: str) -> None:
    """Each index is one segment: its structure record says so in its first level."""
    scene = cleaned(tmp_path, release)
    file, run = scene.file("alpha"), tmp_path / "run"
    for done in (apply(file, run_dir=run, now=NOW), undo(run, now=NOW)):
        assert done is not None
        for index in ("messages_fts", "messages_fts_trigram"):
            (segments,) = plans.query(scene.store, f"SELECT COUNT(DISTINCT segid) FROM {index}_idx")[0]
            assert segments == 1, index


def test_an_older_sqlite_goes_on_with_the_indexes(tmp_path: Path) -> None:
    scene = cleaned(tmp_path, "0.19.0")
    for number in range(4):
        apply(scene.file("alpha"), run_dir=tmp_path / f"run-{number}", now=NOW)
        undo(tmp_path / f"run-{number}", now=NOW)
    with closing(sqlite3.connect(scene.store, isolation_level=None)) as other:
        for number in range(120):
            other.execute(
                "INSERT INTO messages (session_id, role, content, timestamp) "
                "VALUES ('other', 'user', ?, 1.0)",
                (f"message {number}",),
            )
            if number % 3 == 0:
                other.execute("DELETE FROM messages WHERE id = (SELECT MIN(id) FROM messages)")
            for index in ("messages_fts", "messages_fts_trigram"):
                other.execute(f"INSERT INTO {index}({index}) VALUES ('integrity-check')")
