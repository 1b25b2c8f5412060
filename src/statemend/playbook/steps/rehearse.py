"""``rehearse``: the plan on a private copy."""

from __future__ import annotations

from statemend.errors import RolledBack
from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Rehearse
from statemend.repair.rehearse import rehearse
from statemend.report.json import dump
from statemend.report.playbook_run import StepState
from statemend.store import durable


def run(step: Rehearse, env: Env) -> Outcome:
    """Passes when the plan holds what it promises, and the undo gives the store back."""
    found = rehearse(env.plan(step.plan), progress=env.progress)
    durable.write_new(env.place / "rehearsal.json", dump(found).encode())
    if not found.passed:
        return Outcome(
            state=StepState.FAILED, exit_code=RolledBack.exit_code, summary="; ".join(found.reasons)
        )
    return Outcome(summary="carried out, audited and undone on a copy", facts={"plan": found.plan_id})
