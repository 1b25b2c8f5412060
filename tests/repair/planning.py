"""Plans for the tests: made of a built home, and carried out on it without the engine."""

from __future__ import annotations

from typing import Any

import apsw
from tests.audit.builder import NOW, HomeBuilder

from statemend.repair.cells import decode
from statemend.repair.plan import Choice, Kind, Operation, Plan, Step, dump, work_of
from statemend.repair.planner import make_plan


def plan_of(home: HomeBuilder, **options: Any) -> Plan:
    """The plan of a home at the tests' time."""
    return make_plan(home.root, now=NOW, **options)


def only_step(plan: Plan) -> Step:
    """The one step of a plan that has nothing else to do."""
    (step,) = plan.steps
    assert not plan.choices
    return step


def only_choice(plan: Plan) -> Choice:
    """The one choice of a plan that does nothing unasked."""
    (choice,) = plan.choices
    assert not plan.steps
    return choice


def option_steps(choice: Choice, option: str) -> tuple[Step, ...]:
    """The steps of one option."""
    return next(one.steps for one in choice.options if one.id == option)


def values(operation: Operation) -> dict[str, Any]:
    """The columns that an operation sets, as SQLite values."""
    return {name: decode(cell) for name, cell in operation.after.items()}


def sources(step: Step) -> dict[str, str]:
    """Column to origin, of every source that a step names."""
    return {source.column.removeprefix("sessions."): source.origin for source in step.sources}


def carry_out(home: HomeBuilder, steps: tuple[Step, ...]) -> None:
    """Do what the steps say, with foreign keys on."""
    connection = apsw.Connection(str(home.store))
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        with connection:
            for step in steps:
                for operation in step.operations:
                    _do(connection, operation)
            for name in work_of(steps).indexes:
                connection.execute(f"INSERT INTO {name} ({name}) VALUES ('rebuild')")
    finally:
        connection.close()


def _do(connection: apsw.Connection, operation: Operation) -> None:
    after, key = values(operation), {name: decode(cell) for name, cell in operation.key.items()}
    if operation.kind is Kind.INSERT:
        names, marks = ", ".join(f'"{name}"' for name in after), ", ".join("?" for _ in after)
        connection.execute(f"INSERT INTO {operation.table} ({names}) VALUES ({marks})", tuple(after.values()))
    elif operation.kind is Kind.UPDATE:
        sets = ", ".join(f'"{name}" = ?' for name in after)
        where = " AND ".join(f'"{name}" IS ?' for name in key)
        bindings = (*after.values(), *key.values())
        connection.execute(f"UPDATE {operation.table} SET {sets} WHERE {where}", bindings)
        assert connection.changes() == 1
    else:
        raise NotImplementedError(operation.kind)


def text_of(plan: Plan) -> str:
    """The plan file as text."""
    return dump(plan).decode()
