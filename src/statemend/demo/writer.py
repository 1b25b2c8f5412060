"""Write rows into a new store the way Hermes 0.19.0 does.

The starting point is an empty store that a real 0.19.0 made, shipped beside this module, so tables, indexes,
search indexes and triggers are the release's own. This class adds rows with the values that release would
have written; a test compares the result with a home made by the release itself.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import apsw

EMPTY_STORE = "empty-store-0.19.0.db.xz"


def new_store(path: Path) -> None:
    """Create ``path`` (mode 0600) as an empty 0.19.0 store; ``FileExistsError`` if it is there already."""
    content = lzma.decompress(files("statemend.demo").joinpath(EMPTY_STORE).read_bytes())
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


class StoreWriter:
    """A store that ``new_store`` made, open for writing in one transaction. Times are epoch seconds."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        self._run("PRAGMA foreign_keys = ON")
        self._run("BEGIN IMMEDIATE")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run("COMMIT" if kind is None else "ROLLBACK")
        self._connection.close()

    def _run(self, sql: str, bindings: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, tuple(bindings)).fetchall()

    def create(self, session_id: str, source: str, started_at: float, **columns: str | None) -> None:
        """Insert a session row; ``columns`` are further columns of ``sessions`` by name."""
        values: dict[str, Any] = {"id": session_id, "source": source, "started_at": started_at, **columns}
        names = ", ".join(values)
        marks = ", ".join("?" * len(values))
        self._run(f"INSERT INTO sessions ({names}) VALUES ({marks})", values.values())

    def append(self, session_id: str, message: Mapping[str, Any]) -> int:
        """Append one live message and count it; returns its row id."""
        row_id = self._insert(session_id, message)
        self._run(
            """
            UPDATE sessions
            SET message_count = message_count + 1, tool_call_count = tool_call_count + ?
            WHERE id = ?
            """,
            (len(message.get("tool_calls") or ()), session_id),
        )
        return row_id

    def compact(self, session_id: str, compacted: Sequence[Mapping[str, Any]]) -> None:
        """Archive every live row and insert ``compacted`` (summary and carried tail) as the live set."""
        self._run(
            "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", (session_id,)
        )
        for message in compacted:
            self._insert(session_id, message)
        calls = sum(len(message.get("tool_calls") or ()) for message in compacted)
        self._run(
            "UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?",
            (len(compacted), calls, session_id),
        )

    def first_row(self, session_id: str) -> int:
        """The lowest row id of a session."""
        row_id: int = self._run("SELECT MIN(id) FROM messages WHERE session_id = ?", (session_id,))[0][0]
        return row_id

    def rewind(self, session_id: str, first_id: int) -> None:
        """Undo: hide every live row from ``first_id`` on. The counter stays, as it does in 0.19.0."""
        self._run(
            "UPDATE messages SET active = 0 WHERE session_id = ? AND id >= ? AND active = 1",
            (session_id, first_id),
        )
        self._run("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = ?", (session_id,))

    def end(self, session_id: str, at: float, reason: str) -> None:
        """Stamp the end of a session; the first stamp wins."""
        self._run(
            "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL",
            (at, reason, session_id),
        )

    def delete(self, session_id: str) -> None:
        """Delete a session as 0.19.0 does: detach its children, then take every row, whatever its state."""
        self._run("UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id = ?", (session_id,))
        self._run("DELETE FROM messages WHERE session_id = ?", (session_id,))
        self._run("DELETE FROM sessions WHERE id = ?", (session_id,))

    def delete_row_only(self, session_id: str) -> None:
        """Delete the session row and leave its messages, as a tool with foreign keys off does."""
        self._run("COMMIT")
        self._run("PRAGMA foreign_keys = OFF")
        self._run("DELETE FROM sessions WHERE id = ?", (session_id,))
        self._run("PRAGMA foreign_keys = ON")
        self._run("BEGIN IMMEDIATE")

    def _insert(self, session_id: str, message: Mapping[str, Any]) -> int:
        calls = message.get("tool_calls")
        self._run(
            """
            INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp,
                                  finish_reason, reasoning, observed, active)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 1)
            """,
            (
                session_id,
                message["role"],
                message.get("content"),
                message.get("tool_call_id"),
                json.dumps(calls) if calls else None,
                message.get("tool_name"),
                message["timestamp"],
                message.get("finish_reason"),
                message.get("reasoning"),
            ),
        )
        return self._connection.last_insert_rowid()
