"""``export``: sessions written again, whole."""

from __future__ import annotations

import time
from pathlib import Path

from statemend.errors import UsageError
from statemend.evidence.inventory import find_home
from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Export
from statemend.repair.aged import DAY, select_aged
from statemend.repair.export_result import State
from statemend.repair.reexport import reexport
from statemend.report.json import dump
from statemend.report.playbook_run import StepState
from statemend.report.text import count
from statemend.store import durable
from statemend.store.connection import open_for_audit
from statemend.store.lineage import Graph

#: The record of what was written, in the step's folder, and the folder with the files.
WRITTEN, FILES = "export.json", "export"


def run(step: Export, env: Env) -> Outcome:
    """Passes when every session that was chosen is written and proven, or there was none; also when some are
    and some are not, which the exit code tells."""
    if sum((bool(step.sessions), step.at_risk, step.older_than is not None)) != 1:
        raise UsageError(f"{step.name}: choose sessions one way: sessions, at_risk or older_than")
    sessions = step.sessions if step.older_than is None else _aged(env, step.older_than)
    folder = Path(step.into) if step.into else env.place / FILES
    if env.dry:
        chosen = "every session at risk" if step.at_risk else count(len(sessions), "session")
        return Outcome(state=StepState.PLANNED, summary=f"would export {chosen} as {step.format.value}")
    if not sessions and not step.at_risk:
        return Outcome(summary="no session to export", facts={"complete": 0})
    done = reexport(
        env.home,
        sessions,
        folder,
        form=step.format,
        view=step.view,
        at_risk=step.at_risk,
        exports=[Path(each) for each in step.exports],
        force=step.into is not None,
        progress=env.progress,
    )
    durable.write_new(env.place / WRITTEN, dump(done).encode())
    complete = [file for file in done.files if file.state is State.COMPLETE]
    others = [f"{file.session}: {'; '.join(file.reasons)}" for file in done.files if file not in complete]
    told = "; ".join([*others, *done.trouble])
    return Outcome(
        state=StepState.PASSED if complete or not others else StepState.FAILED,
        exit_code=done.exit_code,
        summary=f"{count(len(complete), 'session')} complete" + (f", not so: {told}" if told else ""),
        facts={
            "complete": len(complete),
            "other": len(others),
            "messages": sum(file.messages for file in complete),
            "archived": sum(file.archived for file in complete),
            "into": str(folder),
        },
    )


def _aged(env: Env, days: float) -> tuple[str, ...]:
    with open_for_audit(Path(find_home(env.home).store)) as store:
        return select_aged(store, Graph.load(store), time.time() - days * DAY).with_delegates
