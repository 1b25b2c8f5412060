"""The published JSON Schemas of reports, of what is made from them, and of runs of playbooks, generated from
their types."""

from __future__ import annotations

from typing import Any

import msgspec

from statemend.report import artifact_list, baseline, diff, model, playbook_run
from statemend.report.json import SCHEMA_FILE, dump
from statemend.report.story import model as story

#: File name to the type that it describes. ``write`` makes the files; a test says when one is stale.
PUBLISHED = {
    "report-v1.json": (model.SCHEMA, model.Report),
    "diff-v1.json": (diff.SCHEMA, diff.Diff),
    "baseline-v1.json": (baseline.SCHEMA, baseline.BaselineFile),
    "playbook-run-v1.json": (playbook_run.SCHEMA, playbook_run.PlaybookRun),
    "artifacts-v1.json": (artifact_list.SCHEMA, artifact_list.ArtifactList),
    "story-v1.json": (story.SCHEMA, story.Story),
}
FOLDER = SCHEMA_FILE.parent


def render(name: str) -> str:
    """The JSON Schema that the file ``name`` should hold."""
    return described(*PUBLISHED[name])


def described(title: str, kind: Any) -> str:
    """The JSON Schema of a type."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **msgspec.json.schema(kind),
    }
    return dump(_one_line(schema))


def write() -> None:
    """Write every schema anew."""
    for name in PUBLISHED:
        (FOLDER / name).write_text(render(name), encoding="utf-8")


def _one_line(value: Any) -> Any:
    """Descriptions without the line breaks of the source they come from."""
    if isinstance(value, dict):
        return {
            key: " ".join(item.split()) if key == "description" and isinstance(item, str) else _one_line(item)
            for key, item in value.items()
        }
    return [_one_line(item) for item in value] if isinstance(value, list) else value
