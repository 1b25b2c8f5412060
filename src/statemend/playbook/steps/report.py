"""``report``: what was found, for people and for machines."""

from __future__ import annotations

from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Report, ReportFormat
from statemend.playbook.steps.scan import BASELINE, REPORT
from statemend.report.baseline import apply_baseline, load_baseline
from statemend.report.load import load_report
from statemend.report.render import render
from statemend.report.text import count
from statemend.store import durable

#: How the files of each form end.
ENDINGS = {
    ReportFormat.HTML: "html",
    ReportFormat.JSON: "json",
    ReportFormat.JSONL: "jsonl",
    ReportFormat.JUNIT: "junit.xml",
    ReportFormat.MD: "md",
    ReportFormat.SARIF: "sarif",
    ReportFormat.SUMMARY: "summary.md",
}


def run(step: Report, env: Env) -> Outcome:
    """Passes when the files are written."""
    if step.story:
        return _story(step, env)
    place = env.scan(step.scan)
    report = load_report(place / REPORT)
    if step.only == "changes" and (place / BASELINE).is_file():
        report = apply_baseline(report, load_baseline(place / BASELINE))
    for form in step.formats:
        durable.write_new(env.place / f"report.{ENDINGS[form]}", render(report, form.value).encode())
    files = ", ".join(f"report.{ENDINGS[form]}" for form in step.formats)
    return Outcome(summary=f"{report.verdict} ({files})", facts={"findings": len(report.findings)})


def _story(step: Report, env: Env) -> Outcome:
    from statemend.report.story.render import render as told
    from statemend.report.story.tell import gather

    story = gather([env.folder.path])
    for form in step.formats:
        durable.write_new(env.place / f"story.{ENDINGS[form]}", told(story, form.value).encode())
    return Outcome(summary=f"the story of this run, {count(len(story.events), 'event')}")
