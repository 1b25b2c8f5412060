"""Says what became of a run, from the rows of the store, and what to do next."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import msgspec

from statemend.audit.context import Progress
from statemend.errors import Refused, Undetermined
from statemend.repair import bounds, journal, position, preflight, record, rescan
from statemend.repair.plan import Plan
from statemend.repair.position import Position
from statemend.repair.run import Run, RunFolder, State
from statemend.store.connection import Store, open_for_audit
from statemend.store.identity import store_digest

#: The plan in the folder of a cleanup, which is a run too.
CLEANUP = "cleanup.json"
_ONLY_JOURNAL = (
    "no row changed, and the search indexes were sound before: this is what the journal says, for nothing in "
    "the store tells; no message depends on it"
)
_BACK = (
    "the run was taken back, and its rows are as it made them again: another run of the plan did that, or an "
    "older copy of the store was put in its place"
)
_CAME_TO_COMMIT = frozenset({"committed", "undo begun", "undone"})


def verify(run_dir: Path, *, now: float | None = None, progress: Progress | None = None) -> Run:
    """Tell what became of the run in ``run_dir``.

    The store decides: its rows, and where none changed its search indexes. The journal only tells a change
    that was taken back from one that never was committed, and what nothing in the store tells. A change that
    is there is audited again. Nothing is written.

    Raises ``UsageError`` where there is no run, ``StoreHeld`` when the store is in use, ``Undetermined`` when
    it or the undo record cannot be read.
    """
    folder = RunFolder(run_dir)
    if (run_dir / CLEANUP).is_file():
        from statemend.repair import cleanup  # it imports this module

        return cleanup.verify(run_dir, now=now, progress=progress)
    plan = folder.load_plan()
    run = status(folder, plan)
    if run.state not in (State.APPLIED, State.FAILED):
        return run
    return _judged(folder, plan, run, time.time() if now is None else now, progress)


def status(folder: RunFolder, plan: Plan) -> Run:
    """What the rows say, without an audit. A run that was never judged is ``AFTER_COMMIT``; one that was has
    the state that was found then."""
    saved = folder.load()
    known = saved or Run(
        folder=str(folder.path),
        plan_id=plan.id,
        plan_digest=plan.digest,
        state=State.NOT_APPLIED,
        advice="",
        store=plan.store.path,
        served=tuple(sorted(rescan.served_by(plan))),
        started_at=_began(folder),
    )
    state, notes = _state(folder, plan, saved)
    return msgspec.structs.replace(
        known,
        folder=str(folder.path),
        snapshot=known.snapshot and msgspec.structs.replace(known.snapshot, path=str(folder.snapshot)),
        state=state,
        advice=advice(state, folder, plan),
        notes=(*known.notes, *(note for note in notes if note not in known.notes)),
    )


def finish(folder: RunFolder, plan: Plan, run: Run, now: float, progress: Progress | None = None) -> Run:
    """Judge a committed run, and keep the judgement in its folder."""
    judged = _judged(folder, plan, run, now, progress, keep=True)
    return folder.save(msgspec.structs.replace(judged, finished_at=now))


def advice(state: State, folder: RunFolder, plan: Plan) -> str:
    """What to do next, in one sentence."""
    place = shlex.quote(str(folder.path))
    cleanup = folder.path / CLEANUP
    verb, file = ("cleanup apply", cleanup) if cleanup.is_file() else ("apply", folder.plan)
    again = f"`statemend {verb} {shlex.quote(str(file))}`"
    return {
        State.NOTHING: "nothing to do",
        State.NOT_APPLIED: f"the store is as it was: {again} carries the plan out",
        State.BEFORE_COMMIT: f"the store is as it was: {again} carries the plan out anew",
        State.AFTER_COMMIT: f"the change is in the store: {again} completes the verification, "
        f"`statemend undo {place}` takes it back",
        State.APPLIED: f"nothing; `statemend undo {place}` takes it back",
        State.FAILED: f"`statemend undo {place}` takes it back",
        State.UNDONE: f"the store is as it was before the run; {again} carries the plan out again",
        State.CHANGED: "what the run made, or the tables, changed since, so it cannot be undone: plan anew; "
        f"the store as it was is {folder.snapshot}",
    }[state]


def _state(folder: RunFolder, plan: Plan, saved: Run | None) -> tuple[State, tuple[str, ...]]:
    """The state of a run, and what is not certain about it."""
    steps = {entry.step for entry in journal.read(folder.journal)}
    if not folder.undo.exists():
        with open_for_audit(Path(plan.store.path)) as store:
            where = position.of_operations(store, bounds.operations(plan))
        if where is Position.NEW:
            raise Undetermined(
                f"{folder.path}: the store is as the plan makes it, and this run did not do it: it has no "
                "undo record"
            )
        return (State.BEFORE_COMMIT if "fence entered" in steps else State.NOT_APPLIED), ()
    undo, _ = record.load(folder.undo, folder.changeset)
    with open_for_audit(Path(plan.store.path)) as store:
        where = position.of_rows(store, undo.rows)
        if where is Position.UNKNOWN:
            return _without_rows(position.of_indexes(store, undo), steps, saved)
        committed = bool(steps & _CAME_TO_COMMIT) or position.any_new(store, undo.rows)
        same_store = _is_store_of(plan, store)
    if where is Position.OLD:
        return (State.UNDONE if committed else State.BEFORE_COMMIT), ()
    if where is Position.OTHER:
        return (State.CHANGED if committed else State.BEFORE_COMMIT), ()
    judged = _judgement(saved)
    notes = (_BACK,) if saved is not None and saved.state is State.UNDONE else ()
    return (judged if same_store or judged is State.AFTER_COMMIT else State.CHANGED), notes


def _is_store_of(plan: Plan, store: Store) -> bool:
    """Whether an undo would take the store for that of the plan."""
    try:
        preflight.check_identity(store, plan)
    except Refused:
        return False
    return True


def _without_rows(indexes: Position, steps: set[str], saved: Run | None) -> tuple[State, tuple[str, ...]]:
    """The state of a run that only built search indexes anew. One that was damaged before and is sound now
    was built; whether one that was sound was built too, nothing in the store tells."""
    committed = "committed" in steps
    notes = (_ONLY_JOURNAL,) if indexes is Position.UNKNOWN else ()
    if "undone" in steps:
        return State.UNDONE, ()
    if indexes is Position.NEW or (indexes is Position.UNKNOWN and committed):
        return _judgement(saved), notes
    if not committed:
        return State.BEFORE_COMMIT, notes
    judged = _judgement(saved)
    return (State.CHANGED if judged is State.APPLIED else judged), ()


def _judgement(saved: Run | None) -> State:
    """How a run that is in the store was judged, if it was."""
    if saved is not None and saved.state in (State.APPLIED, State.FAILED):
        return saved.state
    return State.AFTER_COMMIT


def _judged(
    folder: RunFolder, plan: Plan, run: Run, now: float, progress: Progress | None, *, keep: bool = False
) -> Run:
    before = _load_look(folder)
    after = rescan.look(plan, now=now, progress=progress)
    after.require_as_much(before)
    if keep:
        folder.keep(folder.after, msgspec.json.encode(after))
    stood = run.state is State.APPLIED
    found = rescan.judge(plan, before, after, verified=stood, now=now, progress=progress)
    if found.new and folder.snapshot.is_file():  # another process may have written between look and fence
        known = before.seen_before(rescan.look(plan, store=folder.snapshot, now=now, progress=progress))
        found = rescan.judge(plan, known, after, verified=stood, now=now, progress=progress)
    state = State.APPLIED if found.passed else State.FAILED
    with open_for_audit(Path(plan.store.path)) as store:
        digest = store_digest(store)
    return msgspec.structs.replace(
        run,
        state=state,
        advice=advice(state, folder, plan),
        digest_after=run.digest_after or digest,
        remaining=found.remaining,
        new=found.new,
        troubles=found.troubles,
        notes=(*run.notes, *_shown_now(run, found)),
    )


def _shown_now(run: Run, found: rescan.Judgement) -> list[str]:
    notes = [
        f"{finding} shows now, for its session has its row again: plan again" for finding in found.revealed
    ]
    notes += [f"{finding} came later and is not of this run: plan again" for finding in found.later]
    return [note for note in notes if note not in run.notes]


def _load_look(folder: RunFolder) -> rescan.Look:
    try:
        return msgspec.json.decode(folder.before.read_bytes(), type=rescan.Look)
    except (OSError, msgspec.DecodeError) as error:
        raise Undetermined(f"{folder.before}: what was found before cannot be read ({error})") from error


def _began(folder: RunFolder) -> float:
    entries = journal.read(folder.journal)
    return entries[0].at if entries else 0.0
