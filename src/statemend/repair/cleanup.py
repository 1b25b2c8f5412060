"""Deletes the sessions that a cleanup plan names, each only while a file holds every row of it, or archived
rows that only repeat others.

Separate from repairs, and last: no repair deletes a session or a message, and no cleanup begins while a
repair of the store is not verified. What is refused is refused session by session; the others go on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import msgspec

from statemend.audit.context import Progress
from statemend.audit.finding import Verdict
from statemend.errors import Refused, RolledBack, StatemendError, Undetermined, UsageError, VerificationFailed
from statemend.repair import cleanup_plan, preflight, record, rescan
from statemend.repair.cleanup_check import Examination, still_holds
from statemend.repair.cleanup_perform import CleanupFolder, NothingLeftError, Performed, perform
from statemend.repair.cleanup_plan import CleanupPlan, Kept
from statemend.repair.journal import Hook, Journal
from statemend.repair.lock import only_run
from statemend.repair.perform import UNDERNEATH, journalled, said
from statemend.repair.receipt import Receipt
from statemend.repair.run import Run, RunFolder, State, default_folder, known_folders
from statemend.repair.takeback import check_untouched_since, take_back
from statemend.repair.verify import advice, status
from statemend.store import durable
from statemend.store.bundle import inspect
from statemend.store.connection import StoreFault, open_for_audit
from statemend.store.copies import copy_store, private_folder
from statemend.store.identity import store_digest
from statemend.store.writing import open_for_repair

SCHEMA: Final = "statemend/cleaned/v1"


class Cleanup(msgspec.Struct, frozen=True, kw_only=True):
    """How a cleanup ended. ``run`` and ``receipt`` are ``None`` when nothing was deleted; ``kept`` are the
    sessions of the plan that are kept, each with the reason."""

    schema: Literal["statemend/cleaned/v1"] = SCHEMA
    run: Run | None
    receipt: Receipt | None
    kept: tuple[Kept, ...] = ()

    @property
    def exit_code(self) -> int:
        """4 when any session was kept, or when the plan held none to delete."""
        return Refused.exit_code if self.kept or self.receipt is None else 0


def apply(
    path: Path,
    *,
    run_dir: Path | None = None,
    now: float | None = None,
    steps: Hook | None = None,
    progress: Progress | None = None,
) -> Cleanup:
    """Carry out the cleanup plan at ``path``, a file or the folder of a run that broke off, after a rehearsal
    of it passed.

    Everything about it is kept in ``run_dir``, by default a new folder beside the home; ``statemend undo``
    takes it back from there. ``now`` is epoch seconds, by default the present. ``steps`` is called with the
    name of each step that was reached. A plan that was carried out already is not carried out again.

    Raises ``UsageError`` for a file that is no cleanup plan, ``Refused`` when something stands in the way of
    all of it, ``RolledBack`` when the rehearsal or the deletion failed (the store is as it was),
    ``VerificationFailed`` when it was committed and what it promised does not hold, ``Undetermined`` when
    something could not be read.
    """
    plan = cleanup_plan.load(CleanupFolder(path).cleanup if path.is_dir() else path)
    at = time.time() if now is None else now
    bundle = inspect(Path(plan.store.path))
    if bundle.fault is not None:
        raise StoreFault(bundle)
    with only_run(plan.store.path):
        preflight.check_holders(bundle)
        places = [each for each in (run_dir, path if path.is_dir() else path.parent) if each is not None]
        done = _already(plan, places, at, progress)
        if done is not None:
            return done
        preflight.check_log(bundle)
        _check_runs(plan)
        with open_for_audit(Path(plan.store.path)) as store:
            preflight.check_identity(store, plan.envelope())
            holds = still_holds(Examination(store, now=at, index_fits=lambda: True), plan)
        if holds.nothing:
            return Cleanup(run=None, receipt=None, kept=holds.kept)
        try:
            before = _rehearse(plan, at, progress)
            place = run_dir or default_folder(plan.envelope(), at)
            return _apply(plan, place, before, at, steps, progress)
        except NothingLeftError as error:
            return Cleanup(run=None, receipt=None, kept=error.kept)


def verify(run_dir: Path, *, now: float | None = None, progress: Progress | None = None) -> Run:
    """Tell what became of the cleanup in ``run_dir``, as ``verify.verify`` does of a repair: from the rows of
    the store. Nothing is written."""
    folder = CleanupFolder(run_dir)
    plan = cleanup_plan.load(folder.cleanup)
    run = status(folder, plan.envelope())
    if run.state not in (State.APPLIED, State.FAILED):
        return run
    return _judged(folder, plan, run, time.time() if now is None else now, progress)


def _already(plan: CleanupPlan, places: list[Path], now: float, progress: Progress | None) -> Cleanup | None:
    """What the run did that carried this plan out, completed if it broke off; ``None`` when none did."""
    written = cleanup_plan.dump(plan)
    for place in (*places, *known_folders(plan.envelope())):
        folder = CleanupFolder(place)
        if not folder.cleanup.is_file() or folder.cleanup.read_bytes() != written:
            continue
        run = status(folder, plan.envelope())
        if run.state in (State.AFTER_COMMIT, State.FAILED):
            with _told_as_committed(folder, plan):
                run, receipt = _finish(folder, plan, run, now, progress)
            return _result(run, receipt)
        if run.state in (State.APPLIED, State.CHANGED):
            receipt = _load_receipt(folder.receipt if folder.receipt.is_file() else folder.promise)
            note = "the plan was carried out already; nothing was changed"
            run = msgspec.structs.replace(run, notes=(*run.notes, note))
            return _result(run, receipt)
    return None


def _check_runs(plan: CleanupPlan) -> None:
    """Raise ``Refused`` while a run on this store is not known to be verified, or taken back. One that was
    taken back, and whose plan a later run carried out, is told from its rows by that run alone."""
    verified: set[str] = set()
    waiting: list[tuple[Path, str, Run]] = []
    for place in (*map(Path, plan.runs), *known_folders(plan.envelope())):
        folder = RunFolder(place)
        if not folder.plan.is_file():
            if str(place) in plan.runs:
                raise UsageError(f"{place}: not the folder of a run")
            continue
        try:
            repair = folder.load_plan()
            if os.path.realpath(repair.store.path) != os.path.realpath(plan.store.path):
                continue
            run = status(folder, repair)
        except UsageError as error:
            raise Refused(
                f"{place}: holds a run that cannot be read ({error}); move it away first"
            ) from error
        saved = folder.load()
        judged = saved is not None and saved.state is State.APPLIED
        if run.state is State.APPLIED:
            verified.add(repair.digest)
        elif run.state in (State.AFTER_COMMIT, State.FAILED) or (run.state is State.CHANGED and not judged):
            waiting.append((place, repair.digest, run))
    for place, digest, run in waiting:
        if digest not in verified:
            raise Refused(
                f"{place}: this run is {run.state.value}, and nothing is deleted before it is verified or "
                f"taken back: {run.advice}"
            )


def _rehearse(plan: CleanupPlan, now: float, progress: Progress | None) -> rescan.Look:
    """Carry the plan out on a private copy, and take it back. Returns what an audit finds before.

    Raises ``RolledBack`` when that does not work out; the store was not touched."""
    bundle = inspect(Path(plan.store.path))
    with private_folder() as private:
        (private / "home").mkdir()
        store = copy_store(bundle, private / "home")
        before = rescan.look(plan.envelope(), now=now, progress=progress)
        folder = _create(private / "run", plan)
        if progress is not None:
            progress("rehearsing the deletion on a private copy")
        try:
            done = perform(plan, store, folder, Journal(folder.journal), now=now)
            undone = _undo_copy(store, folder)
        except (RolledBack, *UNDERNEATH) as error:
            raise _unrehearsed(plan, said(error)) from error
        if undone != done.undo.digest_before:
            raise _unrehearsed(plan, "the undo did not give the store back")
        return before


def _unrehearsed(plan: CleanupPlan, reason: str) -> RolledBack:
    return RolledBack(f"{plan.store.path}: the rehearsal did not pass, the store was not touched: {reason}")


def _undo_copy(store: Path, folder: RunFolder) -> str:
    undo, changeset = record.load(folder.undo, folder.changeset)
    with open_for_repair(store, foreign_keys=False) as connection:
        with connection.fence():
            check_untouched_since(connection, undo)
            take_back(connection, undo, changeset)
        return store_digest(connection.store)


def _create(place: Path, plan: CleanupPlan) -> CleanupFolder:
    RunFolder.create(place, plan.envelope())
    folder = CleanupFolder(place)
    try:
        durable.write_new(folder.cleanup, cleanup_plan.dump(plan))
    except OSError as error:
        raise Undetermined(f"{folder.cleanup}: cannot be written ({error.strerror})") from error
    return folder


def _apply(
    plan: CleanupPlan,
    place: Path,
    before: rescan.Look,
    now: float,
    steps: Hook | None,
    progress: Progress | None,
) -> Cleanup:
    folder = _create(place, plan)
    run = folder.save(
        Run(
            folder=str(folder.path),
            plan_id=plan.id,
            plan_digest=plan.digest,
            state=State.NOT_APPLIED,
            advice="",
            store=plan.store.path,
            started_at=now,
        )
    )
    log = folder.log(steps)
    folder.keep(folder.before, msgspec.json.encode(before))
    with journalled(folder):
        log.step("rehearsal passed", digest=plan.digest)
    done = perform(plan, Path(plan.store.path), folder, log, now=now)
    with _told_as_committed(folder, plan):
        log.step("committed")
        run = folder.save(_committed(run, done))
        run, receipt = _finish(folder, plan, run, now, progress, log)
    return _result(run, receipt)


@contextmanager
def _told_as_committed(folder: CleanupFolder, plan: CleanupPlan) -> Iterator[None]:
    """Whatever goes wrong from here on, the deletion is committed, and that is what has to be told."""
    try:
        yield
    except (OSError, StatemendError) as error:
        raise VerificationFailed(
            f"{plan.store.path}: the deletion is committed and could not be verified ({error}); "
            f"{advice(State.AFTER_COMMIT, folder, plan.envelope())}"
        ) from error


def _committed(run: Run, done: Performed) -> Run:
    return msgspec.structs.replace(
        run,
        state=State.AFTER_COMMIT,
        snapshot=done.snapshot,
        digest_before=done.undo.digest_before,
        digest_after=done.undo.digest_after,
        notes=done.notes,
    )


def _finish(
    folder: CleanupFolder,
    plan: CleanupPlan,
    run: Run,
    now: float,
    progress: Progress | None,
    log: Journal | None = None,
) -> tuple[Run, Receipt]:
    """Give the receipt its name, judge a committed run, and keep the judgement in its folder."""
    receipt = _load_receipt(folder.receipt if folder.receipt.is_file() else folder.promise)
    folder.keep(folder.receipt, folder.promise.read_bytes())
    if log is not None:
        log.step("receipt written")
    run = _judged(folder, plan, run, now, progress, keep=True)
    run = folder.save(msgspec.structs.replace(run, finished_at=now))
    if log is not None:
        log.step("verified")
    return run, receipt


def _result(run: Run, receipt: Receipt) -> Cleanup:
    if run.state is State.FAILED:
        wrong = "; ".join(f"{one} is new" for one in run.new)
        raise VerificationFailed(
            f"{run.store}: the deletion is committed and does not hold what it promised: {wrong}; "
            f"{run.advice}"
        )
    return Cleanup(run=run, receipt=receipt, kept=receipt.kept)


def _judged(
    folder: CleanupFolder,
    plan: CleanupPlan,
    run: Run,
    now: float,
    progress: Progress | None,
    *,
    keep: bool = False,
) -> Run:
    """The run after another look at the store. A finding that is new and about a session that went, or one
    above or below it, is a consequence of the deletion, and noted; so is a lawful leftover about no single
    session, and one about a session that was kept, because another process changed it or its file. Any other
    is trouble."""
    try:
        before = msgspec.json.decode(folder.before.read_bytes(), type=rescan.Look)
    except (OSError, msgspec.DecodeError) as error:
        raise Undetermined(f"{folder.before}: what was found before cannot be read ({error})") from error
    receipt = _load_receipt(folder.promise)
    after = rescan.look(plan.envelope(), now=now, progress=progress)
    after.require_as_much(before)
    if keep:
        folder.keep(folder.after, msgspec.json.encode(after))
    near = {each.session for each in receipt.deleted} | {each.session for each in receipt.ancestors}
    near |= receipt.detached.keys()
    named = {member.session for entry in plan.entries for member in entry.members}
    named |= {each.session for each in plan.collapses} - {each.session for each in receipt.collapsed}
    appeared = [finding for finding in after.findings if finding.id not in before.ids]
    explained = [
        finding
        for finding in appeared
        if finding.subject.session in near | named
        or (finding.subject.session is None and finding.verdict is Verdict.LEFTOVER)
    ]
    new = {finding.id for finding in appeared} - {finding.id for finding in explained}
    if new and folder.snapshot.is_file():  # another process may have written between look and fence
        new -= rescan.look(plan.envelope(), store=folder.snapshot, now=now, progress=progress).ids
    notes = [
        f"{each.id}, about {each.subject.session or 'several sessions'}, "
        f"{'is new' if each.subject.session in named - near else 'follows from the deletion'}: {each.summary}"
        for each in explained
    ]
    state = State.FAILED if new else State.APPLIED
    undo = f"`statemend undo {folder.path}` takes it back"
    return msgspec.structs.replace(
        run,
        state=state,
        advice=undo if state is State.FAILED else f"nothing; {undo}",
        new=tuple(sorted(new)),
        notes=tuple(dict.fromkeys((*run.notes, *notes))),
    )


def _load_receipt(path: Path) -> Receipt:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Receipt)
    except (OSError, msgspec.DecodeError) as error:
        raise Undetermined(f"{os.fspath(path)}: the receipt cannot be read ({error})") from error
