"""The published JSON Schemas of reports, of what is made from them, and of runs of playbooks, generated from
their types."""

from __future__ import annotations

from statemend.repair.schemas import described
from statemend.report import artifact_list, baseline, diff, model, playbook_run
from statemend.report.json import SCHEMA_FILE
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


def write() -> None:
    """Write every schema anew."""
    for name in PUBLISHED:
        (FOLDER / name).write_text(render(name), encoding="utf-8")
