"""``pause``: a word with the operator."""

from __future__ import annotations

from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Pause
from statemend.report.playbook_run import StepState


def run(step: Pause, env: Env) -> Outcome:
    """Passes with a yes."""
    if env.dry:
        return Outcome(state=StepState.PLANNED, summary=f"would ask: {step.message}")
    env.consent(step.message)
    return Outcome(summary="confirmed")
