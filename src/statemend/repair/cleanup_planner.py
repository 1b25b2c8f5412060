"""Plans a cleanup: which of the sessions asked for may go, and why the others are kept."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

import statemend
from statemend.audit.context import Progress
from statemend.errors import Refused, UsageError
from statemend.evidence.inventory import find_home
from statemend.repair import digests
from statemend.repair.aged import DAY, select_aged
from statemend.repair.cleanup_check import Examination
from statemend.repair.cleanup_plan import LARGEST_RUN, CleanupPlan, Entry, Kept
from statemend.repair.marks import SUBSTRING_INDEX
from statemend.repair.plan import StoreIdentity
from statemend.repair.preserved import collect
from statemend.repair.reexport import resolve
from statemend.repair.store_identity import INSTANCE, SCHEMA_OBJECTS, schema_digest
from statemend.store.bundle import Bundle, inspect
from statemend.store.connection import Store, open_for_audit
from statemend.store.copies import copy_store, private_folder
from statemend.store.writing import open_for_repair

_ID_LENGTH = 16


def make_cleanup_plan(
    path: Path,
    *,
    sessions: Sequence[str] = (),
    older_than: float | None = None,
    artifacts: Sequence[Path],
    runs: Sequence[Path] = (),
    now: float | None = None,
    progress: Progress | None = None,
) -> CleanupPlan:
    """Plan to delete sessions of the home or store at ``path``; nothing is changed.

    Either ``sessions`` are named, by id or a beginning of it that no other shares, or those are chosen that
    ended, and were last written to, more than ``older_than`` days ago. ``artifacts`` are folders and files
    with their exports. ``runs`` are folders of repairs that must be verified first, beside those at the home.
    ``now`` is epoch seconds.

    Raises ``UsageError`` for a request that cannot be met, ``StoreHeld`` for a store in use, ``Undetermined``
    for one that cannot be read. A session that may not go is in the plan as kept, with the reason.
    """
    if bool(sessions) is (older_than is not None):
        raise UsageError("name the sessions, or an age in days, and not both")
    if older_than is not None and not older_than >= 0:
        raise UsageError(f"{older_than!r}: an age in days cannot be less than nothing")
    for named in (path, *artifacts, *runs):
        check_text(str(named))
    at = time.time() if now is None else now
    home = find_home(Path(os.path.abspath(path)))
    beside = [Path(os.path.abspath(each)) for each in artifacts]
    bundle = inspect(Path(home.store))
    shelf = collect(beside, bundle)
    with open_for_audit(Path(home.store)) as store:
        examination = Examination(store, now=at, index_fits=cache(lambda: index_fits(bundle)))
        kept: list[Kept] = []
        if older_than is None:
            wanted = list(dict.fromkeys(resolve(store, each) for each in sessions))
            selection = "named"
        else:
            aged = select_aged(store, examination.graph, at - older_than * DAY)
            wanted = list(aged.sessions)
            kept += [Kept(plain(each.session), each.reason) for each in aged.kept]
            selection = f"ended more than {older_than:g} days ago"
        entries: list[Entry] = []
        size = 0
        for number, session_id in enumerate(wanted, start=1):
            if progress is not None:
                progress(f"comparing session {number} of {len(wanted)} with its exports")
            try:
                check_text(session_id)
                entry = examination.entry(session_id, shelf.find)
                size += sum(member.size for member in entry.members)
                if size > LARGEST_RUN:
                    raise Refused(
                        f"with it this plan would delete more than {LARGEST_RUN >> 20} MiB: "
                        "plan again afterwards"
                    )
            except (Refused, UsageError) as error:
                kept.append(Kept(plain(session_id), str(error)))
            else:
                entries.append(entry)
        identity = identity_of(store, home.store)
    plan = CleanupPlan(
        id="",
        made_at="",
        tool=f"statemend {statemend.__version__}",
        home=home.root,
        store=identity,
        selection=selection,
        artifacts=tuple(map(str, beside)),
        runs=tuple(os.path.abspath(each) for each in runs),
        entries=tuple(entries),
        kept=tuple(kept),
    )
    return sealed(plan, at)


def sealed(plan: CleanupPlan, at: float) -> CleanupPlan:
    """The plan with the id that its content gives it, and the time (epoch seconds) that it was made at."""
    digest = hashlib.sha256(msgspec.json.encode(plan)).hexdigest()
    made_at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
    return msgspec.structs.replace(plan, id=digest[:_ID_LENGTH], made_at=made_at)


def identity_of(store: Store, path: str) -> StoreIdentity:
    """What a plan for the store holds to know it again."""
    instance = store.value(INSTANCE) if store.table_exists("state_meta") else None
    return StoreIdentity(
        path=path,
        schema_digest=schema_digest(store.rows(SCHEMA_OBJECTS)),
        instance=None if instance is None else str(instance),
    )


def index_fits(bundle: Bundle) -> bool:
    """Whether the substring index fits its messages as this SQLite reads it, asked of a private copy."""
    with private_folder() as private, open_for_repair(copy_store(bundle, private)) as copy:
        return digests.search_health(copy).get(SUBSTRING_INDEX, "ok") == "ok"


def plain(value: str) -> str:
    """A text as a plan can hold it: what is not valid in UTF-8 escaped."""
    return value.encode("utf-8", "backslashreplace").decode()


def check_text(value: str) -> None:
    """Raise ``UsageError`` for a text that no plan can hold."""
    if plain(value) != value:
        raise UsageError(f"{plain(value)}: not valid in UTF-8, so no plan can hold it")
