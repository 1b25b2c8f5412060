"""What each kind of step does: one module for each, called like the kind, with one function ``run``."""

from __future__ import annotations

import importlib

from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Step


def perform(step: Step, env: Env) -> Outcome:
    """Do what a step says. Raises ``StatemendError`` and ``OSError`` for what it meets, ``NoAnswer`` when
    nobody answers a question of it."""
    module = importlib.import_module(f"{__name__}.{step.kind}")
    outcome: Outcome = module.run(step, env)
    return outcome
