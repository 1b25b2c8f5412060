"""The inputs of a playbook, as they are given on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from statemend.errors import UsageError
from statemend.playbook.check import check
from statemend.playbook.model import InputType
from statemend.playbook.source import Source


def parse(given: Sequence[str], source: Source) -> dict[str, object]:
    """The typed inputs of the playbook ``source`` from ``name=value`` texts, defaults included. Raises
    ``UsageError``."""
    known = check(source).inputs
    values: dict[str, object] = {name: one.default for name, one in known.items()}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise UsageError(f"--set {text}: the playbook has no input {name!r}")
        kind = known[name].type
        if kind is InputType.PATH:
            values[name] = str(Path(value).expanduser().absolute())
        elif kind is InputType.INTEGER:
            values[name] = int(value)
        elif kind is InputType.NUMBER:
            values[name] = float(value)
        elif kind is InputType.BOOLEAN:
            values[name] = value == "true"
        elif kind is InputType.PATHS:
            values[name] = [str(Path(value).expanduser().absolute())]
        else:
            values[name] = value
    return values
