"""The heart of a repair: the last checks, the change, and the proof of it, all inside one fence.

Whatever is found wrong here is raised, and the fence takes everything back.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import msgspec

from statemend.errors import Refused, RolledBack
from statemend.repair import bounds, changes, digests, record, search
from statemend.repair.cells import SqlValue
from statemend.repair.journal import Journal
from statemend.repair.plan import Kind, Operation, Plan
from statemend.repair.preflight import check_identity, check_leases
from statemend.repair.statements import build
from statemend.store.identity import store_digest
from statemend.store.writing import RepairConnection


class Before(msgspec.Struct, frozen=True):
    """The state that a change starts from, as far as a proof needs it."""

    content: digests.Content
    broken: dict[digests.Broken, int]
    sequence: dict[str, int]
    search: dict[str, str]
    settings: dict[str, str]

    @property
    def broken_counter(self) -> Counter[digests.Broken]:
        """The broken references, countable."""
        return Counter(self.broken)


def look(connection: RepairConnection) -> Before:
    """Read everything that must still hold afterwards."""
    store = connection.store
    return Before(
        content=digests.content(store),
        broken=dict(digests.broken_references(store)),
        sequence=digests.sequence(store),
        search=digests.search_health(connection),
        settings=digests.persistent(store),
    )


def check_fresh(connection: RepairConnection, plan: Plan, *, now: float, data_version: int) -> None:
    """The last check before the change. Raises ``Refused`` when another process wrote since ``data_version``
    was read, when a lease is live, or when a row is not what the plan says it was."""
    if connection.data_version() != data_version:
        raise Refused(
            f"{connection.path}: another process wrote to it since the snapshot; stop it and run this again"
        )
    check_identity(connection.store, plan)
    check_leases(connection.store, now)
    check_rows(connection, bounds.operations(plan))


def check_rows(connection: RepairConnection, operations: Sequence[Operation]) -> None:
    """Raise ``Refused`` unless every row is what its operation says it was."""
    for operation in operations:
        store, key = connection.store, bounds.key_of(operation)
        if set(key) != set(digests.primary_key(store, operation.table)):
            raise Refused(f"{connection.path}: the plan names no single row of {operation.table}: {key!r}")
        if digests.digest_of(store, operation.table, key) != operation.before_digest:
            raise Refused(
                f"{connection.path}: the plan is stale: the row {_shown(key)} of {operation.table} changed "
                "since it was made; make it anew with `statemend plan`"
            )


def carry_out(
    connection: RepairConnection, plan: Plan, *, before: Before, digest_before: str, journal: Journal
) -> Outcome:
    """Carry out the plan's operations and prove what they did.

    Proven is: each statement changed one row; the recorded changes are those that the plan lists or that the
    store's triggers derive from them; every other session and table has the content it had, by digest; no
    reference broke that was not broken, and those that the plan sets hold; no id can be given twice; the
    search indexes are no worse; nothing that the file keeps besides was set. Raises ``RolledBack`` otherwise.
    """
    work = plan.work()
    operations = work.operations
    connection.allow(bounds.permissions(operations))
    with connection.recording() as session:
        for operation in work.rows:
            _carry_out(connection, operation)
        for index in work.indexes:
            search.rebuild(connection, index)
        for operation in work.messages:
            _carry_out(connection, operation)
        changeset = session.changeset()
    connection.allow({})
    journal.step("statements carried out", operations=len(operations), changeset=len(changeset))
    store = connection.store
    changed = tuple(changes.read(store, changeset))
    beyond = changes.unplanned(store, changed, operations)
    if beyond is not None:
        raise RolledBack(f"{store.path}: {beyond}")
    sessions = changes.sessions_of(store, changed)
    promised = {session for step in plan.selected() for session in step.sessions}
    if not sessions <= promised:
        raise RolledBack(
            f"{store.path}: {_first(sessions - promised)} changed, and no step names that session"
        )
    _check_untouched(connection, before, sessions, {change.table for change in changed})
    check_kept(connection, before, rebuilt=work.indexes)
    _check_references(connection, before, operations)
    return Outcome(
        changeset,
        record.UndoRecord(
            plan=plan.digest,
            changeset=hashlib.sha256(changeset).hexdigest(),
            digest_before=digest_before,
            digest_after=store_digest(store),
            rows=record.touched_rows(store, changed),
            sequence=before.sequence,
            broken=tuple(sorted(_each(before.broken), key=repr)),
            search=before.search,
            settings=before.settings,
            reindexed=work.indexes,
        ),
    )


class Outcome(msgspec.Struct, frozen=True):
    """What a change did: the changeset, and the record that an undo needs beside it."""

    changeset: bytes
    undo: record.UndoRecord


def check_kept(connection: RepairConnection, before: Before, *, rebuilt: Sequence[str] = ()) -> None:
    """Raise ``RolledBack`` unless what no change may touch is as it was, or better."""
    store = connection.store
    settings = digests.persistent(store)
    if settings != before.settings:
        raise RolledBack(f"{store.path}: a setting of the file changed: {settings!r}")
    sequence = digests.sequence(store)
    for table, highest in before.sequence.items():
        if sequence.get(table, -1) < highest:
            raise RolledBack(f"{store.path}: an id of {table} could be given twice")
    for index, health in digests.search_health(connection).items():
        if health != "ok" and (index in rebuilt or before.search.get(index, "ok") == "ok"):
            raise RolledBack(f"{store.path}: the search index {index} no longer fits the messages ({health})")


def _carry_out(connection: RepairConnection, operation: Operation) -> None:
    statement = build(operation)
    quiet = operation.kind is Kind.UPDATE and operation.table == "messages"
    if quiet and search.only_searched(connection.store):
        with connection.without_triggers():
            count = connection.execute(statement.sql, statement.bindings)
    else:
        count = connection.execute(statement.sql, statement.bindings)
    if count != 1:
        raise RolledBack(
            f"{connection.path}: {operation.kind.value} of {operation.table} "
            f"{_shown(bounds.key_of(operation))} changed {count} rows instead of one"
        )


def _check_untouched(
    connection: RepairConnection, before: Before, sessions: set[str], tables: set[str]
) -> None:
    other_sessions, other_tables = before.content.changed(digests.content(connection.store))
    if not other_sessions <= sessions:
        raise RolledBack(
            f"{connection.path}: {_first(other_sessions - sessions)} is a session of which nothing should "
            "have changed"
        )
    if not other_tables <= tables:
        raise RolledBack(f"{connection.path}: {_first(other_tables - tables)} should not have changed")


def _check_references(connection: RepairConnection, before: Before, operations: Sequence[Operation]) -> None:
    """No reference is broken that was not, and none that an operation sets."""
    store = connection.store
    now = digests.broken_references(store)
    worse = [broken for broken, count in now.items() if count > before.broken.get(broken, 0)]
    if worse:
        table, rowid, parent, _ = worse[0]
        raise RolledBack(f"{store.path}: the row {rowid} of {table} would name no row of {parent}")
    wanted = {(table, number) for table, _, _, number in now}
    for table, number in wanted:
        rows = store.rows("SELECT id, \"from\" FROM pragma_foreign_key_list(?, 'main')", (table,))
        column = next((name for identity, name in rows if identity == number), None)
        set_here = [op for op in operations if op.table == table and (column in op.after or column in op.key)]
        broken = {rowid for one, rowid, _, of in now if one == table and of == number}
        for operation in set_here:
            if _rowid(connection, operation) in broken:
                raise RolledBack(
                    f"{store.path}: {table}.{column} of {_shown(bounds.key_of(operation))} would name no row"
                )


def _rowid(connection: RepairConnection, operation: Operation) -> int | None:
    key = bounds.key_of(operation)
    condition = " AND ".join(f"{digests.quoted(name)} IS ?" for name in key)
    found = connection.store.value(
        f"SELECT rowid FROM main.{digests.quoted(operation.table)} WHERE {condition}", tuple(key.values())
    )
    return None if found is None else int(found)


def _each(broken: dict[digests.Broken, int]) -> list[digests.Broken]:
    return [one for one, count in broken.items() for _ in range(count)]


def _first(names: set[str]) -> str:
    return repr(min(names))


def _shown(key: dict[str, SqlValue]) -> str:
    return ", ".join(repr(value) for value in key.values())
