"""Plans a collapse: in which sessions archived rows may go that only repeat others."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import statemend
from statemend.audit.context import Progress
from statemend.errors import Refused, UsageError
from statemend.evidence.inventory import find_home
from statemend.repair.cleanup_check import Examination
from statemend.repair.cleanup_plan import LARGEST_RUN, CleanupPlan, Collapse, Kept
from statemend.repair.cleanup_planner import check_text, identity_of, index_fits, plain, sealed
from statemend.repair.reexport import resolve
from statemend.store.bundle import inspect
from statemend.store.connection import Store, open_for_audit
from statemend.store.repeats import multiplied


def make_collapse_plan(
    path: Path,
    *,
    sessions: Sequence[str] = (),
    runs: Sequence[Path] = (),
    now: float | None = None,
    progress: Progress | None = None,
) -> CleanupPlan:
    """Plan to collapse archived copies in the home or store at ``path``; nothing is changed.

    Where no ``sessions`` are named (by id or a beginning of it that no other shares) those are chosen in
    which copies multiplied, as rule MSG003 tells. ``runs`` are folders of repairs that must be verified
    first, beside those at the home. ``now`` is epoch seconds.

    Raises ``UsageError`` for a request that cannot be met, ``StoreHeld`` for a store in use, ``Undetermined``
    for one that cannot be read. A session that is to stay as it is is in the plan as kept, with the reason.
    """
    for named in (path, *runs):
        check_text(str(named))
    at = time.time() if now is None else now
    home = find_home(Path(os.path.abspath(path)))
    bundle = inspect(Path(home.store))
    with open_for_audit(Path(home.store)) as store:
        examination = Examination(store, now=at, index_fits=cache(lambda: index_fits(bundle)))
        collapses: list[Collapse] = []
        kept: list[Kept] = []
        room = LARGEST_RUN
        for session_id in _wanted(store, sessions):
            if progress is not None:
                progress(f"comparing the rows of {plain(session_id)}")
            try:
                check_text(session_id)
                collapse = examination.collapse(session_id, room=room)
            except (Refused, UsageError) as error:
                kept.append(Kept(plain(session_id), str(error)))
            else:
                collapses.append(collapse)
                room -= collapse.size
        identity = identity_of(store, home.store)
    plan = CleanupPlan(
        id="",
        made_at="",
        tool=f"statemend {statemend.__version__}",
        home=home.root,
        store=identity,
        selection="copies in the sessions named" if sessions else "copies where they multiplied",
        runs=tuple(os.path.abspath(each) for each in runs),
        collapses=tuple(collapses),
        kept=tuple(kept),
    )
    return sealed(plan, at)


def _wanted(store: Store, sessions: Sequence[str]) -> Iterator[str]:
    if sessions:
        yield from dict.fromkeys(resolve(store, each) for each in sessions)
    else:
        yield from (found.session_id for found in multiplied(store))
