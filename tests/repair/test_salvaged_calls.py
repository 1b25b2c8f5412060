"""Tool calls and results of salvaged rows: paired by id, by place, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from statemend.evidence.rows import Fidelity
from statemend.evidence.salvage import Place
from statemend.formats.artifact import Kind
from statemend.repair.salvaged_calls import Calls, paired
from statemend.repair.salvaged_rows import SalvagedRow
from statemend.store.message import RowState

PLACE = Place("a.md", Kind.MARKDOWN, 0, 0, Fidelity.LOSSY)


def row(
    number: int,
    role: str,
    *,
    fidelity: Fidelity = Fidelity.LOSSY,
    state: RowState = RowState.LIVE,
    **values: Any,
) -> SalvagedRow:
    return SalvagedRow(number, PLACE, state, None, {"role": role, **values}, fidelity)


def asking(number: int, *calls: tuple[str | None, str], **options: Any) -> SalvagedRow:
    """A message that calls tools: the id of each call, if there is one, and the tool."""
    stored = [
        {"function": {"name": tool, "arguments": "{}"}} | ({"id": call_id} if call_id else {})
        for call_id, tool in calls
    ]
    return row(number, "assistant", tool_calls=json.dumps(stored), **options)


def result(number: int, tool: str | None = None, call_id: str | None = None, **options: Any) -> SalvagedRow:
    named = {"tool_name": tool, "tool_call_id": call_id}
    return row(number, "tool", **{name: value for name, value in named.items() if value}, **options)


def answers(rows: tuple[SalvagedRow, ...]) -> list[Any]:
    return [each.values.get("tool_call_id") for each in rows if each.values["role"] == "tool"]


@pytest.mark.parametrize(
    ("calls", "results", "expected"),
    [
        ([("c1", "sh")], [None], ["c1"]),
        ([("c1", "sh"), ("c2", "sh")], ["sh", "sh"], ["c1", "c2"]),
        ([("c1", "sh"), ("c2", "web")], ["web"], ["c2"]),
        ([("c1", "sh"), ("c2", "web")], ["web", "sh"], ["c2", "c1"]),
        ([("c1", "sh"), ("c2", "sh")], ["sh"], [None]),
        ([("c1", "sh")], ["web"], [None]),
        ([("c1", "sh"), ("c2", "sh")], [None], [None]),
    ],
    ids=["one", "in order", "by name", "by names", "either", "another", "unnamed"],
)
def test_a_result_without_an_id_is_of_the_call_that_it_must_be_of(
    calls: list[tuple[str | None, str]], results: list[str | None], expected: list[str | None]
) -> None:
    rows, left = paired("s", [asking(0, *calls), *(result(n, tool) for n, tool in enumerate(results, 1))], [])

    assert answers(rows) == expected
    assert left.unasked == tuple(n for n, call_id in enumerate(expected, 1) if call_id is None)
    assert left.unanswered == ((0,) if len(set(expected) - {None}) < len(calls) else ())


def test_what_bears_an_id_is_of_that_call() -> None:
    rows = [asking(0, ("c1", "sh"), ("c2", "sh")), result(1, call_id="c2"), result(2)]

    found, left = paired("s", rows, [])

    assert answers(found) == ["c2", "c1"]
    assert left == Calls()
    assert [each.values.get("tool_name") for each in found[1:]] == ["sh", "sh"]


def test_an_id_that_no_format_kept_is_made_up_alike_for_both_and_said_to_be() -> None:
    archived = [asking(0, (None, "sh"), state=RowState.ARCHIVED), result(1, state=RowState.ARCHIVED)]
    live = [asking(0, (None, "sh")), result(1)]

    rows, left = paired("s", [*archived, *live], [])

    (call_id,) = set(answers(rows))
    assert call_id.startswith("call_")
    for each in (rows[0], rows[2]):
        assert [call["id"] for call in json.loads(each.values["tool_calls"])] == [call_id]
    assert all(
        "made up" in filled.how for each in rows for filled in each.filled if filled.column != "tool_name"
    )
    assert left == Calls()
    assert paired("s", live, [])[0] == rows[2:]
    assert answers(paired("another", live, [])[0]) != [call_id]


def test_a_call_gets_the_id_that_its_result_bears() -> None:
    rows, left = paired("s", [asking(0, (None, "sh"), ("c2", "sh")), result(1, call_id="c1"), result(2)], [])

    assert [call.get("id") for call in json.loads(rows[0].values["tool_calls"])] == ["c1", "c2"]
    assert answers(rows) == ["c1", "c2"]
    assert left == Calls()


def test_rows_as_they_were_are_left_as_they_were() -> None:
    rows = (asking(0, ("c1", "sh"), fidelity=Fidelity.EXACT), result(1, fidelity=Fidelity.EXACT))

    assert paired("s", rows, []) == (rows, Calls(unanswered=(0,), unasked=(1,)))


def test_the_results_of_one_message_end_where_somebody_speaks() -> None:
    rows = [asking(0, ("c1", "sh")), row(1, "user"), result(2)]

    found, left = paired("s", rows, [])

    assert answers(found) == [None]
    assert left == Calls(unanswered=(0,), unasked=(2,))


def test_what_the_store_still_has_is_a_partner() -> None:
    rows = [result(0, call_id="c1"), asking(1, ("c2|x", "sh"))]
    stored = [("assistant", json.dumps([{"id": "c1"}]), None), ("tool", None, "c2")]

    assert paired("s", rows, stored)[1] == Calls()


@pytest.mark.parametrize("calls", ["{", "null", "[1]", '"c1"', '[1, null, "x"]', '[{"function": 7}]', "7"])
def test_calls_that_cannot_be_read_are_none(calls: str) -> None:
    rows = [row(0, "assistant", tool_calls=calls), result(1)]

    assert len(paired("s", rows, [(None, calls, 7)])[0]) == 2
