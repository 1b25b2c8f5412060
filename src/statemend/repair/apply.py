"""Carries out a plan on its store, once, so that it can be told and taken back at any moment."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from statemend.audit.context import Progress
from statemend.errors import RolledBack, StatemendError, VerificationFailed
from statemend.repair import bounds, position, preflight, rescan
from statemend.repair.journal import Hook
from statemend.repair.lock import only_run
from statemend.repair.perform import LONG_LOCK, journalled, perform
from statemend.repair.plan import Plan
from statemend.repair.rehearse import rehearse_plan
from statemend.repair.run import Run, RunFolder, State, default_folder, earlier
from statemend.repair.verify import advice, finish, status
from statemend.store.bundle import inspect
from statemend.store.connection import open_for_audit


def apply(
    plan_path: Path,
    *,
    run_dir: Path | None = None,
    now: float | None = None,
    steps: Hook | None = None,
    progress: Progress | None = None,
) -> Run:
    """Carry out the plan in a file, after a rehearsal of it passed.

    Everything about it is kept in ``run_dir``, by default a new folder beside the home. ``now`` is epoch
    seconds, by default the present. ``steps`` is called with the name of each step that was reached. A plan
    that was carried out already is not carried out again; a run that broke off after its commit is completed.

    Raises ``UsageError`` for a file that is no plan, ``Refused`` when something stands in the way,
    ``RolledBack`` when the rehearsal or the change failed (the store is as it was), ``VerificationFailed``
    when it was committed and what it promised does not hold, ``Undetermined`` when something could not be
    read.
    """
    plan = bounds.read(plan_path)
    at = time.time() if now is None else now
    bundle = inspect(Path(plan.store.path))
    if not plan.selected():
        return _nothing(plan, at, "the plan has no step to carry out: choose options in it, or plan again")
    with only_run(plan.store.path):
        preflight.check_holders(bundle)
        done = _already(plan, (run_dir or plan_path.parent, plan_path.parent), at, progress)
        return done or _apply(plan, run_dir or default_folder(plan, at), at, steps, progress)


def _already(plan: Plan, places: Sequence[Path], now: float, progress: Progress | None) -> Run | None:
    """The run that carried this plan out, completed if it broke off; ``None`` when none did."""
    for folder in earlier(plan, places):
        run = status(folder, plan)
        if run.state in (State.AFTER_COMMIT, State.FAILED):
            with _committed(folder, plan):
                run = finish(folder, plan, run, now, progress)
            return _judged(run)
        if run.state is State.APPLIED:
            return _judged(msgspec.structs.replace(run, notes=(*run.notes, _ALREADY)))
    with open_for_audit(Path(plan.store.path)) as store:
        where = position.of_operations(store, bounds.operations(plan))
    return _nothing(plan, now, _ALREADY) if where is position.Position.NEW else None


_ALREADY = "every row is already as the plan makes it; nothing was changed"


def _apply(plan: Plan, place: Path, now: float, steps: Hook | None, progress: Progress | None) -> Run:
    preflight.check_log(inspect(Path(plan.store.path)))
    rehearsal, before = rehearse_plan(plan, now=now, progress=progress)
    if not rehearsal.passed:
        raise RolledBack(
            f"{plan.store.path}: the rehearsal did not pass, the store was not touched: "
            f"{'; '.join(rehearsal.reasons)}"
        )
    folder = RunFolder.create(place, plan)
    run = Run(
        folder=str(folder.path),
        plan_id=plan.id,
        plan_digest=plan.digest,
        state=State.NOT_APPLIED,
        advice="",
        store=plan.store.path,
        served=tuple(sorted(rescan.served_by(plan))),
        started_at=now,
    )
    folder.save(msgspec.structs.replace(run, advice=advice(State.NOT_APPLIED, folder, plan)))
    log = folder.log(steps)
    folder.keep(folder.before, msgspec.json.encode(before))
    with journalled(folder):
        log.step("rehearsal passed", digest=rehearsal.plan_digest)
    if progress is not None:
        progress(f"changing the store, which locks it for about {rehearsal.locked_seconds or 0:.0f} seconds")
    done = perform(plan, Path(plan.store.path), folder, log, now=now, rehearsed=rehearsal.after)
    with _committed(folder, plan):
        log.step("committed")
        run = folder.save(
            msgspec.structs.replace(
                run,
                state=State.AFTER_COMMIT,
                snapshot=done.snapshot,
                digest_before=done.undo.digest_before,
                digest_after=done.undo.digest_after,
                notes=(*done.notes, *_told(done.locked_seconds)),
                locked_seconds=round(done.locked_seconds, 3),
            )
        )
        run = finish(folder, plan, run, now, progress)
        log.step("verified")
    return _judged(run)


@contextmanager
def _committed(folder: RunFolder, plan: Plan) -> Iterator[None]:
    """Whatever goes wrong from here on, the change is committed, and that is what has to be told."""
    try:
        yield
    except (OSError, StatemendError) as error:
        raise VerificationFailed(
            f"{plan.store.path}: the change is committed and could not be verified ({error}); "
            f"{advice(State.AFTER_COMMIT, folder, plan)}"
        ) from error


def _judged(run: Run) -> Run:
    """The run, if it is verified."""
    if run.state is State.FAILED:
        wrong = [f"{one} is still there" for one in run.remaining] + [f"{one} is new" for one in run.new]
        raise VerificationFailed(
            f"{run.store}: the change is committed and does not hold what it promised: "
            f"{'; '.join([*wrong, *run.troubles])}; {run.advice}"
        )
    return run


def _told(seconds: float) -> list[str]:
    """A sentence about a lock that was held longer than any release should be made to wait."""
    if seconds < LONG_LOCK:
        return []
    return [
        f"the store was locked for writing for {seconds:.0f} seconds; a Hermes that was started meanwhile "
        "may have given up a write, which its log then tells"
    ]


def _nothing(plan: Plan, now: float, why: str) -> Run:
    return Run(
        folder="",
        plan_id=plan.id,
        plan_digest=plan.digest,
        state=State.NOTHING,
        advice=why,
        store=plan.store.path,
        served=tuple(sorted(rescan.served_by(plan))),
        started_at=now,
        finished_at=now,
    )
