"""Takes a run back: its own rows, all of them or none, and only while they are what the run made of them."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from statemend.errors import Refused, RolledBack, StatemendError, Undetermined
from statemend.repair import position, preflight, record
from statemend.repair.journal import Hook, Journal
from statemend.repair.lock import only_run
from statemend.repair.perform import UNDERNEATH
from statemend.repair.plan import Plan
from statemend.repair.record import UndoRecord
from statemend.repair.run import Run, RunFolder, State
from statemend.repair.store_identity import has_tables_of
from statemend.repair.takeback import check_untouched_since, look_ahead, take_back
from statemend.repair.transaction import Before
from statemend.repair.verify import advice, status
from statemend.store.bundle import inspect
from statemend.store.connection import Store, open_for_audit
from statemend.store.snapshot import take_with_content
from statemend.store.writing import RepairConnection, open_for_repair


def undo(run_dir: Path, *, now: float | None = None, steps: Hook | None = None) -> Run:
    """Take the run in ``run_dir`` back.

    One transaction applies the inverse of what the run recorded, and proves by digest that each row is what
    it was, and the whole store too if nothing else changed since. A snapshot is taken first. A run that is
    not in the store is left alone, and the result says so.

    Raises ``Refused`` when a row changed since, a lease is live or a process holds the store, ``RolledBack``
    when it was begun and taken back, ``Undetermined`` when something cannot be read.
    """
    folder = RunFolder(run_dir)
    plan = folder.load_plan()
    at = time.time() if now is None else now
    store = Path(plan.store.path)
    inspect(store)
    with only_run(plan.store.path):
        run = status(folder, plan)
        if run.state in (State.NOT_APPLIED, State.BEFORE_COMMIT, State.UNDONE):
            return run
        kept, changeset = record.load(folder.undo, folder.changeset)
        whole = _undo(store, plan, folder, kept, changeset, folder.log(steps), at)
        note = "the whole store is what it was" if whole else "other rows were written since, and are kept"
        return folder.save(
            msgspec.structs.replace(
                run,
                state=State.UNDONE,
                advice=advice(State.UNDONE, folder, plan),
                notes=tuple(dict.fromkeys((*run.notes, note))),
                finished_at=at,
            )
        )


def _undo(
    store: Path, plan: Plan, folder: RunFolder, kept: UndoRecord, changeset: bytes, log: Journal, now: float
) -> bool:
    bundle = inspect(store)
    preflight.check_holders(bundle)
    preflight.check_log(bundle)
    preflight.check_writable(bundle)
    preflight.check_space(bundle, folder.path)
    asked, whole = False, False
    try:
        log.step("undo begun")
        with open_for_repair(store, foreign_keys=False) as connection:
            version = connection.data_version()
            _check_tables(connection.store, plan, folder)
            check_untouched_since(connection, kept)
            preflight.check_leases(connection.store, now)
            snapshot, content = take_with_content(connection.raw, connection.store, _unused(folder))
            log.step("undo snapshot verified", path=snapshot.path, digest=snapshot.digest)
            before = look_ahead(connection, kept, content)
            try:
                with connection.fence():
                    whole = _change(connection, plan, kept, changeset, before, log, now, version)
            finally:
                asked = connection.asked_to_commit
    except UNDERNEATH as error:
        if not asked:
            raise RolledBack(f"{store}: the undo was taken back, the run still holds ({error})") from error
        _settle(store, kept, error)
    try:
        log.step("undone")
    except OSError as error:
        raise Undetermined(
            f"{folder.journal}: the run is undone, and that cannot be recorded ({error.strerror})"
        ) from error
    return whole


def _check_tables(store: Store, plan: Plan, folder: RunFolder) -> None:
    if not has_tables_of(store, plan.store):
        raise Refused(
            f"{store.path}: its tables changed since the run, as a newer Hermes changes them, so the run can "
            f"no longer be undone row by row; the store as it was before the run is {folder.snapshot}"
        )


def _change(
    connection: RepairConnection,
    plan: Plan,
    kept: UndoRecord,
    changeset: bytes,
    before: Before,
    log: Journal,
    now: float,
    version: int,
) -> bool:
    try:
        log.step("undo fence entered")
        if connection.data_version() != version:
            raise Refused(
                f"{connection.path}: another process wrote to it since the snapshot; stop it and try again"
            )
        preflight.check_identity(connection.store, plan)
        preflight.check_leases(connection.store, now)
        check_untouched_since(connection, kept)
        whole = take_back(connection, kept, changeset, before)
        log.step("undo proven")
    except (Refused, RolledBack):
        raise
    except (StatemendError, *UNDERNEATH) as error:
        raise RolledBack(
            f"{connection.path}: the undo was taken back, the run still holds ({error})"
        ) from error
    return whole


def _settle(store: Path, kept: UndoRecord, error: BaseException) -> None:
    """Find out what a failed COMMIT left. Returns if the undo is there after all."""
    try:
        with open_for_audit(store) as opened:
            where = position.of_rows(opened, kept.rows)
    except StatemendError as second:
        raise Undetermined(
            f"{store}: COMMIT of the undo failed ({error}), and what it left cannot be read ({second})"
        ) from error
    if where is not position.Position.OLD:
        raise RolledBack(f"{store}: the undo was taken back, the run still holds ({error})") from error


def _unused(folder: RunFolder) -> Path:
    """Where the snapshot before this undo goes: no earlier one is ever replaced."""
    number = 1
    while (place := folder.path / f"before-undo-{number}.db").exists():
        number += 1
    return place
