"""What a plan may ask for at all, whoever wrote the file.

A plan is data from outside: it is held against these bounds before anything is opened, and against the tables
and columns of the store before anything is changed. Deleting a session or a message is no repair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from statemend.errors import UsageError
from statemend.repair.cells import Cell, SqlValue, decode
from statemend.repair.plan import Kind, Operation, Plan, Step, StepClass, load
from statemend.store.permissions import SEARCH_INDEXES, Allowed
from statemend.store.schema import CATALOGUE

#: Bytes. A plan is read whole, so its size is bounded.
LARGEST_PLAN: Final = 512 * 1024 * 1024
#: Tables that record what releases and processes do now: a repair reports on them and leaves them alone.
_UNTOUCHABLE = frozenset({"schema_version", "compression_locks", "session_turn_leases", "gateway_heartbeats"})
#: Tables whose rows only a cleanup removes: each may hold the only copy of a text.
KEPT = frozenset({"sessions", "messages", "system_prompts", "async_delegations", "delivery_obligations"})
#: What an update of a message may set: how it is shown and counted, never what it says or whose it is.
_OF_MESSAGES = frozenset(
    {
        "_compressed_summary",
        "active",
        "compacted",
        "display_identity",
        "display_kind",
        "display_metadata",
        "display_order",
        "message_uid",
        "observed",
        "token_count",
    }
)
_INT64 = range(-(1 << 63), 1 << 63)
#: Ids of messages up to here are given. The next one is higher than any that ever was, and no undo lowers it:
#: behind the highest that SQLite has, no message can be stored any more.
_HIGHEST_ID = 1 << 53
_LONGEST_NAME = 128


def read(path: Path) -> Plan:
    """Load a plan file and check it. Raises ``UsageError`` for one that is no plan, or asks for what no plan
    may."""
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # ``load`` says what is wrong with the path
    if size > LARGEST_PLAN:
        raise UsageError(f"{path}: {size:,} bytes is too large for a plan; make one with `statemend plan`")
    plan = load(path)
    check(plan, path)
    return plan


def check(plan: Plan, path: Path) -> None:
    """Raise ``UsageError`` for the first step that no plan may hold, chosen or not."""
    options = [option for choice in plan.choices for option in choice.options]
    for step in (*plan.steps, *(step for option in options for step in option.steps)):
        try:
            _check_step(step)
        except ValueError as error:
            raise UsageError(f"{path}: step {step.id!r}: {error}; make the plan anew") from error


def operations(plan: Plan) -> tuple[Operation, ...]:
    """The changes of rows that the plan carries out, in order."""
    return plan.work().operations


def permissions(operations: Iterable[Operation]) -> dict[str, Allowed]:
    """What a connection must be allowed to carry these out, and nothing more."""
    granted: dict[str, Allowed] = {}
    for operation in operations:
        before = granted.get(operation.table, Allowed())
        updates = operation.after if operation.kind is Kind.UPDATE else ()
        granted[operation.table] = Allowed(
            columns=before.columns | {name.lower() for name in updates},
            insert=before.insert or operation.kind is Kind.INSERT,
            delete=before.delete or operation.kind is Kind.DELETE,
        )
    return granted


def key_of(operation: Operation) -> dict[str, SqlValue]:
    """The primary key that an operation names, as values."""
    return values(operation.key)


def values(cells: Mapping[str, Cell]) -> dict[str, SqlValue]:
    """Cells as values. Raises ``ValueError`` for one that is none."""
    return {name: decode(cell) for name, cell in cells.items()}


def _check_step(step: Step) -> None:
    if step.step_class is StepClass.DESTRUCTIVE:
        raise ValueError("it is destructive, and only a cleanup removes anything")
    if not step.operations and not step.reindex:
        raise ValueError("it does nothing")
    for index in step.reindex:
        if index not in SEARCH_INDEXES:
            raise ValueError(f"{index[:_LONGEST_NAME]!r} is no search index")
    for operation in step.operations:
        _check_operation(operation)


def _check_operation(operation: Operation) -> None:
    table = operation.table
    if table not in CATALOGUE or table in _UNTOUCHABLE:
        raise ValueError(f"a plan may not change the table {table[:_LONGEST_NAME]!r}")
    if operation.kind is Kind.DELETE and table in KEPT:
        raise ValueError(f"only a cleanup removes rows of {table}")
    known = {column.name for column in CATALOGUE[table].columns}
    for cells in (operation.key, operation.before, operation.after, operation.withheld):
        for name, value in values(cells).items():
            if name not in known and cells is not operation.before:  # a newer release may have added it
                raise ValueError(f"{table} has no column {name[:_LONGEST_NAME]!r}")
            if isinstance(value, int) and value not in _INT64:
                raise ValueError(f"{table}.{name}: the number is too large for SQLite")
    if not operation.key:
        raise ValueError(f"an operation on {table} names no row")
    if operation.kind is Kind.INSERT:
        _check_insert(operation)
    else:
        _check_existing(operation)


def _check_insert(operation: Operation) -> None:
    if operation.before or operation.before_digest:
        raise ValueError("a row to be inserted was nothing before")
    if any(operation.after.get(name, value) != value for name, value in operation.key.items()):
        raise ValueError(f"the new row of {operation.table} has two keys")
    if None in operation.key.values():
        raise ValueError(f"the new row of {operation.table} has no key")
    number = operation.key.get("id")
    if operation.table == "messages" and isinstance(number, int) and number > _HIGHEST_ID:
        raise ValueError(f"a message with the id {number} would leave no room for others")
    if operation.withheld and operation.table != "messages":
        raise ValueError(f"the texts of a new row of {operation.table} are not in it")
    if operation.withheld.keys() & (operation.key.keys() | operation.after.keys()):
        raise ValueError("a column of a new message has two values")


def _check_existing(operation: Operation) -> None:
    if operation.before_digest is None:
        raise ValueError(f"it does not say what the row of {operation.table} was")
    if operation.withheld:
        raise ValueError("only a new message has its text elsewhere")
    if operation.kind is Kind.DELETE:
        if operation.after:
            raise ValueError("a row to be deleted is nothing afterwards")
        return
    if not operation.after:
        raise ValueError(f"an update of {operation.table} sets nothing")
    if not operation.after.keys() <= operation.before.keys():
        raise ValueError(f"it sets columns of {operation.table} without saying what they were")
    if operation.after.keys() & operation.key.keys():
        raise ValueError(f"a key of {operation.table} never changes")
    if operation.table == "messages" and (foreign := operation.after.keys() - _OF_MESSAGES):
        raise ValueError(f"what a message says is never changed, so not messages.{sorted(foreign)[0]}")
