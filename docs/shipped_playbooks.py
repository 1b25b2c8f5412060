"""The playbooks that come along, each told from its YAML."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

from docs.pages import code, prose, table
from statemend.playbook import check, model, shipped
from statemend.playbook.source import Source

_CHANGING = frozenset(str(step.__struct_config__.tag) for step in typing.get_args(model.Step) if step.changes)


def sections() -> Iterator[str]:
    """The lines about each of them, by name."""
    for name in shipped.names():
        yield from _section(shipped.find(name))


def _section(source: Source) -> Iterator[str]:
    playbook = check.check(source)
    steps: list[dict[str, Any]] = source.data["steps"]
    yield f"### {playbook.name}"
    yield ""
    yield f"*{prose(playbook.title)}.* {prose(playbook.purpose)}"
    yield ""
    yield from table(
        ["input", "type", "default", "help"],
        (
            [f"`{name}`", given["type"], _default(given), prose(given["help"])]
            for name, given in source.data["inputs"].items()
        ),
    )
    yield from table(["", "step", "does", "needs", "title"], _rows(steps))
    yield " ".join(_ending(playbook.name, steps))
    yield ""


def _default(given: dict[str, Any]) -> str:
    if "default" not in given:
        return "required"
    value = given["default"]
    if value in (None, []):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _rows(steps: list[dict[str, Any]]) -> Iterator[list[str]]:
    before: list[str] = []
    for number, step in enumerate(steps, start=1):
        name = str(step.get("id", step["do"]))
        needs = step.get("needs", before)
        yield [str(number), f"`{name}`", f"`{step['do']}`", code(needs) or "–", step.get("title", "")]
        before = [name]


def _ending(name: str, steps: list[dict[str, Any]]) -> Iterator[str]:
    """What the run may change, how it ends, and how it is begun."""
    changing = [step["do"] for step in steps if step["do"] in _CHANGING]
    if changing:
        yield f"Changes the store in {code(changing)}, with a snapshot and an undo record."
    else:
        yield "Changes nothing in the store."
    codes = ["0 when every step passed"]
    if any(step["do"] == "check" or step.get("fail_on", "never") != "never" for step in steps):
        codes.append("1 when a check or an audit failed")
    codes.append("3 when something could not be determined")
    if changing:
        codes += [
            "4 when it was refused, waits for an answer, or something was kept",
            "5 when a change was taken back",
            "6 when one is not as promised",
        ]
    else:
        codes.append("4 when it was refused (the store is in use)")
    yield f"Ends with {'; '.join(codes)}."
    yield f"Run it with `statemend playbook run {name} --set home=HOME`."
