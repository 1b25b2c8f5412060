"""A real release appends, edits, undoes and compacts while a repair is carried out and taken back.

``STATEMEND_RACE_ROUNDS`` sets how many rounds there are in all, 60 by default.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.hermes.home import HermesHome
from tests.hermes.writer import Writer, hide_holders
from tests.repair import plans

from statemend.audit.finding import finding_id
from statemend.errors import Refused, StatemendError, StoreHeld, VerificationFailed
from statemend.repair.apply import apply
from statemend.repair.perform import perform
from statemend.repair.plan import Plan
from statemend.repair.run import Run, RunFolder, State
from statemend.repair.undo import undo
from statemend.repair.verify import verify

Homes = Callable[..., HermesHome]

ROUNDS = int(os.environ.get("STATEMEND_RACE_ROUNDS", "60"))
RELEASES = ["0.19.0", "0.22.2"]
#: Rounds on one home. A new one starts small again, and is looked through at its end.
PER_HOME = 25

BUSY, SECOND, THIRD = (f"20260801_09000{number}_aaaaaa" for number in range(3))
LOST = "20260801_090100_bbbbbb"
OTHERS = (SECOND, THIRD)

APPLY = (
    "preflight passed",
    "snapshot verified",
    "fence entered",
    "plan fresh",
    "statements carried out",
    "changed and proven",
    "undo record written",
)
UNDO = ("undo begun", "undo snapshot verified", "undo fence entered", "undo proven")


class Arena:
    """A home on which a release writes, with a session that lost its row, mended in round after round.

    A round's plan makes that row, sets the title of the session that the release writes to, and a mark on its
    first message: three rows that must change together.
    """

    def __init__(self, home: HermesHome, folder: Path, seed: str) -> None:
        self.home = home
        self.folder = folder
        self.random = random.Random(seed)
        for session in (BUSY, *OTHERS, LOST):
            home.create_session(session)
            home.title(session, f"Chat {session}")
        self.writer = Writer(home, (BUSY, *OTHERS), seed)
        for session in (BUSY, *OTHERS):
            self.writer.begin(session)
        for number in range(3):
            home.exchange(LOST, number)
        self.lost = plans.row(home.state_db, "sessions", "id", LOST)
        self.kept = home.rows("SELECT * FROM messages WHERE session_id = ? ORDER BY id", LOST)
        ((self.first,),) = home.rows("SELECT MIN(id) FROM messages WHERE session_id = ?", BUSY)
        # This index of the newest release shows a message only while its session has a row.
        newest = home.release.at_least("0.22")
        self.reindex = ["messages_fts_trigram"] if newest else []
        self.number = 0

    def leave(self) -> None:
        """The release closes its store. It opens it again when it next has to do with it."""
        self.home.process.call("close", path=None)

    def plan(self) -> Plan:
        """Lose the row again, leave the store, and plan to mend it."""
        self.number += 1
        self.home.rows("PRAGMA foreign_keys = OFF")
        self.home.rows("DELETE FROM sessions WHERE id = ?", LOST)
        self.home.rows("PRAGMA foreign_keys = ON")
        self.leave()
        store, number = self.home.state_db, self.number
        step = plans.step(
            plans.insert("sessions", "id", self.lost),
            plans.update(store, "sessions", ("id", BUSY), {"title": f"Round {number}"}),
            plans.update(store, "messages", ("id", self.first), {"token_count": number}),
            reindex=self.reindex,
            sessions=[LOST, BUSY],
            finding=finding_id("ORP001", LOST),
        )
        return plans.plan(store, step)

    def changed(self) -> bool:
        """Whether this round's change is in the store: all of it is, or none."""
        ((made,),) = self.home.rows("SELECT COUNT(*) FROM sessions WHERE id = ?", LOST)
        ((title,),) = self.home.rows("SELECT title FROM sessions WHERE id = ?", BUSY)
        ((mark,),) = self.home.rows("SELECT token_count FROM messages WHERE id = ?", self.first)
        rows = {made == 1, title == f"Round {self.number}", mark == self.number}
        assert len(rows) == 1, f"half of it: {made} {title} {mark}"
        assert self.home.rows("SELECT * FROM messages WHERE session_id = ? ORDER BY id", LOST) == self.kept
        return rows.pop()

    def carry_out(self, plan: Plan, hook: Callable[[str], None]) -> Path:
        """The change without rehearsal and audit; the folder of its run."""
        folder = RunFolder.create(self.folder / f"run-{self.number}", plan)
        log = folder.log(hook)
        perform(plan, self.home.state_db, folder, log, now=self.home.now)
        log.step("committed")
        return folder.path

    def apply(self, plan: Plan, hook: Callable[[str], None]) -> Path:
        """The whole verb; the folder of its run."""
        file = plans.write(plan, self.folder / f"plan-{self.number}.json")
        run = apply(file, run_dir=self.folder / f"run-{self.number}", now=self.home.now, steps=hook)
        assert run.state is State.APPLIED
        return Path(run.folder)

    def hook(self, steps: tuple[str, ...], how: str, sessions: tuple[str, ...]) -> Callable[[str], None]:
        """What the writer does at which step. ``before`` has it commit between snapshot and fence, ``inside``
        try to while the fence stands, ``free`` write whenever it comes to."""
        fence = next(number for number, step in enumerate(steps) if step.endswith("fence entered"))
        bursts = {step: self.random.randrange(3) for step in steps[fence:] if how != "before"}
        if how == "inside":
            bursts[steps[fence]] = 2
        if how == "free":
            bursts |= {step: self.random.randrange(4) for step in steps[:fence]}

        def reached(name: str) -> None:
            if how == "before" and name == steps[fence - 1]:
                self.writer.start(2, sessions)
                self.writer.wait()
            if name in ("committed", "undone"):
                self.writer.wait()
            self.writer.start(bursts.get(name, 0), sessions)

        return reached


def settled(arena: Arena, change: Callable[[], Any]) -> StatemendError | None:
    """What the change ended with, once the writer is done."""
    error = None
    try:
        change()
    except StatemendError as caught:
        error = caught
    arena.writer.wait()
    assert not arena.writer.errors
    return error


def race(arena: Arena) -> Iterator[str]:
    """One round; yields how the change and, if it is there, taking it back ended."""
    plan = arena.plan()
    arena.home.session_ids()  # the release has the store open from now on
    how = arena.random.choice(("before", "inside", "inside", "free", "free"))
    sessions = arena.random.choice((OTHERS, arena.writer.sessions))
    carry = arena.apply if arena.random.random() < 0.2 else arena.carry_out
    error = settled(arena, lambda: carry(plan, arena.hook(APPLY, how, sessions)))
    assert arena.changed() is (error is None), error
    assert error is None or isinstance(error, Refused), error
    if how != "free":
        assert (error is None) is (how == "inside"), error
    yield f"apply {'done' if error is None else 'refused'}"
    if error is not None:
        return
    back = arena.random.choice(("before", "inside", "inside", "free"))
    sessions = arena.random.choice((OTHERS, OTHERS, arena.writer.sessions))
    folder = arena.folder / f"run-{arena.number}"
    error = settled(arena, lambda: undo(folder, now=arena.home.now, steps=arena.hook(UNDO, back, sessions)))
    assert arena.changed() is (error is not None), error
    assert error is None or isinstance(error, Refused), error
    if back == "before":
        assert error is not None
    yield f"undo {'done' if error is None else 'refused'}"


@contextmanager
def arena(homes: Homes, release: str, folder: Path, name: str) -> Iterator[Arena]:
    """A new home to race on, looked through at the end."""
    home = homes(release, name)
    place = folder / f"{name}-runs"
    place.mkdir()
    made = Arena(home, place, f"{release} {name}")
    try:
        yield made
        plan = made.plan()  # with the row that is lost last put back, nothing may be wrong
        made.carry_out(plan, lambda step: None)
        made.writer.check()
    finally:
        made.writer.stop()
        home.stop()


@pytest.mark.parametrize("release", RELEASES)
def test_the_fence_alone_keeps_every_message(
    hermes_home: Homes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: str
) -> None:
    hide_holders(monkeypatch)
    rounds, ended, done = ROUNDS // len(RELEASES), Counter[str](), 0
    for start in range(0, rounds, PER_HOME):
        with arena(hermes_home, release, tmp_path, f"home-{start}") as ring:
            for _ in range(min(PER_HOME, rounds - start)):
                ended.update(race(ring))
            done += ring.writer.done
    print(f"{release}: {rounds} rounds, {done} writes meanwhile, {dict(sorted(ended.items()))}")
    assert done > rounds
    if rounds >= PER_HOME:
        assert set(ended) == {"apply done", "apply refused", "undo done", "undo refused"}


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_that_has_the_store_open_is_named_and_not_disturbed(
    hermes_home: Homes, tmp_path: Path, release: str
) -> None:
    with arena(hermes_home, release, tmp_path, "home") as ring:
        ring.carry_out(ring.plan(), lambda step: None)
        mended = ring.folder / "run-1"
        held = f"pid {ring.home.process.pid}"
        ring.writer.start(12)
        with pytest.raises(StoreHeld, match=held):
            undo(mended, now=ring.home.now)
        ring.writer.wait()
        assert ring.changed()
        plan = ring.plan()
        ring.home.session_ids()
        ring.writer.start(12)
        with pytest.raises(StoreHeld, match=held):
            ring.apply(plan, lambda step: None)
        ring.writer.wait()
        assert not ring.changed()
        ring.leave()


@pytest.mark.parametrize("step", ["snapshot verified", "fence entered", "undo record written", "committed"])
@pytest.mark.parametrize("release", RELEASES)
def test_a_release_that_starts_during_apply(
    hermes_home: Homes, tmp_path: Path, release: str, step: str
) -> None:
    with arena(hermes_home, release, tmp_path, "home") as ring:
        plan = ring.plan()

        def reached(name: str) -> None:
            if name == step:
                ring.writer.start(2, OTHERS)
            if name in ("snapshot verified", "committed"):
                ring.writer.wait()

        error = settled(ring, lambda: ring.apply(plan, reached))
        in_store = step != "snapshot verified"
        assert ring.changed() is in_store
        ring.leave()
        if not in_store:
            assert isinstance(error, Refused)
            return
        folder = ring.folder / "run-1"
        assert isinstance(error, VerificationFailed)
        assert f"pid {ring.home.process.pid}" in str(error)
        assert verify(folder, now=ring.home.now).state is State.AFTER_COMMIT
        assert ring.apply(plan, lambda name: None) == folder


@pytest.mark.parametrize("step", ["undo snapshot verified", "undo fence entered", "undo proven", "undone"])
@pytest.mark.parametrize("release", RELEASES)
def test_a_release_that_starts_during_undo(
    hermes_home: Homes, tmp_path: Path, release: str, step: str
) -> None:
    with arena(hermes_home, release, tmp_path, "home") as ring:
        folder = ring.apply(ring.plan(), lambda name: None)

        def reached(name: str) -> None:
            if name == step:
                ring.writer.start(2, OTHERS)
            if name in ("undo snapshot verified", "undone"):
                ring.writer.wait()

        ended: list[Run] = []
        error = settled(ring, lambda: ended.append(undo(folder, now=ring.home.now, steps=reached)))
        taken_back = step != "undo snapshot verified"
        assert ring.changed() is not taken_back
        ring.leave()
        if taken_back:
            assert error is None
            assert ended[0].state is State.UNDONE
        else:
            assert isinstance(error, Refused)
        assert undo(folder, now=ring.home.now).state is State.UNDONE
