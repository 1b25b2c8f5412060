"""Each shipped playbook, unattended, on a home that a real release damaged: it ends in the promised state,
also when it was killed on the way, and the releases agree."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.hermes.families import forget, forked
from tests.hermes.home import FORMATS, HermesHome, Oracle, assistant, user
from tests.hermes.oracles import copy_store
from tests.playbook.conftest import Yes

from statemend.audit.engine import audit
from statemend.playbook import inputs, shipped
from statemend.playbook.model import Answer
from statemend.playbook.runner import run_playbook
from statemend.report.playbook_run import PlaybookRun, RunState
from statemend.store.connection import open_for_audit
from statemend.store.identity import store_digest

Ask = Callable[[str], Oracle]
Homes = Callable[..., HermesHome]

LOSSY = "20260801_090000_aaaaaa"
ORPHAN = "20260801_100000_bbbbbb"
HEALTHY = "20260801_110000_cccccc"
#: Every moment of every playbook is killed at when this is set; otherwise some, and the commit.
EVERY = os.environ.get("STATEMEND_PLAYBOOK_KILLS") == "1"


@dataclass(frozen=True)
class Damaged:
    """A home with what older releases do: an export without archived turns, a session whose row went under a
    running agent, a conversation with two continuations."""

    folder: Path
    fork: tuple[str, str, str]
    display: list[dict[str, Any]]


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    place = tmp_path_factory.mktemp("damaged")
    with HermesHome("0.19.0", place / "home") as home:
        chat = home.chat(LOSSY)
        chat.turns(8)
        chat.tool_turn("How far are we?", "wc -l plan.md", "12 plan.md", "Twelve lines.")
        chat.compact()
        chat.say(user("And the end?"), assistant("The end."))
        home.title(LOSSY, "Plan")
        home.end(LOSSY)
        for form in FORMATS:
            assert home.export(LOSSY, form).code == 0
        talking = home.chat(ORPHAN)
        talking.turns(2)
        families = forked(home)
        calm = home.chat(HEALTHY)
        calm.say(user("hello"), assistant("hi"))
        home.end(HEALTHY)
        forget(home, ORPHAN)
        display = home.rows("SELECT id, role, content FROM messages WHERE session_id = ? ORDER BY id", ORPHAN)
        home.stop()
    shown = [dict(zip(("id", "role", "content"), each, strict=True)) for each in display]
    return Damaged(place / "home", families, shown)


@pytest.fixture
def home(damaged: Damaged, tmp_path: Path) -> Path:
    return _copy(damaged, tmp_path / "mine")


def _copy(damaged: Damaged, place: Path) -> Path:
    shutil.copytree(damaged.folder, place / "home", copy_function=shutil.copy2)
    return place / "home"


#: What the review of lines asks for.
REVIEWED = [
    "relink",
    "link-chain",
    "dead-end",
    "fork",
    "cycle",
    "untag",
    "markers",
    "branch-mark",
    "late-turns",
    "adopt",
]


def play(name: str, home: Path, *given: str, operator: Any = None, **options: Any) -> PlaybookRun:
    """Run a shipped playbook as a script does."""
    found = shipped.find(name)
    return run_playbook(found, inputs.parse([f"home={home}", *given], found), operator or Yes(), **options)


def ended(done: PlaybookRun) -> dict[str, str]:
    return {step.id: step.state.value for step in done.steps}


def rules(home: Path, *exports: Path) -> set[tuple[str, str | None]]:
    found = audit(home, exports=exports)
    assert found.undetermined == ()
    return {(one.rule, one.subject.session) for one in found.findings}


def digest(home: Path) -> str:
    with open_for_audit(home / "state.db") as store:
        return store_digest(store)


# The promised states


def append_failures(home: Path, done: PlaybookRun, damaged: Damaged) -> None:
    assert set(ended(done).values()) == {"passed"}, done.steps
    assert ("ORP001", ORPHAN) not in rules(home)


def export_loss(home: Path, done: PlaybookRun, damaged: Damaged) -> None:
    assert set(ended(done).values()) == {"passed"}, done.steps
    into = Path(str(_step(done, "export").facts["into"]))
    assert {("EXP001", LOSSY), ("EXP010", LOSSY)}.isdisjoint(rules(home, into))
    assert digest(home) == digest(damaged.folder)


def lineage_review(home: Path, done: PlaybookRun, damaged: Damaged) -> None:
    assert set(ended(done).values()) == {"passed"}, done.steps
    assert not {rule for rule, session in rules(home) if rule in ("LIN002", "LIN003")}


def preserve_and_prune(home: Path, done: PlaybookRun, damaged: Damaged) -> None:
    states = ended(done)
    assert set(states.values()) == {"passed"}, done.steps
    with open_for_audit(home / "state.db") as store:
        left = {sid for (sid,) in store.rows("SELECT id FROM sessions")}
    assert HEALTHY not in left
    assert LOSSY not in left
    cleanup = _step(done, "cleanup")
    assert done.exit_code == (4 if cleanup.facts["kept"] else 0)
    kept = Path(str(_step(done, "export").facts["into"]))
    written = [json.loads(file.read_text()) for file in kept.glob("*.jsonl") if file.name != "manifest.jsonl"]
    preserved = {each["id"]: {row["id"] for row in each["messages"]} for each in written}
    with open_for_audit(damaged.folder / "state.db") as store:
        for session in (HEALTHY, LOSSY):
            rows = {
                rowid for (rowid,) in store.rows("SELECT id FROM messages WHERE session_id = ?", (session,))
            }
            assert preserved[session] == rows


def weekly_audit(home: Path, done: PlaybookRun, damaged: Damaged) -> None:
    assert ended(done) == {"scan": "failed", "report": "passed"}
    assert done.exit_code == 1
    assert digest(home) == digest(damaged.folder)


def before_upgrade(home: Path, done: PlaybookRun, damaged: Damaged) -> None:
    states = ended(done)
    assert {name for name, state in states.items() if state == "failed"} == {"archived", "orphans"}
    assert _step(done, "snapshot").facts["digest"] == digest(damaged.folder)
    assert digest(home) == digest(damaged.folder)


def post_mortem(home: Path, done: PlaybookRun, damaged: Damaged) -> None:
    assert set(ended(done).values()) == {"passed"}, done.steps
    bundle = Path(done.folder) / _step(done, "bundle").folder / "bundle.tar.gz"
    assert bundle.stat().st_size > 1000
    assert digest(home) == digest(damaged.folder)


PROMISED = {
    "append-failures": append_failures,
    "before-upgrade": before_upgrade,
    "export-loss": export_loss,
    "lineage-review": lineage_review,
    "post-mortem": post_mortem,
    "preserve-and-prune": preserve_and_prune,
    "weekly-audit": weekly_audit,
}
GIVEN = {"preserve-and-prune": ("days=30",)}


def _step(done: PlaybookRun, name: str) -> Any:
    return next(step for step in done.steps if step.id == name)


def answers(name: str, damaged: Damaged) -> tuple[Answer, ...]:
    """What an operator decides: the younger continuation is the right one."""
    if name != "lineage-review":
        return ()
    from statemend.repair.planner import make_plan

    plan = make_plan(damaged.folder, recipes=REVIEWED)
    return tuple(
        Answer(choice=choice.id, option=_wanted(choice.options, damaged.fork[2])) for choice in plan.choices
    )


def _wanted(options: Any, session: str) -> str:
    return next((each.id for each in options if session in each.id), options[0].id)


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_it_ends_in_the_promised_state(home: Path, damaged: Damaged, name: str) -> None:
    done = play(name, home, *GIVEN.get(name, ()), answers=answers(name, damaged))
    assert done.state is RunState.FINISHED
    PROMISED[name](home, done, damaged)


def test_every_shipped_playbook_has_a_promise() -> None:
    assert sorted(PROMISED) == list(shipped.names())


class Crash(BaseException):
    """Ends a run at once."""


@pytest.mark.parametrize("name", ["append-failures", "export-loss", "lineage-review", "preserve-and-prune"])
def test_killed_at_any_step_and_run_again_it_ends_the_same(
    damaged: Damaged, tmp_path: Path, name: str
) -> None:
    decided = answers(name, damaged)
    given = GIVEN.get(name, ())
    moments: list[str] = []
    clean = _copy(damaged, tmp_path / "clean")
    PROMISED[name](clean, play(name, clean, *given, answers=decided, hook=moments.append), damaged)
    wanted = digest(clean)
    first: dict[str, int] = {}
    for number, moment in enumerate(moments):
        first.setdefault(moment, number)
    some = {*sorted(first.values())[:-1:3], first.get("committed", 0)}
    for number in range(len(moments) - 1) if EVERY else sorted(some):
        mine = _copy(damaged, tmp_path / str(number))
        left = number

        def crash(moment: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash(moment)

        with pytest.raises(Crash):
            play(name, mine, *given, answers=decided, hook=crash)
        done = play(name, mine, *given, answers=decided)
        assert done.state is RunState.FINISHED
        PROMISED[name](mine, done, damaged)
        assert digest(mine) == wanted, moments[number]
        shutil.rmtree(mine.parent)


def test_a_sigkill_in_the_middle_loses_nothing(home: Path, damaged: Damaged) -> None:
    """The real program, killed when the change is committed, and started again with the same words."""
    command = [sys.executable, "-m", "statemend", "playbook", "run", "append-failures"]
    command += ["--set", f"home={home}", "--yes", "--format", "jsonl"]
    runs = home.with_name("home.statemend") / "playbooks"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            journals = list(runs.glob("*/steps/*-apply/run/journal.jsonl"))
            if journals and b'"fence entered"' in journals[0].read_bytes():
                process.send_signal(signal.SIGKILL)
                break
        process.wait(60)
    finally:
        process.kill()
        process.wait(60)
    again = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert again.returncode == 0, again.stderr
    steps = [json.loads(line) for line in again.stdout.splitlines()]
    assert {step["state"] for step in steps} == {"passed"}
    assert ("ORP001", ORPHAN) not in rules(home)
    assert len(list(runs.iterdir())) == 1


@pytest.mark.parametrize("release", ["0.19.0", "0.22.2"])
def test_the_release_appends_to_a_rebuilt_session_again(
    hermes_home: Homes, damaged: Damaged, home: Path, release: str
) -> None:
    assert play("append-failures", home).exit_code == 0
    hermes = hermes_home(release, "mine/home")
    hermes.append(ORPHAN, "user", "and now?")
    said = [message["content"] for message in hermes.messages(ORPHAN)]
    assert said == [*(row["content"] for row in damaged.display), "and now?"]


def test_the_release_shows_what_the_new_exports_hold(home: Path, oracle: Ask, tmp_path: Path) -> None:
    done = play("export-loss", home)
    into = Path(str(_step(done, "export").facts["into"]))
    (file,) = into.glob(f"{LOSSY}*.jsonl")
    shown = oracle("0.22.2").ask(
        copy_store(home / "state.db", tmp_path / "copy"),
        [("get_messages", [LOSSY], {"include_compacted": True})],
    )[0]
    written = {row["id"]: row for row in json.loads(file.read_text())["messages"]}
    assert shown
    assert all(written[row["id"]]["content"] == row["content"] for row in shown)


def test_a_session_that_is_written_to_meanwhile_is_kept_and_the_rest_go(
    hermes_home: Homes, home: Path, damaged: Damaged
) -> None:
    """Between the proof of the exports and the deletion, the release appends to one of the sessions."""
    seen: list[str] = []

    def write(moment: str) -> None:
        seen.append(moment)
        if seen.count("step finished") == 3 and moment == "step finished":
            hermes = hermes_home("0.19.0", "mine/home")
            hermes.append(HEALTHY, "user", "one more thing")
            hermes.stop()

    done = play("preserve-and-prune", home, "days=30", hook=write)
    cleanup = _step(done, "cleanup")
    assert cleanup.state.value == "passed"
    assert done.exit_code == 4
    assert HEALTHY in cleanup.summary
    with open_for_audit(home / "state.db") as store:
        left = {sid for (sid,) in store.rows("SELECT id FROM sessions")}
        said = [
            text for (text,) in store.rows("SELECT content FROM messages WHERE session_id = ?", (HEALTHY,))
        ]
    assert HEALTHY in left
    assert "one more thing" in said
    assert LOSSY not in left
