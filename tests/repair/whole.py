"""Whole stores: put back as they were, and looked through as the next program would."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
from tests.repair import plans


def restore(store: Path, content: bytes) -> None:
    """Put the store back as it was, alone."""
    for suffix in ("-wal", "-shm", "-journal", ".statemend-lock"):
        store.with_name(store.name + suffix).unlink(missing_ok=True)
    store.write_bytes(content)


def sound(store: Path, mode: str) -> None:
    """Look for what any program that opens the store next must find: sound tables and search index, the
    journal mode that it had, the rows that an audit saw, and nothing that waits to be rolled back."""
    digest = plans.digest(store)
    with closing(apsw.Connection(str(store))) as plain:
        for table in ("sessions", "messages", "state_meta"):
            assert plain.execute(f"PRAGMA main.quick_check({table})").get == "ok"
        plain.execute("INSERT INTO messages_fts(messages_fts, rank) VALUES ('integrity-check', 1)")
        assert plain.pragma("journal_mode") == mode
    left = {path.name for path in store.parent.iterdir() if path.name.startswith("state.db")}
    assert left <= {"state.db", "state.db.statemend-lock", "state.db-journal"}
    journal = store.with_name("state.db-journal")
    assert not journal.exists() or not journal.read_bytes()[:1].strip(b"\0")
    assert plans.digest(store) == digest
