"""Homes with sessions to be deleted, the files that hold them, and cleanup plans."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from tests.audit.builder import START, VERSIONS, HomeBuilder
from tests.repair import plans

from statemend.repair import cleanup_plan
from statemend.repair.cleanup_plan import CleanupPlan
from statemend.repair.cleanup_planner import make_cleanup_plan
from statemend.repair.reexport import Format, View, reexport

#: Well after everything in the homes ended.
NOW = START + 100 * 86400.0
ENDED = START + 1000.0
WITH_DELEGATES = VERSIONS[VERSIONS.index("0.17.0") :]


class Cleaned(msgspec.Struct, frozen=True):
    """A home, and the folder of exports beside it."""

    home: HomeBuilder
    exports: Path

    @property
    def store(self) -> Path:
        return self.home.store

    @property
    def folder(self) -> Path:
        return self.exports.parent

    def plan(self, *sessions: str, **options: object) -> CleanupPlan:
        """A cleanup plan for these sessions."""
        named = {"sessions": sessions, "artifacts": [self.exports], "now": NOW, **options}
        return make_cleanup_plan(self.home.root, **named)  # type: ignore[arg-type]

    def file(self, *sessions: str, **options: object) -> Path:
        """The plan as a file."""
        path = self.folder / "cleanup.json"
        path.write_bytes(cleanup_plan.dump(self.plan(*sessions, **options)))
        return path

    def export(self, *sessions: str, form: Format = Format.JSONL, view: View | None = None) -> list[Path]:
        """Write these sessions into the exports."""
        done = reexport(self.home.root, sessions, self.exports, form=form, view=view, now=NOW, force=True)
        return [Path(file.path) for file in done.files]

    def sessions(self) -> dict[str, str | None]:
        """The sessions that are there, each with its parent."""
        return dict(plans.query(self.store, "SELECT id, parent_session_id FROM sessions ORDER BY id"))

    def reasons(self, *sessions: str, **options: object) -> dict[str, str]:
        """Why these sessions are kept when a plan is made."""
        made = self.plan(*sessions, **options)
        return {each.session: each.reason for each in made.kept}


def cleaned(folder: Path, release: str, *, exported: Sequence[str] = ("alpha", "worker", "beta")) -> Cleaned:
    """A home in which ``alpha`` ended, with rows of every state that the release has, a branch and (where it
    has them) a delegate ``worker``; ``beta`` ended too, ``other`` goes on. ``exported`` are preserved."""
    home = HomeBuilder(folder / "home", release)
    home.session("alpha", title="Alpha", ended_at=ENDED, end_reason="cli_close")
    for number, (active, compacted) in enumerate([(0, 1), (0, 1), (0, 0), (1, 0), (1, 0)]):
        content = f"message {number} of alpha, with words to find"
        home.message("alpha", ("user", "assistant")[number % 2], content, active=active, compacted=compacted)
    home.sql(f"UPDATE sessions SET message_count = {len(live(home))} WHERE id = 'alpha'")
    delegates = release in WITH_DELEGATES
    home.chat("branch", parent_session_id="alpha", model_config={"_branched_from": "alpha"})
    if delegates:
        mark = {"_delegate_from": "alpha"}
        home.chat("worker", parent_session_id="alpha", source="subagent", ended_at=ENDED, model_config=mark)
    home.chat("beta", ended_at=ENDED, title="Beta")
    home.chat("other")
    if home.columns("session_model_usage"):
        home.insert(
            "session_model_usage",
            session_id="alpha",
            model="m",
            billing_provider="",
            billing_base_url="",
            billing_mode="",
            task="",
        )
    scene = Cleaned(home, folder / "exports")
    scene.exports.mkdir()
    wanted = [each for each in exported if delegates or each != "worker"]
    if wanted:
        scene.export(*wanted)
    return scene


def live(home: HomeBuilder) -> list[tuple[object, ...]]:
    """The rows of alpha that its release counts."""
    counted = "AND active = 1" if "active" in home.columns("messages") else ""
    return home.sql(f"SELECT id FROM messages WHERE session_id = 'alpha' {counted}")


def at(step: str, job: Callable[[], object]) -> Callable[[str], None]:
    """A hook that does ``job`` when ``step`` is reached."""

    def hook(name: str) -> None:
        if name == step:
            job()

    return hook


def other_process_may_write(store: Path) -> bool:
    """Whether another process gets the write lock now."""
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], timeout=0)\n"
        "try:\n    c.execute('BEGIN IMMEDIATE')\nexcept sqlite3.OperationalError:\n    print('locked')\n"
        "else:\n    c.execute('ROLLBACK')\n    print('free')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(store)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip() == "free"
