"""What stands in the way of a change: looked at before anything is written, and again inside the fence."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from statemend.errors import Refused, StoreHeld
from statemend.repair.plan import Plan
from statemend.repair.store_identity import INSTANCE, has_tables_of
from statemend.store.bundle import Bundle
from statemend.store.connection import Store
from statemend.store.holders import Lease, find_holders, leases
from statemend.store.wal import read_log

_MARGIN = 32 * 1024 * 1024
_FAR = datetime.max.replace(tzinfo=UTC).timestamp() - 86400
#: No release asks for a lease of this length (seconds).
_DAY = 86400.0


def check_holders(bundle: Bundle) -> None:
    """Raise ``StoreHeld`` naming each process that has the store open for writing."""
    holders = find_holders(bundle)
    if holders:
        named = ", ".join(map(str, holders))
        raise StoreHeld(f"{bundle.path}: held by {named}; stop it and run this again")


def check_log(bundle: Bundle) -> None:
    """Raise ``Refused`` for a log of which SQLite would not read all, and for a journal that is not of the
    store as it is now. To write to the store overwrites them, and their rows may be nowhere else."""
    header = bundle.header
    if bundle.hot_journal and header is not None and header.journal == "wal":
        raise Refused(
            f"{bundle.path}: a rollback journal lies beside it that may be older than the store (STO002); "
            "copy the folder and keep it, then move the journal away"
        )
    if bundle.wal is None or not bundle.wal_content:
        return
    log = read_log(bundle.wal, whole=True)
    known = log.header and (header is None or header.page_size == log.page_size)
    if not known or log.lost or not log.valid:
        raise Refused(
            f"{bundle.wal.path}: SQLite does not read all of this log, and its rows may be nowhere else "
            "(STO002); copy the folder and keep it, then let Hermes open the store once"
        )


def check_writable(bundle: Bundle) -> None:
    """Raise ``Refused`` unless the store and its folder may be written by this user, and the store has one
    name: SQLite keeps the log of a store beside the name by which it is opened, so one that lies beside
    another name is not seen, and overrides the change later."""
    folder = Path(bundle.main.path).parent
    names = os.stat(bundle.main.path).st_nlink
    if names > 1:
        raise Refused(
            f"{bundle.path}: has {names} names (hard links), so a log of it may lie elsewhere; repair a copy "
            "that has one name, or remove the other names"
        )
    if not os.access(bundle.main.path, os.W_OK):
        raise Refused(f"{bundle.path}: may not be written by this user; run statemend as its owner")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Refused(
            f"{folder}: SQLite needs to write beside the store, and may not; see to its permissions"
        )


def check_space(bundle: Bundle, folder: Path) -> None:
    """Raise ``Refused`` with numbers unless there is room for a snapshot in ``folder`` and for a journal as
    large as the store beside it."""
    size = bundle.main.size + (bundle.wal.size if bundle.wal else 0)
    needs: dict[int, tuple[Path, int]] = {}
    for place in (folder, Path(bundle.main.path).parent):
        device = os.stat(place).st_dev
        first, already = needs.get(device, (place, _MARGIN))
        needs[device] = (first, already + size)
    for place, needed in needs.values():
        free = shutil.disk_usage(place).free
        if free < needed:
            raise Refused(
                f"{place}: snapshot and journal need {needed:,} bytes and {free:,} are free; make room, or "
                "name another folder for the run"
            )


def check_identity(store: Store, plan: Plan) -> None:
    """Raise ``Refused`` unless the store is the one that the plan was made for."""
    instance = store.value(INSTANCE) if store.schema.has("state_meta") else None
    if (None if instance is None else str(instance)) != plan.store.instance:
        raise Refused(f"{store.path}: the plan was made for another store ({plan.store.path})")
    if not has_tables_of(store, plan.store):
        raise Refused(
            f"{store.path}: its tables are not those that the plan was made for; make it anew with "
            "`statemend plan`"
        )


def check_leases(store: Store, now: float) -> None:
    """Raise ``Refused`` when a turn lease or a compression lock is live, or may be."""
    for lease in leases(store, now):
        if lease.live is not False:
            way_out = (
                "no release asks for so long: `statemend explain LIF004` says how to take it away"
                if lease.expires_at - now > _DAY
                else "wait for it or stop that process"
            )
            raise Refused(
                f"{store.path}: {lease.kind} on {lease.key!r}, held by {lease.holder}, expires "
                f"{_moment(lease.expires_at)}; {way_out}"
            )


def dead_leases(store: Store, now: float) -> Iterator[str]:
    """A sentence for each lease and lock that expired or whose process is gone. They are left as they are."""
    for lease in leases(store, now):
        if lease.live is False:
            yield _dead(lease)


def _dead(lease: Lease) -> str:
    return (
        f"the {lease.kind} on {lease.key!r}, held by {lease.holder} until {_moment(lease.expires_at)}, is no "
        "longer live; it was left as it is"
    )


def _moment(at: float) -> str:
    if not 0 <= at < _FAR:
        return "never" if at > 0 else "at an impossible time"
    return datetime.fromtimestamp(at, UTC).isoformat(sep=" ", timespec="seconds")
