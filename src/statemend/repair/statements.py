"""The SQL of a plan's operations. Names are quoted by sqlglot, values are bound, and a change or a removal
names in its condition what the row was before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from statemend.repair.cells import SqlValue, decode
from statemend.repair.plan import Kind, Operation, Step, work_of

if TYPE_CHECKING:
    from sqlglot import exp


#: The columns of one part of a statement, each with whether its value is text that must be cast.
Shape = tuple[tuple[str, bool], ...]


class Statement(msgspec.Struct, frozen=True):
    """One statement. It changes exactly one row, or the plan does not fit the store."""

    sql: str
    bindings: tuple[SqlValue, ...]


def build(operation: Operation) -> Statement:
    """The statement of one operation, with ``?`` for every value. Raises ``ValueError`` for an operation that
    names no row or sets nothing, or whose texts were not put in."""
    if operation.withheld:
        raise ValueError(f"the texts of a row of {operation.table} are not in its operation")
    parts = _parts(operation)
    shape = tuple(tuple((name, _needs_cast(value)) for name, value in part.items()) for part in parts)
    values = (value for part in parts for value in part.values())
    return Statement(
        sql=_with_placeholders(operation.kind, operation.table, *shape), bindings=tuple(map(_bound, values))
    )


@lru_cache(maxsize=256)
def _with_placeholders(kind: Kind, table: str, settings: Shape, conditions: Shape) -> str:
    """The text of every statement of this shape: thousands of operations have the same."""
    from sqlglot import exp

    def cells(shape: Shape) -> dict[str, exp.Expr]:
        return {
            name: exp.cast(exp.Placeholder(), "TEXT", dialect="sqlite") if cast else exp.Placeholder()
            for name, cast in shape
        }

    return _expression(kind, table, cells(settings), cells(conditions)).sql(dialect="sqlite")


def rebuilding(index: str) -> str:
    """The statement that builds a search index anew."""
    from sqlglot import exp

    table = exp.Table(this=_name(index), db=_name("main"))
    command = exp.Schema(this=table, expressions=[_name(index)])
    return exp.Insert(this=command, expression=_row([exp.Literal.string("rebuild")])).sql(dialect="sqlite")


def printable(operation: Operation) -> str:
    """The statement with its values written out, as SQLite reads it, for a person to review. A text that is
    not in the plan stands as a parameter, named after its digest."""
    settings, conditions = (
        {name: _literal(value) for name, value in part.items()} for part in _parts(operation)
    )
    settings |= {name: _parameter(digest) for name, digest in operation.withheld.items()}
    return _expression(operation.kind, operation.table, settings, conditions).sql(dialect="sqlite") + ";"


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


def _parts(operation: Operation) -> tuple[dict[str, SqlValue], dict[str, SqlValue]]:
    """What an operation sets, and what must hold of the row that it changes or removes."""
    after = {name: decode(value) for name, value in operation.after.items()}
    key = {name: decode(value) for name, value in operation.key.items()}
    if not key:
        raise ValueError(f"an operation on {operation.table} names no row")
    if operation.kind is Kind.INSERT:
        return {**key, **after}, {}
    before = {name: decode(value) for name, value in operation.before.items()}
    if operation.kind is Kind.UPDATE and not after:
        raise ValueError(f"an update of {operation.table} sets nothing")
    return after if operation.kind is Kind.UPDATE else {}, {**before, **key}


def _expression(
    kind: Kind, table: str, settings: dict[str, exp.Expr], conditions: dict[str, exp.Expr]
) -> exp.Expr:
    from sqlglot import exp

    target = exp.Table(this=_name(table), db=_name("main"))
    if kind is Kind.INSERT:
        columns = exp.Schema(this=target, expressions=[_name(name) for name in settings])
        return exp.Insert(this=columns, expression=_row(list(settings.values())))
    clauses = (exp.Is(this=_column(name), expression=cell) for name, cell in conditions.items())
    where = exp.Where(this=exp.and_(*clauses, wrap=False))
    if kind is Kind.UPDATE:
        assignments = [exp.EQ(this=_column(name), expression=cell) for name, cell in settings.items()]
        return exp.Update(this=target, expressions=assignments, where=where)
    return exp.Delete(this=target, where=where)


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


def _parameter(digest: str) -> exp.Expr:
    from sqlglot import exp

    return exp.Placeholder(this=f"text_{digest[:16]}")


def _needs_cast(value: SqlValue) -> bool:
    """Whether it is text that SQLite would not take as such."""
    if not isinstance(value, str):
        return False
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
