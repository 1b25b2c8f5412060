"""Carries a cleanup out on one store: snapshot, fence, checks, deletion, proof, undo record, commit, in that
order. A rehearsal and the real thing differ only in the store and the folder that they give to it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from statemend.errors import Refused, RolledBack, StatemendError
from statemend.repair import cleanup_fence, preflight, transaction
from statemend.repair.cleanup_check import Examination, Holding, still_holds
from statemend.repair.cleanup_plan import CleanupPlan, Kept
from statemend.repair.cleanup_rows import with_views
from statemend.repair.journal import Journal
from statemend.repair.marks import SUBSTRING_INDEX
from statemend.repair.perform import UNDERNEATH, journalled, keep, said, settle
from statemend.repair.preserved import have_on_disk
from statemend.repair.receipt import Collapsed, Deleted, Receipt
from statemend.repair.record import UndoRecord
from statemend.repair.run import RunFolder
from statemend.repair.verify import CLEANUP
from statemend.store import durable
from statemend.store.bundle import inspect
from statemend.store.snapshot import Snapshot, take_from
from statemend.store.writing import RepairConnection, open_for_repair


class CleanupFolder(RunFolder):
    """The folder of a cleanup: that of a run, with the cleanup plan and the receipt. ``promise`` is the
    receipt as it will be, on the disk before the commit."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.cleanup = path / CLEANUP
        self.promise = path / "receipt.promised.json"
        self.receipt = path / "receipt.json"


class Performed(msgspec.Struct, frozen=True):
    """A deletion that was committed."""

    snapshot: Snapshot
    undo: UndoRecord
    receipt: Receipt
    notes: tuple[str, ...]


class NothingLeftError(Refused):
    """Inside the fence, every session of the plan turned out to be one to keep. ``kept`` says why."""

    def __init__(self, path: str, kept: tuple[Kept, ...]) -> None:
        super().__init__(f"{path}: nothing was deleted, every session of the plan is kept")
        self.kept = kept


def perform(
    plan: CleanupPlan, store: Path, folder: CleanupFolder, journal: Journal, *, now: float
) -> Performed:
    """Carry out ``plan`` on the store at ``store``, with everything about it in ``folder``.

    Raises ``Refused`` when something stands in the way (``NothingLeftError`` when no session may go),
    ``RolledBack`` when the deletion was begun and taken back, ``Undetermined`` when the system does not let
    it be told which of the two. Unless it returns, or raises the last, the store's rows are what they were.
    """
    bundle = inspect(store)
    preflight.check_holders(bundle)
    preflight.check_writable(bundle)
    preflight.check_space(bundle, folder.path)
    with journalled(folder):
        journal.step("preflight passed", size=bundle.main.size)
    done: tuple[transaction.Outcome, Receipt] | None = None
    asked = False
    try:
        with open_for_repair(store, known_as=plan.store.path) as connection, with_views(connection):
            version = connection.data_version()
            notes = tuple(preflight.dead_leases(connection.store, now))
            snapshot = take_from(connection.raw, connection.store, folder.snapshot)
            with journalled(folder):
                journal.step("snapshot verified", sha256=snapshot.sha256, digest=snapshot.digest)
            try:
                with connection.fence():
                    done = _change(connection, plan, folder, journal, snapshot, now=now, version=version)
            finally:
                asked = connection.asked_to_commit
    except UNDERNEATH as error:
        if not asked or done is None:
            raise RolledBack(
                f"{store}: the deletion was taken back, the store is as it was ({said(error)})"
            ) from error
        settle(store, done[0].undo, error)
    return Performed(snapshot, done[0].undo, done[1], notes)


def _change(
    connection: RepairConnection,
    plan: CleanupPlan,
    folder: CleanupFolder,
    journal: Journal,
    snapshot: Snapshot,
    *,
    now: float,
    version: int,
) -> tuple[transaction.Outcome, Receipt]:
    """What happens inside the fence. Every failure leaves as ``Refused`` or ``RolledBack``."""
    try:
        journal.step("fence entered")
        if connection.data_version() != version:
            raise Refused(
                f"{connection.path}: another process wrote to it since the snapshot; "
                "stop it and run this again"
            )
        preflight.check_identity(connection.store, plan.envelope())
        before = transaction.look(connection)
        holds = check(connection, plan, before, now=now)
        journal.step(
            "checked again", deleted=len(holds.entries), collapsed=len(holds.collapses), kept=len(holds.kept)
        )
        doomed = cleanup_fence.Doomed(connection, holds.entries, holds.collapses)
        for member in doomed.members.values():
            have_on_disk(member.preserved)
        outcome = cleanup_fence.carry_out(
            connection,
            doomed,
            before=before,
            plan=plan.envelope().digest,
            digest_before=snapshot.digest,
        )
        journal.step("changed and proven", digest=outcome.undo.digest_after)
        receipt = _receipt(plan, doomed, holds.kept, outcome, snapshot, now)
        durable.write_new(folder.promise, _json(receipt))
        keep(folder, outcome)
        journal.step("undo record written", changeset=outcome.undo.changeset)
    except (Refused, RolledBack):
        raise
    except (StatemendError, *UNDERNEATH) as error:
        raise RolledBack(
            f"{connection.path}: the deletion was taken back, the store is as it was ({said(error)})"
        ) from error
    return outcome, receipt


def check(
    connection: RepairConnection, plan: CleanupPlan, before: transaction.Before, *, now: float
) -> Holding:
    """What may be carried out at this moment, and what is kept. Raises ``NothingLeftError``."""
    fits = before.search.get(SUBSTRING_INDEX, "ok") == "ok"
    examination = Examination(connection.store, now=now, index_fits=lambda: fits)
    holds = still_holds(examination, plan)
    if holds.nothing:
        raise NothingLeftError(connection.path, holds.kept)
    return holds


def _receipt(
    plan: CleanupPlan,
    doomed: cleanup_fence.Doomed,
    kept: tuple[Kept, ...],
    outcome: transaction.Outcome,
    snapshot: Snapshot,
    now: float,
) -> Receipt:
    asked: dict[str, str] = {}
    for entry in doomed.entries:
        for member in entry.members:
            asked.setdefault(member.session, entry.session)
    ancestors = {each.session: each for entry in doomed.entries for each in entry.ancestors}
    return Receipt(
        plan=plan.id,
        plan_digest=plan.digest,
        tool=plan.tool,
        store=plan.store.path,
        deleted_at=now,
        deleted=tuple(
            Deleted(
                session=member.session,
                asked=asked[member.session],
                rows=member.rows,
                digest=member.digest,
                preserved=member.preserved,
            )
            for member in doomed.members.values()
        ),
        collapsed=tuple(
            Collapsed(
                session=session_id,
                copies=len(collapse.copies),
                messages=collapse.messages,
                size=collapse.size,
                digest=collapse.digest,
                display=doomed.shows[session_id].display,
                active=doomed.shows[session_id].active,
            )
            for session_id, collapse in doomed.collapses.items()
        ),
        rows=cleanup_fence.deleted_rows(outcome),
        detached=doomed.detached,
        ancestors=tuple(each for each in ancestors.values() if each.session not in doomed.members),
        kept=kept,
        snapshot=snapshot.sha256,
        changeset=outcome.undo.changeset,
        digest_before=outcome.undo.digest_before,
        digest_after=outcome.undo.digest_after,
    )


def _json(value: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
