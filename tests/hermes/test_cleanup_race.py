"""A real release appends, edits, undoes and compacts while a cleanup is carried out and taken back: nothing
that the file does not hold is ever deleted.

``STATEMEND_RACE_ROUNDS`` sets how many rounds there are in all, 20 by default.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.hermes.home import HermesHome
from tests.hermes.writer import Writer, hide_holders

from statemend.errors import Refused
from statemend.repair import cleanup, cleanup_plan
from statemend.repair.cleanup_perform import CleanupFolder, perform
from statemend.repair.cleanup_plan import CleanupPlan
from statemend.repair.cleanup_planner import make_cleanup_plan
from statemend.repair.reexport import reexport
from statemend.repair.run import RunFolder, State
from statemend.repair.undo import undo

Homes = Callable[..., HermesHome]
ROUNDS = int(os.environ.get("STATEMEND_RACE_ROUNDS", "20"))
RELEASES = ["0.19.0", "0.22.2"]
#: Rounds on one home. A new one starts small again, and is looked through at its end.
PER_HOME = 25
BUSY, GOING = "20260801_090001_aaaaaa", "20260801_090002_bbbbbb"
BEHIND_THE_SNAPSHOT = (
    "fence entered",
    "checked again",
    "changed and proven",
    "undo record written",
    "undo fence entered",
    "undo proven",
)


class Arena:
    """A home on which a release writes, with a session that is deleted and had back in round after round."""

    def __init__(self, home: HermesHome, folder: Path, seed: str) -> None:
        self.home = home
        self.folder = folder
        self.random = random.Random(seed)
        for session in (BUSY, GOING):
            home.create_session(session)
        self.writer = Writer(home, (BUSY, GOING), seed)
        for session in (BUSY, GOING):
            self.writer.begin(session)
        self.number = 0

    def plan(self) -> CleanupPlan:
        """End the session, leave the store, export the session whole, and plan to delete it."""
        self.number += 1
        self.home.store("reopen_session", GOING)
        self.home.end(GOING)
        self.home.process.call("close", path=None)
        exports = self.folder / f"exports-{self.number}"
        reexport(self.home.path, [GOING], exports, now=self.home.now)
        plan = make_cleanup_plan(
            self.home.path, sessions=[GOING], artifacts=[exports], now=self.home.now + 3600
        )
        assert [entry.session for entry in plan.entries] == [GOING], plan.kept
        return plan

    def held(self, plan: CleanupPlan) -> Counter[str]:
        """What the file that licenses the deletion holds."""
        line = json.loads(Path(plan.entries[0].members[0].preserved.path).read_bytes())
        return Counter(message["content"] for message in line["messages"])

    def hook(self, how: str, session: str) -> Callable[[str], None]:
        """When the writer writes: ``early``, before the snapshot, ``late``, behind it, ``inside``, while the
        fence stands, or ``free``, whenever it comes to. From the fence on it writes elsewhere only, for the
        session that goes has ended."""
        bursts = {step: self.random.randrange(3) for step in BEHIND_THE_SNAPSHOT if how in ("inside", "free")}
        if how == "inside":
            bursts |= {"fence entered": 2, "undo fence entered": 2}
        if how == "free":
            bursts |= {step: self.random.randrange(3) for step in ("preflight passed", "snapshot verified")}

        def reached(name: str) -> None:
            if (how, name) in (("early", "preflight passed"), ("late", "snapshot verified")):
                self.writer.start(2, (session,))
                self.writer.wait()
            self.writer.start(bursts.get(name, 0), (BUSY,))

        return reached

    def carry_out(self, plan: CleanupPlan, hook: Callable[[str], None]) -> bool:
        """The deletion without rehearsal and audit; whether it was not refused."""
        RunFolder.create(self.run, plan.envelope())
        folder = CleanupFolder(self.run)
        log = folder.log(hook)
        try:
            perform(plan, self.home.state_db, folder, log, now=self.home.now)
        except Refused:
            return False
        log.step("committed")
        return True

    def apply(self, plan: CleanupPlan, hook: Callable[[str], None]) -> bool:
        """The whole verb; whether it was not refused."""
        file = self.folder / f"plan-{self.number}.json"
        file.write_bytes(cleanup_plan.dump(plan))
        try:
            done = cleanup.apply(file, run_dir=self.run, now=self.home.now, steps=hook)
        except Refused:
            return False
        return done.receipt is not None

    @property
    def run(self) -> Path:
        return self.folder / f"run-{self.number}"

    def round(self) -> str:
        plan = self.plan()
        self.home.session_ids()  # the release has the store open from now on
        how = self.random.choice(("early", "early", "late", "inside", "inside", "free", "free"))
        session = BUSY if how in ("inside", "free") else self.random.choice((BUSY, GOING))
        # The audit behind a commit holds what it finds against the deletion, whoever wrote it.
        whole = how in ("early", "late") and self.random.random() < 0.2
        done = (self.apply if whole else self.carry_out)(plan, self.hook(how, session))
        self.writer.wait()
        assert not self.writer.errors
        gone = GOING not in self.home.session_ids()
        assert gone is done
        if how != "free":
            assert gone is (how == "inside" or (how, session) == ("early", BUSY)), how
        told = self.writer.told[GOING]
        rows = self.home.rows("SELECT content FROM messages WHERE session_id = ?", GOING)
        assert Counter(content for (content,) in rows) == (Counter() if gone else told.stored)
        if not gone:
            return f"{how} refused"
        assert self.held(plan) == +told.stored
        assert undo(self.run, now=self.home.now, steps=self.hook("inside", BUSY)).state is State.UNDONE
        self.writer.wait()
        return f"{how} deleted"


@contextmanager
def arena(homes: Homes, release: str, folder: Path, name: str) -> Iterator[Arena]:
    """A new home to race on, looked through at the end."""
    home = homes(release, name)
    place = folder / f"{name}-runs"
    place.mkdir()
    made = Arena(home, place, f"{release} {name}")
    try:
        yield made
        made.writer.check()
    finally:
        made.writer.stop()
        home.stop()


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_that_the_file_does_not_hold_is_deleted(
    hermes_home: Homes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: str
) -> None:
    hide_holders(monkeypatch)
    rounds, ended, written, told, kept = max(1, ROUNDS // len(RELEASES)), Counter[str](), 0, 0, 0
    for start in range(0, rounds, PER_HOME):
        with arena(hermes_home, release, tmp_path, f"home-{start}") as ring:
            ended.update(ring.round() for _ in range(min(PER_HOME, rounds - start)))
            written += ring.writer.done
            told += sum(each.stored.total() for each in ring.writer.told.values())
            kept += ring.home.rows("SELECT COUNT(*) FROM messages")[0][0]
    print(
        f"{release}: {rounds} rounds, {written} writes meanwhile without an error, {told} messages given to"
    )
    print(f"the release and not rewritten, {kept} there, {dict(sorted(ended.items()))}")
    assert written >= rounds
    assert told == kept
    if rounds >= PER_HOME:
        assert {"inside deleted", "late refused"} <= ended.keys()
