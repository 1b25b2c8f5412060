"""``cleanup``: deletes sessions that a file preserves whole, and only what this run has proven."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from statemend.errors import Refused
from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Apply, Cleanup
from statemend.playbook.steps.verify import unproven
from statemend.repair import cleanup
from statemend.repair.cleanup_perform import CleanupFolder
from statemend.repair.cleanup_plan import CleanupPlan, dump
from statemend.repair.cleanup_planner import make_cleanup_plan
from statemend.repair.run import State
from statemend.repair.verify import status
from statemend.report.playbook_run import PASSING, StepState
from statemend.report.text import count
from statemend.store import durable

RUN, PLAN = "run", "cleanup.json"
_DONE = frozenset({State.AFTER_COMMIT, State.APPLIED, State.FAILED})


def run(step: Cleanup, env: Env) -> Outcome:
    """Passes when what may go is gone. What is kept is told, and gives the exit code 4."""
    _check_proven(env)
    if env.dry and not step.artifacts:
        return Outcome(
            state=StepState.PLANNED,
            summary="would delete what the exports of this run preserve whole, and keep the rest",
        )
    begun = _begun(env.earlier)
    if begun is not None:
        return _told(cleanup.apply(begun, progress=env.progress), begun, env, besides=(begun,))
    plan = make_cleanup_plan(
        env.home,
        sessions=step.sessions,
        older_than=step.older_than,
        artifacts=[Path(each) for each in step.artifacts] or list(env.exported()),
        runs=list(_repairs(env)),
        progress=env.progress,
    )
    file = env.place / PLAN
    durable.write_new(file, dump(plan))
    gone = sum(len(entry.members) for entry in plan.entries)
    if not plan.entries:
        return Outcome(
            exit_code=Refused.exit_code if plan.kept else 0,
            summary=f"nothing to delete, {count(len(plan.kept), 'session')} kept",
            facts={"deleted": 0, "kept": len(plan.kept)},
        )
    if env.dry:
        return Outcome(state=StepState.PLANNED, summary=f"would delete {count(gone, 'session')}")
    env.consent(f"Delete {count(gone, 'session')} of {plan.store.path}, each preserved by a file?")
    place = env.place / RUN
    done = cleanup.apply(file, run_dir=place, steps=env.hook, progress=env.progress)
    return _told(done, place, env, kept_before=plan)


def _check_proven(env: Env) -> None:
    """Whatever the playbook says: nothing is deleted before this run has a passing verify, and nothing that
    it did is unproven."""
    passed = any(r.kind == "verify" and r.state in PASSING for r in env.results.values())
    if not passed:
        raise Refused("no verify of this run has passed, so nothing is deleted")
    if open_ := unproven(env):
        raise Refused(f"{', '.join(open_)} is not verified, so nothing is deleted")


def _told(
    done: cleanup.Cleanup,
    place: Path,
    env: Env,
    *,
    besides: tuple[Path, ...] = (),
    kept_before: CleanupPlan | None = None,
) -> Outcome:
    kept = {each.session: each.reason for each in done.kept}
    if kept_before is not None:
        kept |= {each.session: each.reason for each in kept_before.kept}
    deleted = 0 if done.receipt is None else len(done.receipt.deleted)
    reasons = "; ".join(f"{session}: {reason}" for session, reason in sorted(kept.items())[:3])
    more = f" ({reasons}{' …' if len(kept) > 3 else ''})" if kept else ""
    return Outcome(
        exit_code=Refused.exit_code if kept else 0,
        summary=f"{count(deleted, 'session')} deleted, {len(kept)} kept{more}",
        facts={
            "deleted": deleted,
            "kept": len(kept),
            "run": env.name_of(place) if done.run is not None else None,
        },
        besides=besides,
    )


def _begun(earlier: Sequence[Path]) -> Path | None:
    """The cleanup that an attempt which broke off had committed, if one had."""
    for attempt in earlier:
        folder = CleanupFolder(attempt / RUN)
        if folder.cleanup.is_file() and status(folder, folder.load_plan()).state in _DONE:
            return folder.path
    return None


def _repairs(env: Env) -> Iterator[Path]:
    for step in env.before():
        if isinstance(step, Apply):
            place = env.results[step.name].facts.get("run")
            if isinstance(place, str):
                yield env.folder.path / place
