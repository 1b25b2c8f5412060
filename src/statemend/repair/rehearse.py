"""Rehearses a plan on a private copy of its store: carried out, judged and undone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final, Literal

import msgspec

from statemend.audit.context import Progress
from statemend.errors import Refused, RolledBack
from statemend.repair import bounds, record, rescan
from statemend.repair.journal import Journal
from statemend.repair.perform import LONG_LOCK, UNDERNEATH, perform, said
from statemend.repair.plan import Plan
from statemend.repair.run import RunFolder
from statemend.repair.takeback import check_untouched_since, take_back
from statemend.store.bundle import inspect
from statemend.store.connection import StoreFault
from statemend.store.copies import copy_store, private_folder
from statemend.store.identity import store_digest
from statemend.store.writing import open_for_repair

SCHEMA: Final = "statemend/rehearsal/v1"


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """How a rehearsal went. ``reasons`` say why it did not pass, one sentence each. The digests are of the
    whole copy before the change, after it, and after the undo. ``locked_seconds`` is how long the change kept
    the copy locked: about as long as carrying it out will keep other writers of the store waiting.
    ``notes`` say what else there is to know."""

    schema: Literal["statemend/rehearsal/v1"] = SCHEMA
    passed: bool
    reasons: tuple[str, ...]
    plan_id: str
    plan_digest: str
    before: str | None = None
    after: str | None = None
    undone: str | None = None
    locked_seconds: float | None = None
    notes: tuple[str, ...] = ()


def rehearse(plan_path: Path, *, now: float | None = None, progress: Progress | None = None) -> Rehearsal:
    """Rehearse the plan in a file. Its store is only read.

    Raises ``UsageError`` for a file that is no plan, and what stands in the way of carrying it out at all
    (``Refused``, ``Undetermined``): a rehearsal that did not pass says that the plan is not good.
    """
    plan = bounds.read(plan_path)
    at = time.time() if now is None else now
    found, _ = rehearse_plan(plan, now=at, progress=progress)
    return found


def rehearse_plan(
    plan: Plan, *, now: float, progress: Progress | None = None
) -> tuple[Rehearsal, rescan.Look]:
    """Rehearse a plan that was read. Also returns what the audit found before the change."""
    bundle = inspect(Path(plan.store.path))
    if bundle.fault is not None:
        raise StoreFault(bundle)
    with private_folder() as private:
        (private / "home").mkdir()
        store = copy_store(bundle, private / "home")
        before = rescan.look(plan, store=store, now=now, progress=progress)
        if not plan.selected():
            return _rehearsal(plan, ()), before
        folder = RunFolder.create(private / "run", plan)
        try:
            done = perform(plan, store, folder, Journal(folder.journal), now=now)
        except RolledBack as error:
            return _rehearsal(plan, (str(error),)), before
        after = rescan.look(plan, store=store, now=now, progress=progress)
        found = rescan.judge(plan, before, after, store=store, now=now, progress=progress)
        rehearsal = _rehearsal(plan, found.reasons)
        rehearsal = msgspec.structs.replace(
            rehearsal,
            before=done.undo.digest_before,
            after=done.undo.digest_after,
            locked_seconds=round(done.locked_seconds, 3),
            notes=_notes(done.locked_seconds),
        )
        try:
            undone = _undo(store, folder)
        except (RolledBack, Refused, *UNDERNEATH) as error:
            reasons = (*rehearsal.reasons, f"it could not be undone: {said(error)}")
            return msgspec.structs.replace(rehearsal, passed=False, reasons=reasons), before
        if undone != done.undo.digest_before:
            reasons = (*rehearsal.reasons, "the undo did not give the store back")
            rehearsal = msgspec.structs.replace(rehearsal, passed=False, reasons=reasons)
        return msgspec.structs.replace(rehearsal, undone=undone), before


def _undo(store: Path, folder: RunFolder) -> str:
    undo, changeset = record.load(folder.undo, folder.changeset)
    with open_for_repair(store, foreign_keys=False) as connection:
        with connection.fence():
            check_untouched_since(connection, undo)
            take_back(connection, undo, changeset)
        return store_digest(connection.store)


def _notes(seconds: float) -> tuple[str, ...]:
    if seconds < LONG_LOCK:
        return ()
    return (
        f"carrying the plan out will lock the store for writing for about {seconds:.0f} seconds, longer than "
        "a Hermes that starts meanwhile may wait",
    )


def _rehearsal(plan: Plan, reasons: tuple[str, ...]) -> Rehearsal:
    return Rehearsal(passed=not reasons, reasons=reasons, plan_id=plan.id, plan_digest=plan.digest)
