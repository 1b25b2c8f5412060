"""What YAML may be, and where everything stands in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statemend.errors import Undetermined, UsageError
from statemend.playbook import source
from statemend.playbook.source import Place


def data(text: str) -> Any:
    return source.parse(text.encode(), "p.yaml").data


def test_scalars_mean_what_they_mean_in_json_and_the_rest_is_text() -> None:
    text = """
    nothing: null
    empty:
    yes_: [true, false]
    numbers: [0, -1, 17, 1.5, -2.5e3, 9223372036854775807]
    text: [yes, no, on, True, NULL, ~, 017, 0o17, 0x1f, 1_000, +1, .5, 2026-01-01, 12:30:45, .inf, "1"]
    """
    assert data(text) == {
        "nothing": None,
        "empty": None,
        "yes_": [True, False],
        "numbers": [0, -1, 17, 1.5, -2500.0, 9223372036854775807],
        "text": [
            *("yes", "no", "on", "True", "NULL", "~", "017", "0o17", "0x1f", "1_000", "+1", ".5"),
            *("2026-01-01", "12:30:45", ".inf", "1"),
        ],
    }


def test_json_is_read_as_it_is() -> None:
    assert data('{"a": [1, 2.5, null, {"b": true}], "c": "\\u00e9\\/\\n"}') == {
        "a": [1, 2.5, None, {"b": True}],
        "c": "é/\n",
    }


def test_every_value_and_key_has_its_place() -> None:
    read = source.parse(b"a: 1\nsteps:\n  - do: scan\n  - sql: |\n      SELECT\n      what\n", "p.yaml")

    assert read.place("$.a") == Place(1, 4)
    assert read.keys["$.steps"] == Place(2, 1)
    assert read.place("$.steps[0].do") == Place(3, 9)
    assert read.place("$.steps[0].nothing.here") == Place(3, 5)
    assert read.place("$.nothing") == Place(1, 1)
    assert read.within("$.steps[1].sql", 2, "what") == Place(6, 7)
    assert read.within("$.steps[0].do", 1, "scan") == Place(3, 9)


def test_a_byte_order_mark_is_no_part_of_it() -> None:
    assert source.parse(b"\xef\xbb\xbfa: 1\n", "p.yaml").data == {"a": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1: the file is empty"),
        ("# nothing\n", "1:1: the file is empty"),
        ("a: 1\n---\nb: 2\n", "2:1: a second document"),
        ("%YAML 1.1\n---\na: 1\n", "1:1: a YAML directive"),
        ("a: 1\nb:\n  c: 2\n  c: 3\n", "4:3: the key 'c' is there twice"),
        ("a: {{ home }}\n", "1:5: a key that is no text; put a template in quotes"),
        ("? [a, b]\n: c\n", "1:3: a key that is no text"),
        ("a: 9223372036854775808\n", "1:4: a whole number beyond 64 bits"),
        ("a: 1e999\n", "1:4: a number too large"),
        ("a: b: c\n", "1:5: not YAML: mapping values are not allowed here"),
        ("a:\n\t- b\n", "2:1: not YAML: found character '\\t'"),
        ('a: "b\n', "2:1: not YAML: found unexpected end of stream"),
    ],
    ids=lambda value: None,
)
def test_what_is_no_such_file_is_refused_by_line_and_column(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        data(text)

    assert str(raised.value).startswith(f"p.yaml:{said}")
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_an_error_of_whoever_named_it(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path / "none" / "none.yaml"):
        with pytest.raises(UsageError, match="no such file"):
            source.read(path)


def test_a_file_that_cannot_be_read_stays_undetermined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("a: 1\n")

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(Undetermined, match="Permission denied"):
        source.read(path)
