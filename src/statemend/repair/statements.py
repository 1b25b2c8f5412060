"""The SQL of a plan's operations. Names are quoted by sqlglot, values are bound, and a change or a removal
names in its condition what the row was before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from statemend.repair.cells import SqlValue, decode
from statemend.repair.plan import Kind, Operation, Step

if TYPE_CHECKING:
    from sqlglot import exp


class Statement(msgspec.Struct, frozen=True):
    """One statement. It changes exactly ``changes`` rows, or the plan does not fit the store; ``None`` where
    rows of a search index are counted, which says nothing."""

    sql: str
    bindings: tuple[SqlValue, ...]
    changes: int | None = 1


def build(operation: Operation) -> Statement:
    """The statement of one operation, with ``?`` for every value. Raises ``ValueError`` for an operation that
    names no row or sets nothing."""
    expression, values = _expression(operation)
    return Statement(
        sql=expression.sql(dialect="sqlite"),
        bindings=tuple(map(_bound, values)),
        changes=None if operation.kind is Kind.REINDEX else 1,
    )


def printable(operation: Operation) -> str:
    """The statement with its values written out, as SQLite reads it, for a person to review."""
    expression, _ = _expression(operation, literal=True)
    return expression.sql(dialect="sqlite") + ";"


def script(steps: Iterable[Step]) -> str:
    """The statements of steps, in their order, each step under a comment that says whose it is."""
    lines = []
    for step in steps:
        lines.append(f"-- {_one_line(step.finding)}: {_one_line(step.title)} ({step.step_class.value})")
        lines += [printable(operation) for operation in step.operations]
    return "\n".join(lines) + "\n" if lines else ""


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
    if operation.kind is Kind.REINDEX:
        index = exp.Schema(this=table, expressions=[_name(operation.table)])
        return exp.Insert(this=index, expression=_row([cell("rebuild")])), values
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
