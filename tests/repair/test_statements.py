"""Statements bind every value, and what is printed for a person means the same to SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statemend.repair.cells import encode
from statemend.repair.plan import Kind, Operation, Step, StepClass
from statemend.repair.statements import build, printable, rebuilding, script

VALUES = st.one_of(
    st.none(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.binary(max_size=40),
    st.text(st.characters(exclude_categories=()), max_size=40),
)


def operation(kind: Kind, **parts: Mapping[str, Any]) -> Operation:
    cells = {part: {name: encode(value) for name, value in values.items()} for part, values in parts.items()}
    return Operation(kind=kind, table="t", **cells)  # type: ignore[arg-type]


def table() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute('CREATE TABLE t (id INTEGER PRIMARY KEY, "a b" BLOB, "c""d" BLOB)')
    return connection


def raw(connection: apsw.Connection) -> list[Any]:
    """The only row, text as its bytes, with the type of each cell."""
    cells = (
        f"typeof({name}), iif(typeof({name}) = 'text', CAST({name} AS BLOB), {name})"
        for name in ('"a b"', '"c""d"')
    )
    return [repr(row) for row in connection.execute(f"SELECT id, {', '.join(cells)} FROM t")]


@settings(deadline=None)
@given(VALUES, VALUES)
def test_any_value_goes_in_and_is_found_again(first: Any, second: Any) -> None:
    values = {"id": 7, "a b": first, 'c"d': second}
    insert = operation(Kind.INSERT, key={"id": 7}, after=values)
    change = operation(
        Kind.UPDATE, key={"id": 7}, before={"a b": first, 'c"d': second}, after={"a b": second}
    )
    delete = operation(Kind.DELETE, key={"id": 7}, before={**values, "a b": second})
    with closing(table()) as bound, closing(table()) as printed:
        for one in (insert, change):
            statement = build(one)
            bound.execute(statement.sql, statement.bindings)
            assert bound.changes() == 1
            printed.execute(printable(one))
            assert raw(bound) == raw(printed)
        bound.execute(build(delete).sql, build(delete).bindings)
        printed.execute(printable(delete))
        assert raw(bound) == raw(printed) == []


def test_a_statement_holds_no_value() -> None:
    text = "'; DROP TABLE t; --"
    built = build(operation(Kind.UPDATE, key={"id": 7}, before={"a b": text}, after={"a b": text * 2}))
    assert text not in built.sql
    assert built.bindings == (text * 2, text, 7)
    assert built.sql == 'UPDATE "main"."t" SET "a b" = ? WHERE "a b" IS ? AND "id" IS ?'


@pytest.mark.parametrize("was", [None, "other", b"text", 1, 1.5])
def test_a_row_that_is_not_what_it_was_is_not_changed(was: Any) -> None:
    with closing(table()) as connection:
        connection.execute("INSERT INTO t VALUES (7, ?, NULL)", (was,))
        built = build(operation(Kind.UPDATE, key={"id": 7}, before={"a b": "text"}, after={"a b": "new"}))
        connection.execute(built.sql, built.bindings)
        assert connection.total_changes() == 1
        built = build(operation(Kind.DELETE, key={"id": 7}, before={"a b": "text"}))
        connection.execute(built.sql, built.bindings)
        assert connection.total_changes() == 1


def test_a_name_cannot_break_out() -> None:
    one = Operation(kind=Kind.INSERT, table='t" (id) VALUES (1); --', key={'i"d': 1}, after={"x": 2})
    assert build(one).sql == 'INSERT INTO "main"."t"" (id) VALUES (1); --" ("i""d", "x") VALUES (?, ?)'


@pytest.mark.parametrize("kind", [Kind.INSERT, Kind.UPDATE, Kind.DELETE])
def test_an_operation_that_names_no_row_is_refused(kind: Kind) -> None:
    with pytest.raises(ValueError, match="names no row"):
        build(operation(kind, after={"a b": 1}))


def test_a_text_that_is_elsewhere_is_a_parameter_for_a_person_and_nothing_to_carry_out() -> None:
    withheld = Operation(kind=Kind.INSERT, table="t", key={"id": 1}, texts={"a b": 64 * "0"})
    with pytest.raises(ValueError, match="the texts of a row of t are not in its operation"):
        build(withheld)
    sql = printable(withheld)
    assert ":text_0000000000000000" in sql
    assert table().execute(sql, {"text_0000000000000000": "x"}).fetchall() == []


def test_an_index_is_rebuilt_by_its_own_command() -> None:
    assert rebuilding("messages_fts") == (
        """INSERT INTO "main"."messages_fts" ("messages_fts") VALUES ('rebuild')"""
    )


def test_a_script_says_whose_each_statement_is() -> None:
    step = Step(
        id="s",
        recipe="r",
        finding="ORP001-1",
        step_class=StepClass.SAFE,
        title="Mend\nDROP TABLE t; --",
        why="",
        operations=(operation(Kind.INSERT, key={"id": 7}, after={"a b": "it's\n"}),),
    )
    lines = script([step]).splitlines()
    assert lines[0] == "-- ORP001-1: Mend DROP TABLE t; -- (safe)"
    assert len(lines) == 2
    with closing(table()) as connection:
        connection.execute(script([step]))
        assert connection.execute('SELECT "a b" FROM t').get == "it's\n"
    assert script([]) == ""
