"""Real releases read what ``statemend export`` writes: the newest imports it, others verify it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.hermes.home import DAY, START, HermesHome, Oracle, assistant, user
from tests.hermes.oracles import SUBSTANCE, copy_store, session_ids

from statemend.audit.engine import audit
from statemend.evidence.inventory import find_home
from statemend.formats import manifest
from statemend.repair.reexport import Format, Reexport, State, View, reexport
from statemend.store.connection import open_for_audit
from statemend.store.history import messages

Ask = Callable[[str], Oracle]
Make = Callable[..., HermesHome]
Written = Callable[..., Path]

SESSION = "20260801_090000_aaaaaa"
WRITERS = ("0.18.2", "0.19.0", "0.20.1", "0.22.2")
JUDGES = ("0.19.0", "0.22.2")
#: What a message is apart from the row it is in.
CONTENT = tuple(name for name in SUBSTANCE if name != "id")


def compacted_and_exported(home: HermesHome, times: int = 1) -> None:
    """A session with tools, an undo and compactions, exported by the release itself and then ended."""
    chat = home.chat(SESSION)
    chat.turns(8, "plan")
    chat.tool_turn("How far are we?", "wc -l plan.md", "12 plan.md", "Twelve lines.")
    for number in range(times):
        chat.turns(3, f"late {number}")
        chat.compact()
    chat.say(user("Forget this."), assistant("Forgotten."))
    chat.undo()
    chat.say(user([{"type": "text", "text": "And the end?"}]), assistant("The end. ✓"))
    home.title(SESSION, "Plan & more")
    home.export(SESSION, "md")
    home.end(SESSION)


@pytest.fixture(scope="module")
def written_by(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The home that a release left with that session in it, made once. Not to be changed."""
    made: dict[tuple[str, int], Path] = {}

    def folder(version: str, times: int = 1) -> Path:
        if (version, times) not in made:
            path = tmp_path_factory.mktemp(f"written-{version}") / "home"
            with HermesHome(version, path) as home:
                compacted_and_exported(home, times)
            made[version, times] = path
        return made[version, times]

    return folder


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], HermesHome]]:
    """A release that looks at files, each started once."""
    running: dict[str, HermesHome] = {}

    def start(version: str) -> HermesHome:
        if version not in running:
            running[version] = HermesHome(version, tmp_path_factory.mktemp(f"judge-{version}"))
        return running[version]

    yield start
    for home in running.values():
        home.stop()


def answers(oracle: Oracle, store: Path, session_id: str) -> dict[str, list[dict[str, Any]]]:
    """What a release shows of a session: its display, its live rows, all rows."""
    calls = [
        ("get_messages", [session_id], options)
        for options in ({"include_compacted": True}, {}, {"include_inactive": True})
    ]
    return dict(zip(("display", "live", "all"), oracle.ask(store, calls), strict=True))


def contents(shown: list[dict[str, Any]], *more: str) -> list[dict[str, Any]]:
    return [{name: message[name] for name in (*CONTENT, *more)} for message in shown]


def exported(home: Path, folder: Path, *wanted: str, **options: Any) -> Reexport:
    done = reexport(home, wanted or (SESSION,), folder, **options)
    assert {file.state for file in done.files} == {State.COMPLETE}, done
    return done


@pytest.mark.parametrize("times", [1, 2], ids=["compacted once", "compacted twice"])
@pytest.mark.parametrize("version", WRITERS)
def test_the_newest_release_imports_a_session_as_it_was(
    written_by: Written, oracle: Ask, tmp_path: Path, version: str, times: int
) -> None:
    home = written_by(version, times)
    newest = oracle("0.22.2")
    before = answers(newest, copy_store(home / "state.db", tmp_path / "before"), SESSION)
    (file,) = exported(home, tmp_path / "out").files
    assert (file.messages, file.archived > 0) == (len(before["all"]), True)
    payload = json.loads(Path(file.path).read_bytes())
    empty = tmp_path / "empty" / "state.db"
    empty.parent.mkdir()
    (said,) = newest.ask(empty, [("import_sessions", [[payload]], {})])
    assert (said["ok"], said["imported"], said["errors"]) == (True, 1, [])
    after = answers(newest, empty, SESSION)
    for view, shown in before.items():
        assert contents(after[view], "active", "compacted") == contents(shown, "active", "compacted"), view
    (row,) = newest.ask(empty, [("get_session", [SESSION], {})])
    assert (row["title"], row["source"]) == ("Plan & more", "cli")
    assert row["started_at"] == payload["started_at"]


@pytest.mark.parametrize("form", [Format.MD, Format.QMD])
@pytest.mark.parametrize("version", WRITERS)
def test_releases_verify_the_markdown_that_we_write(
    written_by: Written, judge: Callable[[str], HermesHome], tmp_path: Path, version: str, form: Format
) -> None:
    home = written_by(version)
    (file,) = exported(home, tmp_path / "out", form=form).files
    with open_for_audit(home / "state.db") as store:
        shown = [{"role": each.role} for each in messages(store, SESSION, View.DISPLAY)]
    assert file.messages == len(shown)
    for one in map(judge, JUDGES):
        data = {"id": SESSION, "messages": shown}
        assert one.verify_export_file(Path(file.path), data) == [True, "ok"]
        fewer = {"id": SESSION, "messages": shown[1:]}
        assert one.verify_export_file(Path(file.path), fewer) == [False, "message count mismatch"]


def test_the_markdown_is_the_newest_release_s_own(hermes_home: Make, tmp_path: Path) -> None:
    """Apart from the time of the export and the digest that follows from it."""
    with hermes_home("0.22.2") as home:
        compacted_and_exported(home)
        done = home.export(SESSION, "md", "--force")
        theirs = next(path for path in done.files if path.suffix == ".md")
    (file,) = exported(home.path, tmp_path / "out", form=Format.MD).files
    ours = Path(file.path)
    assert ours.name == theirs.name

    def steady(path: Path) -> list[str]:
        volatile = ("exported_at: ", "- Exported at: ", "- SHA256 of exported body: ")
        return [line for line in path.read_text().split("\n") if not line.startswith(volatile)]

    assert steady(ours) == steady(theirs)
    (line,) = manifest.lines(tmp_path / "out" / "manifest.jsonl")
    their_line = list(manifest.lines(theirs.parent / "manifest.jsonl"))[-1]
    for name in ("session_id", "lineage", "message_count", "format"):
        assert getattr(line, name) == getattr(their_line, name)


@pytest.mark.fires("EXP010")
@pytest.mark.parametrize("form", Format)
def test_after_our_export_nothing_is_missing_any_more(
    written_by: Written, tmp_path: Path, form: Format
) -> None:
    home = tmp_path / "home"
    shutil.copytree(written_by("0.19.0"), home)
    now = START + DAY
    (home / "config.yaml").write_text("sessions:\n  auto_prune: true\n")

    def found(*exports: Path) -> set[str]:
        rules = ["EXP001", "EXP010"]
        return {each.rule for each in audit(home, exports=exports, rules=rules, now=now).findings}

    assert found() == {"EXP001", "EXP010"}
    done = reexport(home, (), tmp_path / "out", form=form, at_risk=True, now=now)
    assert [file.state for file in done.files] == [State.COMPLETE]
    assert found(tmp_path / "out") == set()


@pytest.mark.parametrize("release", JUDGES)
def test_messages_without_a_row_come_back_as_a_session(
    hermes_home: Make, oracle: Ask, tmp_path: Path, release: str
) -> None:
    with hermes_home("0.19.0") as home:
        home.create_session(SESSION)
        for number in range(3):
            home.exchange(SESSION, number)
        shown = home.messages(SESSION)
        home.rows("PRAGMA foreign_keys = OFF")
        home.rows("DELETE FROM sessions WHERE id = ?", SESSION)
    (file,) = exported(home.path, tmp_path / "out").files
    assert not file.session_row
    payload = json.loads(Path(file.path).read_bytes())
    empty = tmp_path / "empty" / "state.db"
    empty.parent.mkdir()
    (said,) = oracle(release).ask(empty, [("import_sessions", [[payload]], {})])
    assert (said["ok"], said["imported"]) == (True, 1)
    live, row = oracle(release).ask(empty, [("get_messages", [SESSION], {}), ("get_session", [SESSION], {})])
    assert contents(live) == contents(shown)
    assert (row["source"], row["started_at"]) == ("recovered", shown[0]["timestamp"])


def test_every_session_of_a_lived_in_home_is_exported_whole(
    lived_in: Callable[[str], Any], version: str, tmp_path: Path
) -> None:
    home = find_home(lived_in(version).home)
    copy = copy_store(Path(home.store), tmp_path / "home")
    wanted = session_ids(copy)
    assert wanted
    for form in Format:
        done = exported(copy.parent, tmp_path / form.value, *wanted, form=form)
        assert len(done.files) == len(wanted)
