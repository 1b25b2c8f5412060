"""``apply``: the plan on the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Apply
from statemend.repair import bounds
from statemend.repair.apply import apply
from statemend.repair.plan import Plan, dump
from statemend.repair.run import RunFolder, State
from statemend.repair.verify import status
from statemend.report.playbook_run import StepState
from statemend.report.text import count

#: The folder of the repair, within that of the step.
RUN = "run"
_DONE = frozenset({State.AFTER_COMMIT, State.APPLIED, State.FAILED})


def run(step: Apply, env: Env) -> Outcome:
    """Passes when the change is there and verified, also when there is nothing to change."""
    file = env.plan(step.plan)
    plan = bounds.read(file)
    operations = len(bounds.operations(plan))
    if not operations:
        return Outcome(summary="nothing to change", facts={"operations": 0})
    change = f"{count(operations, 'row')} of {plan.store.path}"
    if env.dry:
        return Outcome(state=StepState.PLANNED, summary=f"would change {change}")
    begun = _begun(plan, env.earlier)
    if begun is None:
        env.consent(f"Change {change}?")
    place = begun or env.place / RUN
    done = apply(file, run_dir=place, steps=env.hook, progress=env.progress)
    return Outcome(
        summary=f"{done.state.value}: {count(operations, 'row')}",
        facts={
            "operations": operations,
            "run": env.name_of(done.folder) if done.folder else None,
            "served": len(done.served),
            "digest_before": done.digest_before,
            "digest_after": done.digest_after,
        },
        besides=() if begun is None else (begun,),
    )


def _begun(plan: Plan, earlier: Sequence[Path]) -> Path | None:
    """The repair that an attempt which broke off had committed, if one had."""
    for attempt in earlier:
        folder = RunFolder(attempt / RUN)
        same = folder.plan.is_file() and folder.plan.read_bytes() == dump(plan)
        if same and status(folder, plan).state in _DONE:
            return folder.path
    return None
