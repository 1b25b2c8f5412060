"""The reference of playbooks: the file as its types say it."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator

import msgspec
from msgspec.inspect import Field

from docs import shipped_playbooks
from docs.field_types import default, fields, meaning, words
from docs.pages import code, fill, prose, table
from statemend.playbook import model, tables, variables
from statemend.playbook.source import PLAYBOOK
from statemend.report.playbook_run import StepState

#: What a step leaves in its folder, beside ``result.json``.
LEAVES = {
    "scan": "`report.json`; with a baseline also `baseline.json` and `diff.json`",
    "check": "`answer.json`",
    "plan": "`plan.json`",
    "choose": "`plan.json` with the answers, `decided.json`; while it waits, `choices.yaml`",
    "rehearse": "`rehearsal.json`",
    "apply": "`run/`: plan, snapshot, undo record, journal, findings before and after",
    "verify": "`verified-STEP.json` for each step that it proved",
    "export": "`export.json`; the files in `export/` unless `into` names another folder",
    "snapshot": "`snapshot.db`",
    "report": "`report.html` and so on, one file for each of `formats`; `story.html` and so on for a story",
    "cleanup": "`cleanup.json`; `run/` with snapshot, undo record and `receipt.json`",
    "bundle": "`bundle.tar.gz`",
    "pause": "nothing",
}

_COMMON = frozenset({"id", "title", "needs"})


def render() -> str:
    """The page."""
    return fill(
        "playbooks.md",
        {
            "states": lambda: ", ".join(f"*{state}*" for state in StepState),
            "size": lambda: str(PLAYBOOK.bytes // 1024),
            "playbook fields": lambda: _table(fields(model.Playbook)),
            "inputs": lambda: _described(model.Input),
            "run variables": lambda: code(f"run.{name}" for name in variables.RUN),
            "filters": lambda: code(variables.FILTERS),
            "answers": lambda: _described(model.Answer),
            "common fields": lambda: _table(_common()),
            "steps": lambda: "\n".join(_steps()),
            "check tables": lambda: "\n".join(_check_tables()),
            "shipped": lambda: "\n".join(shipped_playbooks.sections()),
        },
    )


def step_types() -> tuple[type[model.Step], ...]:
    """Every kind of step."""
    return typing.get_args(model.Step)


def _steps() -> Iterator[str]:
    for step in step_types():
        kind = str(step.__struct_config__.tag)
        yield f"### {kind}"
        yield ""
        yield prose(step.__doc__ or "")
        yield ""
        if own := [field for field in fields(step) if field.encode_name not in _COMMON]:
            yield _table(own)
        yield f"Leaves in its folder: {LEAVES[kind]}."
        yield ""


def _common() -> list[Field]:
    return [field for field in fields(model.Pause) if field.encode_name in _COMMON]


def _described(kind: type[msgspec.Struct]) -> str:
    return f"{prose(kind.__doc__ or '')}\n\n{_table(fields(kind))}"


def _table(given: Iterable[Field]) -> str:
    rows = (
        [f"`{field.encode_name}`", _words(field), default(field), prose(meaning(field.type))]
        for field in given
    )
    return "\n".join(table(["field", "takes", "default", "means"], rows))


def _words(field: Field) -> str:
    """What a field takes; the steps are described one by one."""
    return "list of steps, in order" if field.encode_name == "steps" else words(field.type)


def _check_tables() -> Iterator[str]:
    yield from table(
        ["table", "columns"],
        ([f"`{name}`", code(columns)] for name, columns in tables.SCAN_TABLES.items()),
    )
