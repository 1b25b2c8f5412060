"""Whether a playbook can run at all: everything that can be known before its first step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from statemend.playbook.model import Playbook
from statemend.playbook.source import Source
from statemend.playbook.variables import render

_SAMPLES: Mapping[str, Any] = {
    "text": "text",
    "integer": 1,
    "number": 1.0,
    "boolean": False,
    "path": "/path",
    "paths": ["/path"],
}


class Problem(NamedTuple):
    """One thing that is wrong, and where: line and column count from 1."""

    line: int
    column: int
    text: str


def problems(source: Source) -> tuple[Problem, ...]:
    """Everything that is wrong with a playbook, in the order of the file."""
    try:
        _convert(source, _samples(source), {})
    except (ValueError, msgspec.ValidationError) as error:
        return (Problem(1, 1, str(error)),)
    return ()


def check(source: Source) -> Playbook:
    """The playbook, with sample values where inputs without a default belong. Raises ``UsageError``."""
    return resolve(source, _samples(source), {})


def resolve(source: Source, inputs: Mapping[str, object], run: Mapping[str, str]) -> Playbook:
    """The playbook as it runs: every template filled with ``inputs`` and with what is known of the run
    (``name``, ``folder``, ``started``). Raises ``UsageError``."""
    try:
        return _convert(source, inputs, run)
    except (ValueError, msgspec.ValidationError) as error:
        raise source.error(source.place("$"), str(error)) from error


def _samples(source: Source) -> dict[str, object]:
    given = source.data.get("inputs", {}) if isinstance(source.data, dict) else {}
    return {name: one.get("default", _SAMPLES.get(one.get("type"))) for name, one in given.items()}


def _convert(source: Source, inputs: Mapping[str, object], run: Mapping[str, str]) -> Playbook:
    data = {"home": "{{ home }}", **source.data}
    filled = {
        key: value if key == "inputs" else render(value, {**inputs, "run": run})
        for key, value in data.items()
    }
    return msgspec.convert(filled, Playbook)
