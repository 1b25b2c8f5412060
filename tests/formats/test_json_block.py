from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statemend.formats.markdown_render import json_block

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=25,
)


def as_python_writes(value: Any) -> str:
    return "```json\n" + json.dumps(value, ensure_ascii=False, indent=2) + "\n```"


@given(VALUES)
def test_a_block_is_what_python_writes(value: Any) -> None:
    assert json_block(value) == as_python_writes(value)


@pytest.mark.parametrize(
    "value", [float("nan"), [float("-inf")], "\ud800", {"\udfff": "\0"}, [], {}, [[], {}]]
)
def test_a_block_is_what_python_writes_even_where_it_is_no_json(value: Any) -> None:
    assert json_block(value) == as_python_writes(value)


def test_deep_nesting_is_laid_out_the_same() -> None:
    value: list[Any] = []
    for _ in range(200):
        value = [value]
    assert json_block(value) == as_python_writes(value)
