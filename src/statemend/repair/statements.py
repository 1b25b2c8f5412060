"""The SQL of a plan's operations. Names are quoted by sqlglot, values are bound, and a change or a removal
names in its condition what the row was before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from statemend.repair.cells import SqlValue, decode
from statemend.repair.plan import Kind, Operation, Step, work_of

if TYPE_CHECKING:
    from sqlglot import exp


class Statement(msgspec.Struct, frozen=True):
    """One statement. It changes exactly one row, or the plan does not fit the store."""

    sql: str
    bindings: tuple[SqlValue, ...]


def build(operation: Operation) -> Statement:
    """The statement of one operation, with ``?`` for every value. Raises ``ValueError`` for an operation that
    names no row or sets nothing."""
    expression, values = _expression(operation)
    return Statement(sql=expression.sql(dialect="sqlite"), bindings=tuple(map(_bound, values)))


def rebuilding(index: str) -> str:
    """The statement that builds a search index anew."""
    from sqlglot import exp

    table = exp.Table(this=_name(index), db=_name("main"))
    command = exp.Schema(this=table, expressions=[_name(index)])
    return exp.Insert(this=command, expression=_row([exp.Literal.string("rebuild")])).sql(dialect="sqlite")


def printable(operation: Operation) -> str:
    """The statement with its values written out, as SQLite reads it, for a person to review."""
    expression, _ = _expression(operation, literal=True)
    return expression.sql(dialect="sqlite") + ";"


def script(steps: Sequence[Step]) -> str:
    """The statements of steps, in the order in which they happen, under comments that say whose they are."""
    work = work_of(steps)
    owner = {id(operation): step for step in steps for operation in step.operations}
    lines: list[str] = []
    for step, operations in groupby(work.rows, lambda operation: owner[id(operation)]):
        lines += [_heading(step), *map(printable, operations)]
    for index in work.indexes:
        lines += [_heading(step) for step in steps if not step.operations and index in step.reindex]
        asked = sum(index in step.reindex for step in steps)
        lines += [f"-- the search index {_one_line(index)}, once (steps: {asked:,})", f"{rebuilding(index)};"]
    for step, operations in groupby(work.messages, lambda operation: owner[id(operation)]):
        lines += [_heading(step), *map(printable, operations)]
    return "\n".join(lines) + "\n" if lines else ""


def _heading(step: Step) -> str:
    return f"-- {_one_line(step.finding)}: {_one_line(step.title)} ({step.step_class.value})"


def _expression(operation: Operation, *, literal: bool = False) -> tuple[exp.Expr, list[SqlValue]]:
    from sqlglot import exp

    values: list[SqlValue] = []

    def cell(value: SqlValue) -> exp.Expr:
        if literal:
            return _literal(value)
        values.append(value)
        if isinstance(value, str) and _needs_cast(value):
            return exp.cast(exp.Placeholder(), "TEXT", dialect="sqlite")
        return exp.Placeholder()

    table = exp.Table(this=_name(operation.table), db=_name("main"))
    after = {name: decode(value) for name, value in operation.after.items()}
    key = {name: decode(value) for name, value in operation.key.items()}
    before = {name: decode(value) for name, value in operation.before.items()}
    if not key:
        raise ValueError(f"an operation on {operation.table} names no row")
    if operation.kind is Kind.INSERT:
        row = {**key, **after}
        columns = exp.Schema(this=table, expressions=[_name(name) for name in row])
        return exp.Insert(this=columns, expression=_row([cell(value) for value in row.values()])), values
    if operation.kind is Kind.UPDATE:
        if not after:
            raise ValueError(f"an update of {operation.table} sets nothing")
        settings = [exp.EQ(this=_column(name), expression=cell(value)) for name, value in after.items()]
        where = _condition({**before, **key}, cell)
        return exp.Update(this=table, expressions=settings, where=exp.Where(this=where)), values
    where = _condition({**before, **key}, cell)
    return exp.Delete(this=table, where=exp.Where(this=where)), values


def _condition(columns: dict[str, SqlValue], cell: Any) -> exp.Expr:
    from sqlglot import exp

    return exp.and_(
        *(exp.Is(this=_column(name), expression=cell(value)) for name, value in columns.items()),
        wrap=False,
    )


def _row(cells: list[exp.Expr]) -> exp.Values:
    from sqlglot import exp

    return exp.Values(expressions=[exp.Tuple(expressions=cells)])


def _name(name: str) -> exp.Identifier:
    from sqlglot import exp

    return exp.Identifier(this=name, quoted=True)


def _column(name: str) -> exp.Column:
    from sqlglot import exp

    return exp.Column(this=_name(name))


def _literal(value: SqlValue) -> exp.Expr:
    """A value as SQLite reads it. Text that a literal cannot carry is written by its bytes."""
    from sqlglot import exp

    if value is None:
        return exp.Null()
    if isinstance(value, bytes):
        return exp.HexString(this=value.hex().upper())
    if isinstance(value, str):
        if value.isprintable():
            return exp.Literal.string(value)
        raw = exp.HexString(this=value.encode("utf-8", "surrogatepass").hex().upper())
        return exp.cast(raw, "TEXT", dialect="sqlite")
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return exp.Var(this="9e999" if value > 0 else "-9e999")
    return exp.Var(this=repr(value))  # as it is: another spelling may be another type


def _needs_cast(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _bound(value: SqlValue) -> SqlValue:
    """What is bound for a value: text that SQLite would not take as such goes as bytes, and is cast."""
    if isinstance(value, str) and _needs_cast(value):
        return value.encode("utf-8", "surrogatepass")
    return value


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
