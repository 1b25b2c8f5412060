"""Takes a recorded change back inside a fence, and proves that the rows are what they were before it."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from statemend.errors import Refused, RolledBack
from statemend.repair import changes, digests, position, search
from statemend.repair.index_merge import merge
from statemend.repair.plan import Kind
from statemend.repair.record import UndoRecord, key_values
from statemend.repair.transaction import Before, check_kept, look
from statemend.store.permissions import DERIVED, everything
from statemend.store.records import table_columns
from statemend.store.writing import RepairConnection


def check_untouched_since(connection: RepairConnection, undo: UndoRecord) -> None:
    """Raise ``Refused`` when a row is no longer what the change made of it."""
    for row in undo.rows:
        if digests.digest_of(connection.store, row.table, key_values(row)) != row.after:
            shown = ", ".join(map(repr, key_values(row).values()))
            raise Refused(
                f"{connection.path}: the row {shown} of {row.table} changed since the run; what was written "
                "to it would be lost. The run's snapshot has the whole store as it was"
            )


def look_ahead(
    connection: RepairConnection, undo: UndoRecord, content: digests.Content | None = None
) -> Before:
    """As ``look``, at no more than what taking the change back could make worse."""
    concerned = digests.indexes_of(connection.store, {row.table for row in undo.rows})
    return look(connection, content=content, indexes={*concerned, *undo.reindexed})


def take_back(
    connection: RepairConnection, undo: UndoRecord, changeset: bytes, before: Before | None = None
) -> bool:
    """Apply the inverse of a change, and prove it. Returns whether nothing else changed since, so that the
    whole store is proven to be what it was; otherwise the rows of the change are. ``before`` is what was read
    of the store as it is now, if it was.

    Where messages came or went, rows do so with the store's triggers on, since these keep the search indexes.
    Then rows that were only changed get back every recorded column, the derived ones too, with the triggers
    off: no text of a message is among them.
    """
    store = connection.store
    if before is None:
        before = look_ahead(connection, undo)
    whole = before.content.digest == undo.digest_after
    changed = tuple(changes.read(store, changeset))
    connection.allow(everything({c.table: table_columns(store, c.table) for c in changed}))
    inverse = apsw.Changeset.invert(changeset)
    moved = any(change.table == "messages" and change.kind is not Kind.UPDATE for change in changed)
    if moved:
        # A search index leaves out what its session says is a machine's, so messages go before their session.
        _apply(connection, inverse, _is_message_to_go)
        _apply(connection, inverse, lambda change: change.op != "UPDATE" and not _is_message_to_go(change))
    if changed:
        with connection.without_triggers():
            _apply(connection, inverse, lambda change: not moved or change.op == "UPDATE")
            _empty_again(connection, changed)
    connection.allow({})
    if moved:
        merge(connection)
    for index in undo.reindexed:  # what an index leaves out may hang on the rows that came back
        search.rebuild(connection, index)
    if position.of_rows(store, undo.rows) not in (position.Position.OLD, position.Position.UNKNOWN):
        raise RolledBack(f"{store.path}: the rows did not come back as they were; use the run's snapshot")
    after = digests.content(store)
    sessions, tables = before.content.changed(after)
    if not sessions <= changes.sessions_of(store, changed) or not tables <= {c.table for c in changed}:
        raise RolledBack(f"{store.path}: more would change than the run did; use the run's snapshot")
    check_kept(connection, before)
    known = undo.broken_before() if whole else undo.broken_before() | before.broken_counter
    if digests.broken_references(store) - known:
        raise Refused(
            f"{store.path}: rows written since the run name rows that it made; undoing it would orphan them"
        )
    if whole and after.digest != undo.digest_before:
        raise RolledBack(f"{store.path}: the store would not be what it was; use the run's snapshot")
    return whole


def _apply(connection: RepairConnection, inverse: bytes, wanted: changes.Wanted) -> None:
    apsw.Changeset.apply(inverse, connection.raw, filter_change=wanted, conflict=_settle)


def _is_message_to_go(change: apsw.TableChange) -> bool:
    return change.op == "DELETE" and change.name == "messages"


def _empty_again(connection: RepairConnection, changed: Sequence[changes.Change]) -> None:
    """Empty the derived columns that were empty in rows that came back: a trigger has filled them in."""
    for change in changed:
        if change.kind is Kind.DELETE and change.table == "messages":
            empty = [name for name in sorted(DERIVED) if change.old.get(name, ...) is None]
            for name in empty:
                connection.execute(f"UPDATE main.messages SET {name} = NULL WHERE id = ?", change.key)


def _settle(reason: int, change: apsw.TableChange) -> int:
    """The changeset's value holds where a trigger was there first; the digests prove the result."""
    if reason in (apsw.SQLITE_CHANGESET_DATA, apsw.SQLITE_CHANGESET_CONFLICT):
        return apsw.SQLITE_CHANGESET_REPLACE
    if reason == apsw.SQLITE_CHANGESET_NOTFOUND:
        return apsw.SQLITE_CHANGESET_OMIT
    return apsw.SQLITE_CHANGESET_ABORT
