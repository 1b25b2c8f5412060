"""Inputs as they are given on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from statemend.errors import UsageError
from statemend.playbook import inputs, source

PLAYBOOK = """
schema: statemend/playbook/v1
name: trial
title: A trial
purpose: To try inputs
inputs:
  home: {type: path, help: the home}
  level: {type: text, help: how bad, values: [fault, risk], default: risk}
  days: {type: number, help: how old, default: 30}
  most: {type: integer, help: how many, default: 5}
  deep: {type: boolean, help: whether all, default: false}
  more: {type: paths, help: other folders, default: [~/x, y]}
  note: {type: text, help: a note, default: null}
steps:
  - do: scan
"""
SOURCE = source.parse(PLAYBOOK.encode(), "p.yaml")


def test_defaults_are_filled_in_and_paths_made_absolute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", "/users/one")
    monkeypatch.chdir(tmp_path)

    assert inputs.parse(["home=~/.hermes"], SOURCE) == {
        "home": "/users/one/.hermes",
        "level": "risk",
        "days": 30.0,
        "most": 5,
        "deep": False,
        "more": ["/users/one/x", f"{tmp_path}/y"],
        "note": None,
    }


def test_each_type_is_read_as_what_it_is() -> None:
    given = [
        "home=/h",
        "level=fault",
        "days=1.5",
        "most=-2",
        "deep=true",
        "more=/a:/b",
        "more=/c",
        "note=a=b",
    ]

    assert inputs.parse(given, SOURCE) == {
        "home": "/h",
        "level": "fault",
        "days": 1.5,
        "most": -2,
        "deep": True,
        "more": ["/a", "/b", "/c"],
        "note": "a=b",
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "p.yaml: needs home (the home); say --set home=…"),
        (["hom=/h"], "--set 'hom': p.yaml has no such input; did you mean 'home'?"),
        (["home"], "--set 'home': write name=value"),
        (["home=/a", "home=/b"], "--set home: given twice"),
        (["home="], "--set home: takes a path, and this is empty (the home)"),
        (["home=~nobody-of-this-name/x"], "no such user"),
        (["home=/h", "level=never"], "--set level: takes one of fault, risk (how bad)"),
        (["home=/h", "days=ten"], "--set days: takes a number, not 'ten' (how old)"),
        (["home=/h", "days=nan"], "takes a number, not 'nan'"),
        (["home=/h", "days=1e400"], "takes a number, not '1e400'"),
        (["home=/h", "most=1.5"], "takes a whole number, not '1.5'"),
        (["home=/h", "most=9223372036854775808"], "takes a whole number"),
        (["home=/h", "deep=yes"], "takes true or false, not 'yes'"),
        (["home=/h", "note=a\0b"], "--set note: a NUL character is in it (a note)"),
        (["home=/h", "note=" + "x" * 5000], "--set note: longer than 4,096 characters"),
        (["home=/h", "note=\udc80"], "takes text, and this is not valid UTF-8"),
    ],
    ids=lambda value: None,
)
def test_what_is_wrong_with_an_input_is_told_in_one_line(given: list[str], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        inputs.parse(given, SOURCE)

    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_inputs_of_a_playbook_with_problems_are_not_read() -> None:
    broken = source.parse(PLAYBOOK.replace("do: scan", "do: scann").encode(), "p.yaml")
    with pytest.raises(UsageError, match=r"p\.yaml:15:9: no step 'scann'; did you mean 'scan'"):
        inputs.parse(["home=/h"], broken)
