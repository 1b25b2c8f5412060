"""The heart of a repair: the last checks, the change, and the proof of it, all inside one fence.

Whatever is found wrong here is raised, and the fence takes everything back.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence

import apsw
import msgspec

from statemend.errors import Refused, RolledBack, StoreHeld
from statemend.repair import bounds, changes, digests, record, search
from statemend.repair.cells import SqlValue
from statemend.repair.journal import Journal
from statemend.repair.plan import Kind, Operation, Plan, Work
from statemend.repair.preflight import check_identity, check_leases
from statemend.repair.statements import build
from statemend.repair.texts import Texts, with_texts
from statemend.store.writing import RepairConnection


class Before(msgspec.Struct, frozen=True):
    """The state that a change starts from, as far as a proof needs it. ``search`` is the health of those
    search indexes that were looked at."""

    content: digests.Content
    broken: dict[digests.Broken, int]
    sequence: dict[str, int]
    search: dict[str, str]
    settings: dict[str, str]

    @property
    def broken_counter(self) -> Counter[digests.Broken]:
        """The broken references, countable."""
        return Counter(self.broken)


def look(
    connection: RepairConnection,
    *,
    content: digests.Content | None = None,
    indexes: Collection[str] | None = None,
) -> Before:
    """Read everything that must still hold afterwards: inside the fence, or before it, if the fence then
    refuses whatever came in between. ``content`` is what was read already, ``indexes`` are the search indexes
    to look at, by default all.

    Raises ``StoreHeld`` when another process is writing.
    """
    store = connection.store
    with connection.reading():
        found = Before(
            content=digests.content(store) if content is None else content,
            broken=dict(digests.broken_references(store)),
            sequence=digests.sequence(store),
            search={},
            settings=digests.persistent(store),
        )
    try:
        health = digests.search_health(connection, indexes)
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreHeld(f"{store.path}: another process is writing; stop it and run this again") from error
    return msgspec.structs.replace(found, search=health)


def look_ahead(connection: RepairConnection, plan: Plan, content: digests.Content) -> Before:
    """As ``look``, at no more than what carrying out ``plan`` could make worse: not at a search index that
    nothing in it concerns, nor at one that it builds anew. Where that is all it does, whether the index was
    damaged before is what tells later that it was done."""
    work = plan.work()
    if not work.operations:
        return look(connection, content=content, indexes=work.indexes)
    concerned = digests.indexes_of(connection.store, _tables(work))
    return look(connection, content=content, indexes=[one for one in concerned if one not in work.indexes])


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
    connection: RepairConnection,
    plan: Plan,
    *,
    before: Before,
    journal: Journal,
    rehearsed: str | None = None,
    texts: Texts | None = None,
) -> Outcome:
    """Carry out the plan's operations and prove what they did. ``texts`` are those that the plan names and
    does not hold.

    Proven is: each statement changed one row; the recorded changes are those that the plan lists or that the
    store's triggers derive from them; every other session and table has the content it had, by digest; no
    reference broke that was not broken, and those that the plan sets hold; no id can be given twice; the
    search indexes are no worse; nothing that the file keeps besides was set. Raises ``RolledBack`` otherwise.

    ``rehearsed`` is the digest of the store that a rehearsal made. Where this one has the same rows now, an
    index built anew from them is the one that was checked there, and is not held against every text again.
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
            _carry_out(connection, with_texts(operation, texts or {}))
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
    after = _check_untouched(connection, before, sessions, {change.table for change in changed})
    _check_fixed(connection, before)
    _check_search(connection, before, work, checked=rehearsed == after.digest)
    _check_references(connection, before, operations)
    return Outcome(
        changeset,
        record.UndoRecord(
            plan=plan.digest,
            changeset=hashlib.sha256(changeset).hexdigest(),
            digest_before=before.content.digest,
            digest_after=after.digest,
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


def check_kept(connection: RepairConnection, before: Before) -> None:
    """Raise ``RolledBack`` unless what no change may touch is as it was, or better: of the search indexes
    those that were looked at."""
    _check_fixed(connection, before)
    _check_health(connection, before, digests.search_health(connection, before.search.keys()))


def _check_fixed(connection: RepairConnection, before: Before) -> None:
    store = connection.store
    settings = digests.persistent(store)
    if settings != before.settings:
        raise RolledBack(f"{store.path}: a setting of the file changed: {settings!r}")
    sequence = digests.sequence(store)
    for table, highest in before.sequence.items():
        if sequence.get(table, -1) < highest:
            raise RolledBack(f"{store.path}: an id of {table} could be given twice")


def _check_search(connection: RepairConnection, before: Before, work: Work, *, checked: bool) -> None:
    """The search indexes that the work concerns are no worse than before, and those built anew are well.
    ``checked`` is whether those were checked elsewhere."""
    concerned = {*digests.indexes_of(connection.store, _tables(work)), *work.indexes}
    if checked and not work.messages:  # their triggers change an index once more after it was built
        concerned -= set(work.indexes)
    _check_health(connection, before, digests.search_health(connection, concerned))


def _check_health(connection: RepairConnection, before: Before, health: dict[str, str]) -> None:
    for index, now in health.items():
        if now != "ok" and before.search.get(index, "ok") == "ok":
            raise RolledBack(
                f"{connection.path}: the search index {index} no longer fits the messages ({now})"
            )


def _tables(work: Work) -> set[str]:
    return {operation.table for operation in work.operations}


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
) -> digests.Content:
    after = digests.content(connection.store)
    other_sessions, other_tables = before.content.changed(after)
    if not other_sessions <= sessions:
        raise RolledBack(
            f"{connection.path}: {_first(other_sessions - sessions)} is a session of which nothing should "
            "have changed"
        )
    if not other_tables <= tables:
        raise RolledBack(f"{connection.path}: {_first(other_tables - tables)} should not have changed")
    return after


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
