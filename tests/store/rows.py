"""Stores filled row by row: a store that a release made, emptied, with the rows that a test is about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
from tests.store.folders import copied

from statemend.store.connection import Store, open_for_audit

DATA = Path(__file__).resolve().parent.parent / "data"
#: The newest release of each era.
ERA_RELEASES = ("0.15.2", "0.17.0", "0.19.0", "0.20.1", "0.22.2")


class Rows:
    """A store under construction, without triggers and foreign keys: it holds exactly what it is given."""

    def __init__(self, folder: Path, release: str) -> None:
        self.path = copied(DATA / "stores" / f"{release}.db", folder)
        triggers = self.run("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        emptied = (f"DELETE FROM {table}" for table in ("messages", "sessions", "sqlite_sequence"))
        self.run(*(f"DROP TRIGGER {name}" for (name,) in triggers), *emptied)

    def run(self, *statements: str, bindings: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run statements, the last one with the bindings, and return its rows."""
        with self._connected() as connection:
            for statement in statements[:-1]:
                connection.execute(statement)
            return list(connection.execute(statements[-1], bindings))

    def insert(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        """Insert rows. Columns that the release does not have are left out."""
        with self._connected() as connection, connection:
            have = {row[1] for row in connection.execute(f"PRAGMA table_info('{table}')")}
            for row in rows:
                kept = {name: value for name, value in row.items() if name in have}
                marks = ", ".join("?" * len(kept))
                sql = f"INSERT INTO {table} ({', '.join(kept)}) VALUES ({marks})"
                connection.execute(sql, tuple(kept.values()))

    def session(self, sid: str, **values: Any) -> Rows:
        """Add a session. ``config`` becomes ``model_config``."""
        config = values.pop("config", None)
        row = {"id": sid, "source": "cli", "started_at": 1000.0, **values}
        if config is not None:
            row["model_config"] = config if isinstance(config, str) else json.dumps(config)
        self.insert("sessions", [row])
        return self

    def message(self, sid: str, content: Any, *, at: Any = 1.0, role: str = "user", **values: Any) -> Rows:
        """Add a message. Structured content is stored as Hermes stores it."""
        if isinstance(content, (list, dict)):
            content = "\0json:" + json.dumps(content)
        self.insert(
            "messages", [{"session_id": sid, "role": role, "content": content, "timestamp": at, **values}]
        )
        return self

    @contextmanager
    def _connected(self) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(self.path))
        try:
            connection.execute("PRAGMA synchronous = OFF")
            yield connection
        finally:
            connection.close()

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """The store, opened for audit."""
        with open_for_audit(self.path) as store:
            yield store


#: Flags of an archived and of a rewound row.
ARCHIVED = {"active": 0, "compacted": 1}
REWOUND = {"active": 0, "compacted": 0}
