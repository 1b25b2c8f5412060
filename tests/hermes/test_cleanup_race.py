"""A real release appends, edits, undoes and compacts while a cleanup is carried out and taken back: nothing
that the file does not hold is ever deleted.

``STATEMEND_RACE_ROUNDS`` sets how many rounds there are in all, 60 by default; a third of them are run here.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hermes.home import HermesHome
from tests.hermes.test_race import ROUNDS, hide_holders
from tests.hermes.writer import Writer

from statemend.errors import Refused
from statemend.repair.cleanup_perform import CleanupFolder, perform
from statemend.repair.cleanup_plan import CleanupPlan
from statemend.repair.cleanup_planner import make_cleanup_plan
from statemend.repair.reexport import reexport
from statemend.repair.run import RunFolder, State
from statemend.repair.undo import undo

Homes = Callable[..., HermesHome]
RELEASES = ["0.19.0", "0.22.2"]
BUSY, GOING = "20260801_090001_aaaaaa", "20260801_090002_bbbbbb"


class Arena:
    """A home on which a release writes, with a session that is deleted and had back in round after round."""

    def __init__(self, home: HermesHome, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self.random = random.Random(str(home.release))
        for session in (BUSY, GOING):
            home.create_session(session)
        self.writer = Writer(home, (BUSY, GOING), str(home.release))
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
        """When the writer writes, and where: before the snapshot, behind it, or while the fence stands."""

        def reached(name: str) -> None:
            if (how, name) in (("early", "preflight passed"), ("late", "snapshot verified")):
                self.writer.start(2, (session,))
                self.writer.wait()
            if how == "inside" and name in ("fence entered", "changed and proven", "undo fence entered"):
                self.writer.start(2, (BUSY,))

        return reached

    def round(self) -> str:
        plan = self.plan()
        self.home.session_ids()  # the release has the store open from now on
        how = self.random.choice(("early", "early", "late", "inside", "inside"))
        session = BUSY if how == "inside" else self.random.choice((BUSY, GOING))
        RunFolder.create(self.folder / f"run-{self.number}", plan.envelope())
        folder = CleanupFolder(self.folder / f"run-{self.number}")
        log = folder.log(self.hook(how, session))
        error = None
        try:
            perform(plan, self.home.state_db, folder, log, now=self.home.now)
            log.step("committed")
        except Refused as caught:
            error = caught
        self.writer.wait()
        assert not self.writer.errors
        gone = GOING not in self.home.session_ids()
        assert gone is (error is None) is (how == "inside" or (how, session) == ("early", BUSY)), (how, error)
        told = self.writer.told[GOING]
        rows = self.home.rows("SELECT content FROM messages WHERE session_id = ?", GOING)
        assert Counter(content for (content,) in rows) == (Counter() if gone else told.stored)
        if not gone:
            return f"{how} refused"
        assert self.held(plan) == +told.stored
        undone = undo(folder.path, now=self.home.now, steps=self.hook("inside", BUSY))
        assert undone.state is State.UNDONE
        self.writer.wait()
        return f"{how} deleted"


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_that_the_file_does_not_hold_is_deleted(
    hermes_home: Homes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: str
) -> None:
    hide_holders(monkeypatch)
    home = hermes_home(release)
    arena = Arena(home, tmp_path)
    try:
        ended = Counter(arena.round() for _ in range(max(1, ROUNDS // 6)))
        arena.writer.check()
    finally:
        arena.writer.stop()
    print(f"{release}: {arena.writer.done} writes meanwhile, {dict(sorted(ended.items()))}")
    assert arena.writer.done
    if ROUNDS >= 60:
        assert {"inside deleted", "late refused"} <= ended.keys()
