"""Records as the columns that Hermes stores."""

from __future__ import annotations

import json
from typing import Any

import pytest

from statemend.formats.artifact import Kind, Record
from statemend.repair.salvaged_values import as_stored, row_values

COLUMNS = ("role", "content", "tool_calls", "tool_name")


@pytest.mark.parametrize("shown", [{"output": "größer", "exit": 0}, ["a", "b"], {"half": "\ud83d"}])
def test_a_result_that_a_trajectory_shows_as_a_value_is_text_again(shown: Any) -> None:
    values = row_values(as_stored(Record(0, "tool", shown), Kind.TRAJECTORY), COLUMNS)

    assert isinstance(values["content"], str)
    assert not values["content"].startswith("\0json:")
    assert json.loads(values["content"]) == shown
    values["content"].encode()


def test_the_arguments_of_a_call_are_text_again() -> None:
    call = {"id": "c1", "function": {"name": "sh", "arguments": {"command": "ls"}}}

    stored = as_stored(Record(0, "assistant", "", tool_calls=[call]), Kind.REQUEST_DUMP)

    (found,) = json.loads(str(row_values(stored, COLUMNS)["tool_calls"]))
    function = {"name": "sh", "arguments": '{"command": "ls"}'}
    assert found == {"id": "c1", "type": "function", "function": function}


@pytest.mark.parametrize("calls", [[7], [None], [{"function": 7}], [{"function": {"arguments": 7}}], [{}]])
def test_calls_that_are_none_are_left_as_they_are(calls: list[Any]) -> None:
    record = Record(0, "assistant", "", tool_calls=calls, row={"role": "assistant", "tool_calls": calls})

    assert as_stored(record, Kind.SNAPSHOT_JSON) == record


def test_whole_rows_are_left_as_they_are() -> None:
    record = Record(0, "tool", {"parts": 1}, tool_calls=[{"function": {"arguments": {}}}])

    assert as_stored(record, Kind.JSONL) is record
