"""Small plans for the tests of the engine: a store of a release, one fault in it, the plan that mends it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec

from statemend.audit.engine import audit
from statemend.repair.cells import encode, row_digest
from statemend.repair.plan import Kind, Operation, Plan, Step, StepClass, StoreIdentity, dump
from statemend.repair.store_identity import INSTANCE, SCHEMA_OBJECTS, schema_digest
from statemend.store.connection import open_for_audit
from statemend.store.identity import store_digest

NOW = 1_790_000_000.0


def home_with(folder: Path, store: Path) -> Path:
    """A home in ``folder`` with a copy of ``store``; the path of the copy."""
    home = folder / "home"
    home.mkdir()
    return Path(shutil.copy(store, home / "state.db"))


def query(path: Path, sql: str, bindings: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """What another program sees."""
    with closing(apsw.Connection(str(path))) as connection:
        return list(connection.execute(sql, bindings))


def change(path: Path, *statements: str, foreign_keys: bool = False) -> None:
    """What another program does, in one transaction."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("foreign_keys", foreign_keys)
        with connection:
            for statement in statements:
                connection.execute(statement)


def digest(path: Path) -> str:
    """The digest of every row, as an audit reads it."""
    with open_for_audit(path) as store:
        return store_digest(store)


def row(path: Path, table: str, column: str, value: Any) -> dict[str, Any]:
    """One whole row."""
    with closing(apsw.Connection(str(path))) as connection:
        return _row(connection, table, column, value)


def _row(connection: apsw.Connection, table: str, column: str, value: Any) -> dict[str, Any]:
    cursor = connection.execute(f'SELECT * FROM main."{table}" WHERE "{column}" IS ?', (value,))
    names = [name for name, *_ in cursor.get_description()]
    return dict(zip(names, next(cursor), strict=True))


def cells(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: encode(value) for name, value in values.items()}


def update(path: Path, table: str, key: tuple[str, Any], after: Mapping[str, Any]) -> Operation:
    """An update of one row as it is now."""
    found = row(path, table, *key)
    return Operation(
        kind=Kind.UPDATE,
        table=table,
        key=cells({key[0]: key[1]}),
        before=cells({name: found[name] for name in after}),
        before_digest=row_digest(found),
        after=cells(after),
    )


def insert(table: str, key: str, values: Mapping[str, Any]) -> Operation:
    """An insert of one row."""
    return Operation(kind=Kind.INSERT, table=table, key=cells({key: values[key]}), after=cells(values))


def step(
    *operations: Operation,
    reindex: Sequence[str] = (),
    sessions: Sequence[str] = (),
    finding: str = "TST001-0",
) -> Step:
    """One safe step."""
    return Step(
        id=f"{finding}/test/1",
        recipe="test",
        finding=finding,
        step_class=StepClass.SAFE,
        title="Mend it",
        why="A test wants it",
        operations=operations,
        reindex=tuple(reindex),
        sessions=tuple(sessions),
    )


def plan(path: Path, *steps: Step) -> Plan:
    """A plan for the store at ``path``."""
    with open_for_audit(path) as store:
        instance = store.value(INSTANCE) if store.table_exists("state_meta") else None
        identity = StoreIdentity(
            path=str(path),
            schema_digest=schema_digest(store.rows(SCHEMA_OBJECTS)),
            instance=None if instance is None else str(instance),
        )
    made = Plan(
        id="feedfacefeedface",
        made_at="2026-01-01 00:00:00 UTC",
        tool="statemend test",
        home=str(path.parent),
        store=identity,
        steps=steps,
    )
    return msgspec.structs.replace(made, id=made.digest[:16])


def write(made: Plan, path: Path) -> Path:
    """The plan as a file."""
    path.write_bytes(dump(made))
    return path


def with_foreign_index(path: Path) -> None:
    """The index of Hermes whose tokenizer is an extension of its own, with the triggers that keep it up."""
    change(
        path,
        "CREATE VIRTUAL TABLE messages_fts_cjk USING fts5(content, content='messages', content_rowid='id')",
        "CREATE TRIGGER messages_fts_cjk_insert AFTER INSERT ON messages BEGIN "
        "INSERT INTO messages_fts_cjk(rowid, content) VALUES (new.id, new.content); END",
        "CREATE TRIGGER messages_fts_cjk_delete AFTER DELETE ON messages BEGIN "
        "INSERT INTO messages_fts_cjk(messages_fts_cjk, rowid, content) "
        "VALUES ('delete', old.id, old.content); END",
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - 1) || ', tokenize=cjk_unicode61)' "
        "WHERE name = 'messages_fts_cjk'",
    )


def orphaned(folder: Path, release: Path) -> tuple[Path, Path]:
    """A store whose only session lost its row, and a plan file that puts the row back."""
    store = home_with(folder, release)
    ((session, *_),) = query(store, "SELECT session_id FROM messages ORDER BY id LIMIT 1")
    lost = row(store, "sessions", "id", session)
    change(store, f"DELETE FROM sessions WHERE id = '{session}'")
    mend = step(insert("sessions", "id", lost), sessions=[session], finding=orphans(store))
    return store, write(plan(store, mend), folder / "plan.json")


def orphans(store: Path) -> str:
    """The id of the finding that a store with orphaned messages has."""
    return next(finding.id for finding in audit(store, now=NOW).findings if finding.rule == "ORP001")


def mixed(folder: Path, release: Path) -> tuple[Path, Path]:
    """As ``orphaned``, with a plan that besides sets a message to rewound (where the release can), notes
    something in ``state_meta``, and builds a search index anew."""
    store, _ = orphaned(folder, release)
    ((session, message),) = query(store, "SELECT session_id, id FROM messages ORDER BY id DESC LIMIT 1")
    lost = row_of_release(release, session)
    operations = [
        insert("sessions", "id", lost),
        insert("state_meta", "key", {"key": "mended", "value": "yes"}),
    ]
    if "active" in row(store, "messages", "id", message):
        operations.insert(1, update(store, "messages", ("id", message), {"active": 0}))
    mend = step(*operations, reindex=["messages_fts"], sessions=[session], finding=orphans(store))
    made = plan(store, mend)
    return store, write(made, folder / "plan.json")


def row_of_release(release: Path, session: str) -> dict[str, Any]:
    """The row of a session as the release wrote it."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with closing(apsw.Connection(f"file:{release}?immutable=1", flags=flags)) as connection:
        return _row(connection, "sessions", "id", session)
