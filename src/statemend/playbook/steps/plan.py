"""``plan``: what can be repaired, and how."""

from __future__ import annotations

from statemend.errors import Undetermined
from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Plan
from statemend.repair.plan import dump
from statemend.repair.planner import draft
from statemend.report.text import count
from statemend.store import durable


def run(step: Plan, env: Env) -> Outcome:
    """Passes also when there is nothing to do."""
    made = draft(
        env.home,
        exports=env.beside(step.exports),
        recipes=step.recipes or None,
        restore=step.restore,
        deep=step.deep,
        progress=env.progress,
    )
    plan = made.plan
    durable.write_new(env.place / "plan.json", dump(plan))
    left = f", {count(len(plan.left), 'finding')} left" if plan.left else ""
    return Outcome(
        exit_code=Undetermined.exit_code if made.undetermined else 0,
        summary=f"{count(len(plan.steps), 'step')} and {count(len(plan.choices), 'open choice')}{left}",
        facts={
            "plan": plan.id,
            "steps": len(plan.steps),
            "choices": len(plan.choices),
            "left": len(plan.left),
        },
    )
