"""What a recorded changeset really changed, held against what a plan said would change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import apsw
import msgspec

from statemend.errors import RolledBack
from statemend.repair import bounds
from statemend.repair.cells import SqlValue, value_digest
from statemend.repair.digests import SESSION_COLUMN, primary_key
from statemend.repair.plan import Kind, Operation
from statemend.store.connection import Store
from statemend.store.permissions import DERIVED
from statemend.store.records import table_columns

_KINDS = {"INSERT": Kind.INSERT, "UPDATE": Kind.UPDATE, "DELETE": Kind.DELETE}


#: Chooses the changes of a changeset that are applied.
Wanted = Callable[[apsw.TableChange], bool]


class Change(msgspec.Struct, frozen=True):
    """One row that changed. ``old`` and ``new`` hold the columns that did (all of them for a row that came or
    went)."""

    kind: Kind
    table: str
    key: tuple[SqlValue, ...]
    old: dict[str, SqlValue]
    new: dict[str, SqlValue]


def read(store: Store, changeset: bytes) -> Iterator[Change]:
    """The changes of a changeset, with the names of the columns that ``store`` has."""
    names: dict[str, tuple[str, ...]] = {}
    for change in apsw.Changeset.iter(changeset):
        columns = names.setdefault(change.name, table_columns(store, change.name))
        if len(columns) != change.column_count:
            raise RolledBack(f"{store.path}: the table {change.name} is not as it was recorded")
        old, new = (_named(columns, values) for values in (change.old, change.new))
        positions = {columns[position] for position in change.pk_columns}
        source = new if change.op == "INSERT" else old
        yield Change(
            kind=_KINDS[change.op],
            table=change.name,
            key=tuple(source[name] for name in primary_key(store, change.name) if name in positions),
            old=old,
            new=new,
        )


def unplanned(store: Store, changes: Sequence[Change], operations: Sequence[Operation]) -> str | None:
    """What changed beyond the plan, in words; ``None`` when every change is one that an operation lists, with
    the values it lists, or a column of ``messages`` that the store's triggers derive."""
    planned: dict[tuple[str, tuple[SqlValue, ...]], list[Operation]] = {}
    for operation in operations:
        key = tuple(bounds.key_of(operation).get(name) for name in primary_key(store, operation.table))
        planned.setdefault((operation.table, key), []).append(operation)
    for change in changes:
        mine = planned.get((change.table, change.key), [])
        derived = DERIVED if change.table == "messages" else frozenset()
        beyond = _beyond(change, mine, derived)
        if beyond is not None:
            return f"{change.table} {change.key!r}: {beyond}"
    return None


def _beyond(change: Change, mine: Sequence[Operation], derived: frozenset[str]) -> str | None:
    """What one change does that the operations on its row do not say."""
    kinds = {operation.kind for operation in mine}
    if change.kind is Kind.DELETE and Kind.DELETE not in kinds:
        return "was deleted, and the plan does not say so"
    if change.kind is Kind.INSERT and Kind.INSERT not in kinds:
        return "was inserted, and the plan does not say so"
    if change.kind is Kind.DELETE:
        return None
    promised: dict[str, SqlValue] = {}
    for operation in mine:
        promised.update(bounds.values(operation.after) | bounds.values(operation.key))
    if change.kind is Kind.UPDATE:
        for name in change.new:
            if name not in promised and name not in derived:
                return f"{name} changed, and the plan does not say so"
    for name, value in promised.items():
        if name in change.new and name not in derived and not _same(change.new[name], value):
            return f"{name} is not what the plan says"
    for name, digest in ((name, each) for operation in mine for name, each in operation.withheld.items()):
        if value_digest(change.new.get(name)) != digest:
            return f"{name} is not what the plan says"
    return None


def _same(found: SqlValue, promised: SqlValue) -> bool:
    """Whether a cell holds what was promised. A whole number in a column of reals is the same number."""
    if isinstance(found, int | float) and isinstance(promised, int | float):
        return found == promised
    return type(found) is type(promised) and found == promised


def sessions_of(store: Store, changes: Sequence[Change]) -> set[str]:
    """The sessions whose rows changed: of a message that was only updated, the store says whose."""
    found: set[str] = set()
    for change in changes:
        owner = SESSION_COLUMN.get(change.table)
        if owner is None:
            continue
        value = change.new.get(owner, change.old.get(owner))
        if value is None and change.table == "messages":
            value = store.value("SELECT session_id FROM main.messages WHERE id IS ?", change.key)
        found.add(value if isinstance(value, str) else repr(value))
    return found


def _named(columns: Sequence[str], values: tuple[object, ...] | None) -> dict[str, SqlValue]:
    if values is None:
        return {}
    return {
        name: value  # type: ignore[misc]
        for name, value in zip(columns, values, strict=True)
        if value is not apsw.no_change
    }
