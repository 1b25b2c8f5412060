"""``scan``: audits the home, and compares with an earlier report where it is asked to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from statemend.audit.finding import Finding
from statemend.audit.outcome import FAILING
from statemend.errors import Undetermined
from statemend.playbook.env import Env, Outcome
from statemend.playbook.folder import known_runs
from statemend.playbook.model import LAST, Scan
from statemend.report import json
from statemend.report.baseline import baseline_of
from statemend.report.diff import Diff, diff
from statemend.report.load import load_report
from statemend.report.model import Report
from statemend.report.playbook_run import Fact, RunState, StepState
from statemend.report.produce import produce
from statemend.store import durable

#: What the folder of a scan holds.
REPORT, DIFF, BASELINE = "report.json", "diff.json", "baseline.json"


def run(step: Scan, env: Env) -> Outcome:
    """Passes unless a finding, or with a baseline a new finding, has a verdict that fails. What could not be
    determined gives the exit code 3 and does not hinder what follows."""
    if env.dry and any(result.state is StepState.PLANNED for result in env.results.values()):
        return Outcome(state=StepState.PLANNED, summary="would audit the home as it is then")
    fail_on = step.fail_on
    report = produce(
        env.home,
        exports=env.beside(step.exports),
        rules=step.rules or None,
        ignore=dict.fromkeys(step.ignore, f"step {step.name} of playbook {env.playbook.name}"),
        live=step.live,
        deep=step.deep,
        fail_on=fail_on,
        profiles=False,  # what the other steps work on is one store
        progress=env.progress,
    )
    durable.write_new(env.place / REPORT, json.render(report).encode())
    facts = _counted(report)
    counted: tuple[Finding, ...] = report.findings
    sentence = report.verdict
    baseline = _baseline(step, env)
    if baseline is not None:
        before = load_report(baseline)
        compared = diff(before, report)
        durable.write_new(env.place / BASELINE, json.dump(baseline_of(before)).encode())
        durable.write_new(env.place / DIFF, json.dump(compared).encode())
        facts |= _compared(compared)
        counted = tuple(each.finding for each in compared.new)
        sentence = f"{compared.verdict} {sentence}"
    elif step.baseline is not None:
        facts["baseline"] = "none yet"
        sentence = f"No earlier report to compare with. {sentence}"
    failing = any(finding.verdict in FAILING[fail_on] for finding in counted)
    undetermined = report.exit_code == Undetermined.exit_code
    return Outcome(
        state=StepState.FAILED if failing else StepState.PASSED,
        exit_code=Undetermined.exit_code if undetermined else int(failing),
        summary=sentence,
        facts=facts,
    )


def _baseline(step: Scan, env: Env) -> Path | None:
    """The report to compare with, ``None`` where none is asked for, or there is none yet."""
    if step.baseline is None:
        return None
    if step.baseline != LAST:
        scans = [each.name for each in env.playbook.steps if isinstance(each, Scan)]
        return env.scan(step.baseline) / REPORT if step.baseline in scans else Path(step.baseline)
    for folder, known in known_runs(env.home if env.home.is_dir() else env.home.parent):
        if known.playbook != env.playbook.name or known.state is not RunState.FINISHED:
            continue
        for result in known.steps:
            report = folder.path / result.folder / REPORT
            if result.id == step.name and result.folder and report.is_file():
                return report
    return None


def _counted(report: Report) -> dict[str, Fact]:
    verdicts = Counter(finding.verdict.value for finding in report.findings)
    return {"findings": len(report.findings), **dict(sorted(verdicts.items()))}


def _compared(compared: Diff) -> dict[str, Fact]:
    return {
        "baseline": compared.before.generated_at,
        "new": len(compared.new),
        "gone": len(compared.gone),
        "changed": len(compared.changed),
        "unknown": len(compared.unknown),
    }
