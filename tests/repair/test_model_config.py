"""Keys of a configuration are changed in place: nothing else of the text moves."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statemend.repair.model_config import NotEditableError, with_key, without

KEYS = st.sampled_from(["_delegate_from", "_branched_from", "cwd", "a:b", 'quote"', "é", "yolo_mode"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
CONFIGS = st.dictionaries(KEYS, VALUES, max_size=5)
STYLES = st.sampled_from(
    [{}, {"separators": (",", ":")}, {"indent": 2}, {"separators": (" , ", " : ")}, {"ensure_ascii": False}]
)


#: The first draw may have to wait for the machine.
unhurried = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


@unhurried
@given(CONFIGS, STYLES, st.sets(KEYS, max_size=2))
def test_what_is_removed_is_all_that_goes(
    config: dict[str, object], style: dict[str, object], keys: set[str]
) -> None:
    text = json.dumps(config, **style)
    kept = {key: value for key, value in config.items() if key not in keys}
    result = without(text, keys)
    if kept.keys() == config.keys():
        assert result == text
    elif not kept:
        assert result is None
    else:
        assert json.loads(result or "") == kept
        assert list(json.loads(result or "")) == list(kept)


@unhurried
@given(CONFIGS, STYLES, KEYS, st.text(max_size=8))
def test_what_is_set_is_all_that_changes(
    config: dict[str, object], style: dict[str, object], key: str, value: str
) -> None:
    text = json.dumps(config, **style)
    result = with_key(text, key, value)
    assert json.loads(result) == {**config, key: value}
    if key not in config:
        assert without(result, [key]) == (text if config else None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, '{"k": "v"}'),
        ("{}", '{"k": "v"}'),
        ('{"a":1}', '{"a":1,"k":"v"}'),
        ('{"a": 1, "b": 2}', '{"a": 1, "b": 2, "k": "v"}'),
        ('{\n  "a": 1,\n  "b": 2\n}', '{\n  "a": 1,\n  "b": 2,\n  "k": "v"\n}'),
        ('{"k":"old","a":1}', '{"k":"v","a":1}'),
    ],
)
def test_a_key_is_written_in_the_style_of_the_others(text: str | None, expected: str) -> None:
    assert with_key(text, "k", "v") == expected


def test_a_key_written_twice_is_removed_twice() -> None:
    assert without('{"k":1,"a":{"k":2},"k":3}', ["k"]) == '{"a":{"k":2}}'


@pytest.mark.parametrize(
    "text", ["", "[1]", "null", '{"a":NaN}', '{"a":1', '{"a":1}x', "{a:1}", '{"a":1,}', "[" * 100_000]
)
def test_text_that_is_no_object_is_not_touched(text: str) -> None:
    with pytest.raises(NotEditableError):
        without(text, ["k"])
    with pytest.raises(NotEditableError):
        with_key(text, "k", "v")


def test_a_key_written_twice_cannot_be_set() -> None:
    with pytest.raises(NotEditableError, match="more than once"):
        with_key('{"k":1,"k":2}', "k", "v")


def test_an_id_that_is_not_valid_text_cannot_be_named() -> None:
    with pytest.raises(NotEditableError, match="not valid text"):
        with_key(None, "k", "a\udcff")


def test_the_text_is_not_told() -> None:
    with pytest.raises(NotEditableError) as caught:
        without('{"secret', ["k"])
    assert "secret" not in str(caught.value)
