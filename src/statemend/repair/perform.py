"""Carries a plan out on one store: snapshot, fence, change, proof, undo record, commit, in that order.

A rehearsal and an apply differ only in the store and the folder that they give to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import msgspec

from statemend.errors import Refused, RolledBack, StatemendError, Undetermined
from statemend.repair import position, preflight, texts
from statemend.repair.journal import Journal
from statemend.repair.plan import Plan
from statemend.repair.record import UndoRecord
from statemend.repair.run import RunFolder
from statemend.repair.texts import Texts
from statemend.repair.transaction import Before, Outcome, carry_out, check_fresh, look_ahead
from statemend.store import durable
from statemend.store.bundle import inspect
from statemend.store.connection import open_for_audit
from statemend.store.snapshot import Snapshot, take_with_content
from statemend.store.writing import RepairConnection, open_for_repair

#: What can go wrong underneath: SQLite, the disk, a value that is none.
UNDERNEATH = (apsw.Error, OSError, ValueError)

#: Seconds. Hermes 0.19 gives a write up after about 17.
LONG_LOCK = 10.0


class Performed(msgspec.Struct, frozen=True):
    """A change that was committed."""

    snapshot: Snapshot
    undo: UndoRecord
    notes: tuple[str, ...]
    locked_seconds: float


def perform(
    plan: Plan, store: Path, folder: RunFolder, journal: Journal, *, now: float, rehearsed: str | None = None
) -> Performed:
    """Carry out ``plan`` on the store at ``store``, with everything about it in ``folder``. ``rehearsed`` is
    the digest of the store that a rehearsal of it made.

    What must still hold afterwards is read before the fence, since other writers have to wait for that. A
    write that comes in between is refused inside it.

    Raises ``Refused`` (and ``StoreHeld``) when something stands in the way, ``RolledBack`` when the change
    was begun and taken back, ``Undetermined`` when the system does not let it be told which of the two.
    Unless it returns, or raises the last, the store's rows are what they were.
    """
    bundle = inspect(store)
    preflight.check_holders(bundle)
    preflight.check_writable(bundle)
    preflight.check_space(bundle, folder.path)
    found = texts.find(plan, store)
    with journalled(folder):
        journal.step("preflight passed", size=bundle.main.size)
    outcome: Outcome | None = None
    asked = False
    try:
        with open_for_repair(store, known_as=plan.store.path) as connection:
            version = connection.data_version()
            notes = tuple(preflight.dead_leases(connection.store, now))
            snapshot, content = take_with_content(connection.raw, connection.store, folder.snapshot)
            with journalled(folder):
                journal.step("snapshot verified", sha256=snapshot.sha256, digest=snapshot.digest)
            before = look_ahead(connection, plan, content)
            try:
                with connection.fence():
                    outcome = _change(
                        connection,
                        plan,
                        folder,
                        journal,
                        before,
                        now=now,
                        version=version,
                        rehearsed=rehearsed,
                        found=found,
                    )
            finally:
                asked = connection.asked_to_commit
    except UNDERNEATH as error:
        if not asked or outcome is None:
            raise RolledBack(
                f"{store}: the change was taken back, the store is as it was ({said(error)})"
            ) from error
        settle(store, outcome.undo, error)
    return Performed(snapshot, outcome.undo, notes, connection.locked_seconds)


def _change(
    connection: RepairConnection,
    plan: Plan,
    folder: RunFolder,
    journal: Journal,
    before: Before,
    *,
    now: float,
    version: int,
    rehearsed: str | None,
    found: Texts,
) -> Outcome:
    """What happens inside the fence. Every failure leaves as ``Refused`` or ``RolledBack``."""
    try:
        journal.step("fence entered")
        check_fresh(connection, plan, now=now, data_version=version)
        journal.step("plan fresh")
        outcome = carry_out(
            connection, plan, before=before, journal=journal, rehearsed=rehearsed, texts=found
        )
        journal.step("changed and proven", digest=outcome.undo.digest_after)
        keep(folder, outcome)
        journal.step("undo record written", changeset=outcome.undo.changeset)
    except (Refused, RolledBack):
        raise
    except (StatemendError, *UNDERNEATH) as error:
        raise RolledBack(
            f"{connection.path}: the change was taken back, the store is as it was ({said(error)})"
        ) from error
    return outcome


def keep(folder: RunFolder, outcome: Outcome) -> None:
    """Put on the disk what an undo needs. The undo record is whole where its file is there, and the changeset
    then is too."""
    durable.write_new(folder.changeset, outcome.changeset)
    durable.replace(folder.undo, msgspec.json.format(msgspec.json.encode(outcome.undo), indent=2) + b"\n")


def settle(store: Path, undo: UndoRecord, error: BaseException) -> None:
    """Find out what a failed COMMIT left. Returns if the change is there after all."""
    try:
        with open_for_audit(store) as opened:
            where = position.of_run(opened, undo)
    except StatemendError as second:
        raise Undetermined(
            f"{store}: COMMIT failed ({said(error)}), and what it left cannot be read ({second}); "
            "run `statemend verify` on the run when the disk is well"
        ) from error
    if where is not position.Position.NEW:
        raise RolledBack(
            f"{store}: COMMIT failed and was taken back, the store is as it was ({said(error)})"
        ) from error


@contextmanager
def journalled(folder: RunFolder) -> Iterator[None]:
    """Nothing was begun yet when the journal cannot be written."""
    try:
        yield
    except OSError as error:
        raise Undetermined(
            f"{folder.journal}: cannot be written ({error.strerror}); nothing was changed"
        ) from error


def said(error: BaseException) -> str:
    """The words of an error, in one line of bearable length."""
    return " ".join(str(error).split())[:300] or type(error).__name__
