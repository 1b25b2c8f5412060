"""Builds homes for the rule tests: a store that a real release made, then changed row by row."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from statemend.audit.engine import Audit, RuleResult, audit
from statemend.audit.finding import Finding

DATA = Path(__file__).resolve().parent.parent / "data"

#: Every release of which a small store is kept under ``tests/data/stores``.
VERSIONS = ("0.13.0", "0.14.0", "0.15.2", "0.16.0", "0.17.0", "0.18.2", "0.19.0", "0.20.1", "0.22.2")
#: Releases of which a richer store, with exports, is kept under ``tests/data/exports``.
EXPORTED = tuple(sorted(path.parent.name for path in DATA.glob("exports/*/state.db")))

NOW = 1_800_000_000.0
#: A time well before ``NOW``, in epoch seconds: the first message of a built session.
START = 1_790_000_000.0


class HomeBuilder:
    """A home under construction. Every method changes the store at once, with foreign keys off."""

    def __init__(self, root: Path, version: str, *, empty: bool = True, rich: bool = False) -> None:
        self.root = root
        self.version = version
        self.store = root / "state.db"
        self._open: apsw.Connection | None = None
        root.mkdir(parents=True, exist_ok=True)
        source = DATA / "exports" / version / "state.db" if rich else DATA / "stores" / f"{version}.db"
        shutil.copyfile(source, self.store)
        # SQLite splits text with NULs differently since these indexes were built, and then cannot delete it.
        self.sql("INSERT INTO messages_fts_trigram (messages_fts_trigram) VALUES ('rebuild')")
        if empty and not rich:
            self.sql("DELETE FROM messages", "DELETE FROM sessions")

    def sql(self, *statements: str, bindings: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run each statement with foreign keys off and return the rows of the last one."""
        if self._open is not None:
            return _run(self._open, statements, bindings)
        with self.opened() as connection:
            return _run(connection, statements, bindings)

    @contextmanager
    def opened(self) -> Iterator[apsw.Connection]:
        """Keep the store open within the block, in which many statements are then run quickly."""
        with closing(apsw.Connection(str(self.store))) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            self._open = connection
            try:
                yield connection
            finally:
                self._open = None

    def columns(self, table: str) -> set[str]:
        return {row[1] for row in self.sql(f"PRAGMA table_info('{table}')")}

    def insert(self, table: str, **values: Any) -> None:
        """Insert one row. Columns that this release does not have are left out."""
        known = self.columns(table)
        present = {
            name: json.dumps(value) if isinstance(value, dict | list) else value
            for name, value in values.items()
            if name in known
        }
        names = ", ".join(f'"{name}"' for name in present)
        marks = ", ".join("?" for _ in present)
        self.sql(f"INSERT INTO {table} ({names}) VALUES ({marks})", bindings=tuple(present.values()))

    def session(self, session_id: str, **values: Any) -> str:
        """Insert a session row: from the cli, started at ``START``, open, unless told otherwise."""
        self.insert("sessions", **{"id": session_id, "source": "cli", "started_at": START, **values})
        return session_id

    def message(self, session_id: str, role: str = "user", content: Any = "text", **values: Any) -> int:
        """Insert a message row, one second after the row before it, and return its id."""
        (count,) = self.sql("SELECT COUNT(*) FROM messages")[0]
        defaults = {"session_id": session_id, "role": role, "content": content, "timestamp": START + count}
        if "active" in self.columns("messages"):
            defaults["active"] = 1
        self.insert("messages", **{**defaults, **values})
        return int(self.sql("SELECT MAX(id) FROM messages")[0][0])

    def turns(self, session_id: str, number: int, **values: Any) -> list[int]:
        """Insert ``number`` rows, user and assistant in turn, and count them as Hermes does."""
        rows = [
            self.message(session_id, ("user", "assistant")[i % 2], f"turn {i} of {session_id}", **values)
            for i in range(number)
        ]
        self.sql(
            "UPDATE sessions SET message_count = COALESCE(message_count, 0) + ? WHERE id = ?",
            bindings=(number, session_id),
        )
        return rows

    def chat(self, session_id: str, turns: int = 4, **values: Any) -> list[int]:
        """A session with that many messages and a right counter."""
        self.session(session_id, **values)
        return self.turns(session_id, turns)

    def log(self, lines: Iterable[str], name: str = "agent.log") -> Path:
        """Append lines to a log file of the home."""
        path = self.root / "logs" / name
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.writelines(line + "\n" for line in lines)
        return path

    def file(self, relative: str, data: bytes | str) -> Path:
        """Write a file below the home."""
        path = self.root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def audit(self, *rules: str, **options: Any) -> Audit:
        """Audit this home with the named rules, or with all of them."""
        return audit(self.root, rules=rules or None, now=options.pop("now", NOW), **options)

    def findings(self, rule: str, **options: Any) -> list[Finding]:
        """The findings of one rule. Fails when the rule could not run."""
        outcome = self.audit(rule, **options)
        broken = [result for result in outcome.rules if result.status == "could not run"]
        assert not broken, broken[0].reason
        return list(outcome.findings)

    def result(self, rule: str, **options: Any) -> RuleResult:
        """How one rule ended."""
        (result,) = self.audit(rule, **options).rules
        return result


def _run(
    connection: apsw.Connection, statements: Iterable[str], bindings: tuple[Any, ...]
) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    with connection:
        for statement in statements:
            rows = list(connection.execute(statement, bindings if "?" in statement else ()))
    return rows


def facts(finding: Finding) -> dict[str, Any]:
    """A finding's evidence as a dict, label to value."""
    return {fact.label: fact.value for fact in finding.evidence}
