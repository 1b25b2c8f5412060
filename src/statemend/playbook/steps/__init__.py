"""What each kind of step does: one module for each."""

from __future__ import annotations

from statemend.playbook import model
from statemend.playbook.env import Env, Outcome


def perform(step: model.Step, env: Env) -> Outcome:
    """Do what a step says. Raises ``StatemendError`` and ``OSError`` for what it meets, ``NoAnswer`` when
    nobody answers a question of it."""
    match step:
        case model.Scan():
            from statemend.playbook.steps import scan

            return scan.run(step, env)
        case model.Check():
            from statemend.playbook.steps import check

            return check.run(step, env)
        case model.Plan():
            from statemend.playbook.steps import plan

            return plan.run(step, env)
        case model.Choose():
            from statemend.playbook.steps import choose

            return choose.run(step, env)
        case model.Rehearse():
            from statemend.playbook.steps import rehearse

            return rehearse.run(step, env)
        case model.Apply():
            from statemend.playbook.steps import apply

            return apply.run(step, env)
        case model.Verify():
            from statemend.playbook.steps import verify

            return verify.run(step, env)
        case model.Export():
            from statemend.playbook.steps import export

            return export.run(step, env)
        case model.Snapshot():
            from statemend.playbook.steps import snapshot

            return snapshot.run(step, env)
        case model.Report():
            from statemend.playbook.steps import report

            return report.run(step, env)
        case model.Cleanup():
            from statemend.playbook.steps import cleanup

            return cleanup.run(step, env)
        case model.Bundle():
            from statemend.playbook.steps import bundle

            return bundle.run(step, env)
        case model.Pause():
            from statemend.playbook.steps import pause

            return pause.run(step, env)
