"""A session that a release compacted, exported in part and deleted comes back from whatever survived."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.hermes.home import HermesHome, Oracle, assistant, user
from tests.hermes.oracles import copy_store
from tests.hermes.shared import once

from statemend.repair.apply import apply
from statemend.repair.plan import Plan, dump
from statemend.repair.planner import make_plan
from statemend.repair.run import State
from statemend.repair.undo import undo
from statemend.repair.verify import verify
from statemend.store.connection import open_for_audit
from statemend.store.content import plain_text
from statemend.store.identity import store_digest
from statemend.store.records import session_record

Ask = Callable[[str], Oracle]
Rows = list[dict[str, Any]]

LOST = "20260801_090000_aaaaaa"
SECRET = "my key is sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijklmnopqrstuvwxyz-AA, keep it"
#: What 0.22.2 derives or mints for itself when it opens a copy.
DERIVED = frozenset({"display_identity", "display_order", "message_uid"})


class Scene(NamedTuple):
    """The home after the deletion, and what 0.22.2 read of the session before it."""

    home: Path
    now: float
    display: Rows
    live: Rows
    session: dict[str, Any]


class Held(NamedTuple):
    """What a surviving file holds: where it lies, whether it has the times of the rows, whether it masks
    secrets, whether it names the session, and whether it was made after the compaction."""

    place: str
    times: bool
    masks: bool = False
    names: bool = True
    later: bool = False


#: What of the row of a session no file from before the compaction has, nor the front matter of an export: it
#: cuts times to the microsecond, and a compaction sets the prompt anew. A row that was made again is marked.
LESS_TOLD = {"end_reason", "ended_at", "model_config", "started_at", "system_prompt"}

SURVIVING = {
    "session-snapshot": Held("sessions/session_", times=False, masks=True),
    "request-dump": Held("sessions/request_dump_", times=False, masks=True),
    "trajectory": Held("session-exports/trajectory", times=False, names=False),
    "older-export": Held("session-exports/older", times=True),
    "state-snapshot": Held("state-snapshots/", times=True),
    "backup": Held("backups/", times=True, later=True),
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, worker_id: str, oracle: Ask) -> Scene:
    return once(tmp_path_factory, worker_id, "lost", lambda folder: deleted(folder, oracle))


def deleted(folder: Path, oracle: Ask) -> Scene:
    """0.19.0 makes every file that may survive, compacts, exports what is left live, and deletes."""
    with HermesHome("0.19.0", folder / "home") as home:
        chat = home.chat(LOST)
        chat.say(user([{"type": "text", "text": "Look at this."}]), assistant("I do. \n"))
        chat.tool_turn("What is here?", "ls", "plan.md", "A plan.")
        chat.say(user(SECRET), assistant("Noted."))
        chat.turns(6)
        chat.tool_turn("How far are we?", "wc -l plan.md", "12 plan.md", "Twelve lines.")
        home.title(LOST, "Plan")
        held = home.process.call("history", chat=chat._number)
        _agent(home, chat, "save_session_log", held)
        sent = {"model": "gpt-4o", "messages": [{"role": "system", "content": "You are Hermes."}, *held]}
        _agent(home, chat, "dump_api_request_debug", sent, reason="max_retries")
        turns = _agent(home, chat, "convert_to_trajectory_format", held, "Look at this.", True)
        exports = home.path / "session-exports"
        exports.mkdir()
        _function(home, "save_trajectory", turns, "gpt-4o", True, str(exports / "trajectory.jsonl"))
        _function(home, "create_quick_snapshot")
        home.export(LOST, "jsonl", name="older.jsonl")
        chat.compact()
        chat.say(user("And the end?"), assistant("The end."))
        home.end(LOST)
        _function(home, "create_pre_update_backup")
        home.export(LOST, "md")
        copy = copy_store(home.state_db, folder / "copy")
        display, live = _read(oracle, copy, include_compacted=True), _read(oracle, copy)
        session = home.session(LOST)
        home.delete(LOST)
        assert home.session(LOST) is None
    return Scene(home.path, home.now, display, live, session)


def _agent(home: HermesHome, chat: Any, name: str, *args: Any, **options: Any) -> Any:
    return home.process.call("agent", chat=chat._number, name=name, args=list(args), options=options)


def _function(home: HermesHome, name: str, *args: Any) -> None:
    module = "agent.trajectory" if args else "hermes_cli.backup"
    home.process.call("function", module=module, name=name, args=list(args))


def _read(oracle: Ask, store: Path, **options: Any) -> Rows:
    (found,) = oracle("0.22.2").ask(store, [("get_messages", [LOST], options)])
    return [{name: value for name, value in row.items() if name not in DERIVED} for row in found]


def left_with(scene: Scene, name: str, folder: Path) -> Path:
    """A copy of the home in which only the incomplete export and one of the other files survived."""
    home = shutil.copytree(scene.home, folder / "home")
    for path in home.rglob("*"):
        below = path.relative_to(home).as_posix()
        if path.is_file() and any(
            below.startswith(held.place) for each, held in SURVIVING.items() if each != name
        ):
            path.unlink()
    return home


def planned(scene: Scene, home: Path) -> Plan:
    plan = make_plan(home, now=scene.now, restore=[LOST])
    (choice,) = plan.choices
    return msgspec.structs.replace(
        plan, choices=(msgspec.structs.replace(choice, chosen=choice.options[0].id),)
    )


def _session(home: Path) -> dict[str, Any]:
    with open_for_audit(home / "state.db") as store:
        return session_record(store, LOST) or {}


def digest(home: Path) -> str:
    with open_for_audit(home / "state.db") as store:
        return store_digest(store)


def said(row: dict[str, Any]) -> list[Any]:
    """What every one of the files keeps of a message."""
    return [
        row["role"],
        plain_text(row["content"]).strip(),
        row["tool_calls"],
        row["tool_call_id"],
        row["tool_name"],
    ]


def folded(rows: Rows) -> Rows:
    """The rows without those that say again what one before them said: 0.19.0 gave the turns that a
    compaction kept a new time, so a display shows them twice. A file without times cannot tell."""
    found: Rows = []
    for row in rows:
        if said(row) not in map(said, found):
            found.append(row)
    return found


@pytest.mark.parametrize("name", SURVIVING)
def test_what_survived_gives_back_what_was_deleted(
    scene: Scene, name: str, oracle: Ask, tmp_path: Path
) -> None:
    held = SURVIVING[name]
    home = left_with(scene, name, tmp_path)
    before = digest(home)
    plan = planned(scene, home)
    file, run = tmp_path / "plan.json", tmp_path / "run"
    file.write_bytes(dump(plan))

    done = apply(file, run_dir=run, now=scene.now)

    assert (done.state, done.remaining, done.new, done.troubles) == (State.APPLIED, (), (), ())
    assert verify(run, now=scene.now).state is State.APPLIED
    copy = copy_store(home / "state.db", tmp_path / "copy")
    display, live = _read(oracle, copy, include_compacted=True), _read(oracle, copy)
    expected = scene.display if held.times else folded(scene.display)
    if held.later:
        assert (display, live) == (scene.display, scene.live)
    session = _session(home)
    changed = {name for name, value in scene.session.items() if session[name] != value}
    assert changed <= ({"model_config"} if held.later else LESS_TOLD)
    told = " ".join(plan.choices[0].options[0].evidence)
    masked = [one for one, other in zip(expected, display, strict=True) if said(one) != said(other)]
    assert [row["content"] for row in masked] == ([SECRET] if held.masks else [])
    assert ("1 message looks redacted, and nothing tells whether it is so" in told) is held.masks
    assert [said(row) for row in live] == [said(row) for row in scene.live]
    untimed = [
        one["content"]
        for one, other in zip(expected, display, strict=True)
        if abs(one["timestamp"] - other["timestamp"]) > 2e-6
    ]
    assert bool(untimed) is not held.times
    assert ("get a made-up time" in told) is not held.times
    assert ("names no session: its texts are those of this one" in told) is not held.names
    assert "stays lost" not in told
    assert "may be of another store" not in told
    assert all(text not in file.read_text() for text in ("Twelve", "sk-ant", "wc -l"))
    assert undo(run, now=scene.now).state is State.UNDONE
    assert digest(home) == before


def test_what_nothing_held_is_said(scene: Scene, tmp_path: Path) -> None:
    home = left_with(scene, "", tmp_path)

    told = " ".join(planned(scene, home).choices[0].options[0].evidence)

    assert "is in no file and stays lost: a summary stands for turns that nothing shows" in told
