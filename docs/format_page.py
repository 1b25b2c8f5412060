"""The formats: what each schema describes, told from its type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from docs.pages import code, fill, prose, table
from statemend.playbook import bundle
from statemend.playbook import schemas as of_playbooks
from statemend.repair import schemas as of_repairs
from statemend.report import jsonlines, rulebook, sarif, session
from statemend.report import schemas as of_reports

_SOURCE = Path(__file__).parents[1] / "src"

#: What makes a file or an output of each schema.
MADE_BY = {
    "statemend/report/v1": "`scan --format json`, `scan -o report.json`",
    "statemend/diff/v1": "`diff --format json`",
    "statemend/baseline/v1": "`scan --write-baseline`",
    "statemend/story/v1": "`report --format json`",
    "statemend/artifacts/v1": "`artifacts --format json`",
    "statemend/session/v1": "`show --format json`",
    "statemend/rules/v1": "`rules --format json`, `explain --format json`",
    "statemend/plan/v1": "`plan -o`",
    "statemend/run/v1": "`apply`, `verify`, `undo` with `--format json`; `run.json` of a run",
    "statemend/cleanup/v1": "`cleanup plan -o`",
    "statemend/receipt/v1": "`receipt.json` of a cleanup",
    "statemend/rehearsal/v1": "`rehearse --format json`",
    "statemend/cleaned/v1": "`cleanup apply --format json`",
    "statemend/export/v1": "`export --report json`",
    "statemend/playbook/v1": "you, see [playbooks](playbooks.md)",
    "statemend/choices/v1": "you, see [choices files](playbooks.md#choices-files)",
    "statemend/playbook-run/v1": "`playbook run --format json`; `run.json` of its run",
    "statemend/bundle/v1": "`bundle --format json`; `BUNDLE.json` in a bundle",
}


def render() -> str:
    """The page."""
    return fill(
        "formats.md",
        {
            "schemas": lambda: "\n".join(_schemas()),
            "fingerprint": lambda: f"`{sarif.FINGERPRINT}`",
            "line types": lambda: code(jsonlines.TYPES.values()),
        },
    )


def described() -> Iterator[tuple[str, type[msgspec.Struct], Path | None]]:
    """Each schema, its type, and where its JSON Schema is published."""
    for module in (of_reports, of_repairs, of_playbooks):
        for name, (schema, kind) in module.PUBLISHED.items():
            yield schema, kind, module.FOLDER / name
    yield session.SCHEMA, session.SessionReport, None
    yield "statemend/rules/v1", rulebook.Rulebook, None
    yield bundle.SCHEMA, bundle.Bundle, None


def _schemas() -> Iterator[str]:
    yield from table(
        ["schema", "what it is", "made by", "fields at the top"],
        (
            [
                _linked(schema, published),
                _first_sentence(kind),
                MADE_BY.get(schema, ""),
                code(field for field in kind.__struct_encode_fields__ if field != "schema"),
            ]
            for schema, kind, published in described()
        ),
    )


def _first_sentence(kind: type) -> str:
    return prose(kind.__doc__ or "").splitlines()[0].partition(". ")[0].rstrip(".") + "."


def _linked(schema: str, published: Path | None) -> str:
    if published is None:
        return f"`{schema}`"
    return f"[`{schema}`](../src/{published.relative_to(_SOURCE).as_posix()})"
