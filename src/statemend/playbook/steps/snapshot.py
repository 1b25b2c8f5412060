"""``snapshot``: a verified copy of the store."""

from __future__ import annotations

from pathlib import Path

from statemend.errors import StoreHeld
from statemend.evidence.inventory import find_home
from statemend.playbook.env import Env, Outcome
from statemend.playbook.model import Snapshot
from statemend.report.playbook_run import StepState
from statemend.report.text import size
from statemend.store.bundle import inspect
from statemend.store.connection import StoreFault
from statemend.store.copies import copy_store, private_folder
from statemend.store.holders import find_holders
from statemend.store.snapshot import take


def run(step: Snapshot, env: Env) -> Outcome:
    """Passes when the copy is there and proven. The store's own folder is only read."""
    bundle = inspect(Path(find_home(env.home).store))
    if bundle.fault is not None:
        raise StoreFault(bundle)
    holders = find_holders(bundle)
    if holders:
        raise StoreHeld(f"{bundle.path}: held by {', '.join(map(str, holders))}; stop it and run this again")
    if env.dry:
        return Outcome(
            state=StepState.PLANNED, summary=f"would copy {bundle.path} ({size(bundle.main.size)})"
        )
    with private_folder() as private:
        taken = take(copy_store(bundle, private), env.place / "snapshot.db")
    return Outcome(
        summary=f"{size(taken.size)}, verified by digest",
        facts={"sha256": taken.sha256, "digest": taken.digest, "size": taken.size},
    )
