"""Which side of a change a store is on, told from its rows."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from statemend.errors import StoreUnreadable
from statemend.repair import bounds
from statemend.repair.cells import value_digest
from statemend.repair.digests import digest_of, row_of
from statemend.repair.plan import Kind, Operation
from statemend.repair.record import TouchedRow, UndoRecord, key_values
from statemend.store.connection import Store


class Position(StrEnum):
    """Where the rows of a change are."""

    OLD = "old"  # all as before
    NEW = "new"  # all as after
    OTHER = "other"  # some are neither, or some are the one and some the other
    UNKNOWN = "unknown"  # nothing tells: no row was changed


def of_rows(store: Store, rows: Sequence[TouchedRow]) -> Position:
    """The side that recorded rows are on."""
    found = set()
    for row in rows:
        now = digest_of(store, row.table, key_values(row))
        if row.before == row.after:
            continue
        found.add(Position.NEW if now == row.after else Position.OLD if now == row.before else Position.OTHER)
    return _one(found)


def of_run(store: Store, undo: UndoRecord) -> Position:
    """The side of a run: of its rows, and where it changed none, of its search indexes."""
    where = of_rows(store, undo.rows)
    return of_indexes(store, undo) if where is Position.UNKNOWN else where


def of_indexes(store: Store, undo: UndoRecord) -> Position:
    """The side that the search indexes are on which a run built anew, where that can be told: only one that
    was damaged before differs afterwards. ``OLD`` as soon as one of these is damaged."""
    damaged = [index for index in undo.reindexed if undo.search.get(index, "ok") != "ok"]
    if not damaged:
        return Position.UNKNOWN
    return Position.NEW if all(_is_sound(store, index) for index in damaged) else Position.OLD


def _is_sound(store: Store, index: str) -> bool:
    name = index.replace("'", "''")
    try:
        return list(store.rows(f"PRAGMA main.integrity_check('{name}')")) == [("ok",)]
    except StoreUnreadable:
        return False


def any_new(store: Store, rows: Sequence[TouchedRow]) -> bool:
    """Whether any recorded row is as after the change: then it was committed, whatever came of the others."""
    return any(
        row.before != row.after and digest_of(store, row.table, key_values(row)) == row.after for row in rows
    )


def of_operations(store: Store, operations: Sequence[Operation]) -> Position:
    """The side that the rows of planned operations are on. A row counts as new when every column that the
    plan sets holds what it sets."""
    found = set()
    for operation in operations:
        key = bounds.key_of(operation)
        if digest_of(store, operation.table, key) == operation.before_digest:
            found.add(Position.OLD)
            continue
        row = row_of(store, operation.table, key)
        if operation.kind is Kind.DELETE:
            found.add(Position.NEW if row is None else Position.OTHER)
        elif row is None:
            found.add(Position.OTHER)
        else:
            promised = bounds.values(operation.after)
            same = all(row.get(name) == value for name, value in promised.items()) and all(
                value_digest(row.get(name)) == digest for name, digest in operation.withheld.items()
            )
            found.add(Position.NEW if same else Position.OTHER)
    return _one(found)


def _one(found: set[Position]) -> Position:
    if not found:
        return Position.UNKNOWN
    return found.pop() if len(found) == 1 else Position.OTHER
