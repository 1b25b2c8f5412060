"""The journal of a run keeps every line that was written whole."""

from __future__ import annotations

from pathlib import Path

from statemend.repair.journal import Journal, read


def test_a_line_that_was_cut_short_does_not_swallow_the_next(tmp_path: Path) -> None:
    """A full disk cuts the line of a commit short; the undo that follows goes on in the same journal."""
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.step("fence entered")
    with path.open("ab") as file:
        file.write(b'{"step":"comm')
    journal.step("undo begun")
    journal.step("undone")
    assert [entry.step for entry in read(path)] == ["fence entered", "undo begun", "undone"]
