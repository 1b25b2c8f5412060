from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from tests.audit.builder import HomeBuilder
from tests.cli.conftest import Outcome
from tests.evidence.test_own_tables import delegate
from tests.formats.corpus import EXPORTS
from tests.store.test_index_texts import forgotten

from statemend.report import schemas

Run = Callable[..., Outcome]
SAVES = EXPORTS.parent / "saves"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of 0.20.1 with saves of several releases, a picture and an object of no known kind."""
    shutil.copyfile(EXPORTS / "0.20.1" / "state.db", tmp_path / "state.db")
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    for version, folder in (("0.13.0", "misc"), ("0.20.1", "save-cli")):
        for path in (SAVES / version / folder).rglob("*"):
            if path.is_file():
                shutil.copyfile(path, sessions / path.name)
    (sessions / "sessions.json").write_text('{"k": {"session_key": "k", "session_id": "gone"}}')
    (sessions / "picture").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (sessions / "object.json").write_text('{"token": "secret words"}')
    return tmp_path


def test_lists_every_file_and_whose_it_is(statemend: Run, home: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    told = statemend("artifacts", str(home), "--format", "json")
    assert told.code == 0
    document = json.loads(told.out)
    jsonschema.validate(document, json.loads(schemas.render("artifacts-v1.json")))
    files = {Path(each["path"]).name: each for each in document["files"]}
    kinds = {name: (each["kind"], each["releases"]) for name, each in files.items()}
    assert kinds["20260801_170000_777777.jsonl"] == ("gateway-transcript", "0.13 or 0.14")
    assert kinds["session_20260801_100000_cccccc.json"] == ("session-snapshot", "0.13 to 0.20")
    assert kinds["sessions.json"] == ("routing", None)
    assert kinds["cli-T-redacted.json"] == ("jsonl", "0.20 or newer")
    (nameless,) = files["trajectory_samples.jsonl"]["sessions"]
    assert (nameless["id"], nameless["found_by"], nameless["messages"]) == (
        "20260801_100000_cccccc",
        "texts",
        9,
    )
    (routed,) = files["sessions.json"]["sessions"]
    assert (routed["id"], routed["present"], routed["messages"]) == ("gone", False, None)
    skipped = {Path(each["path"]).name: each["begins_as"] for each in document["skipped"]}
    assert skipped == {"picture": "a PNG image", "object.json": "a JSON object with 1 member"}
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_shows_no_text_of_a_message_or_of_a_file_it_does_not_know(statemend: Run, home: Path) -> None:
    told = statemend("artifacts", str(home))
    assert told.code == 0
    assert "trajectory_samples.jsonl" in told.out.replace("\n", "")
    assert "a PNG image" in told.out
    for secret in ("secret words", "List files", "Let me look", "sk-ant", "retyped"):
        assert secret not in told.out
        assert secret not in statemend("artifacts", str(home), "--format", "json").out


def test_hostile_names_are_shown_escaped(statemend: Run, home: Path) -> None:
    save = {"model": "m", "session_id": "\u202e<b>\x1b[31m", "session_start": "x", "messages": []}
    (home / "sessions" / "x.json").write_text(json.dumps(save))
    told = statemend("artifacts", str(home))
    assert "\x1b" not in told.out
    assert "\u202e" not in told.out


def test_a_store_that_cannot_be_read_leaves_whose_they_are_open(statemend: Run, home: Path) -> None:
    (home / "state.db").write_bytes(b"no database at all" * 100)
    told = statemend("artifacts", str(home), "--format", "json")
    assert told.code == 3
    document = json.loads(told.out)
    assert document["fault"] is not None
    assert {each["present"] for file in document["files"] for each in file["sessions"]} == {None}


def test_an_empty_home_says_so(statemend: Run, tmp_path: Path) -> None:
    shutil.copyfile(EXPORTS / "0.13.0" / "state.db", tmp_path / "state.db")
    told = statemend("artifacts", str(tmp_path))
    assert (told.code, told.out) == (0, "Nothing lies beside the store; name other folders with --exports.\n")


def test_a_place_without_a_store_is_a_wrong_request(statemend: Run, tmp_path: Path) -> None:
    assert statemend("artifacts", str(tmp_path)).code == 2


def test_tables_of_the_store_are_listed_with_what_they_tell(statemend: Run, tmp_path: Path) -> None:
    made = HomeBuilder(tmp_path / "home", "0.19.0")
    made.chat("goes", 2)
    forgotten(made, "goes")
    delegate(made, "gone", {"goal": "a hidden task"})
    told = statemend("artifacts", made.root)
    assert told.code == 0
    assert told.out.endswith(
        "0 files and 2 tables of the store, 1 session; whose 1 transcript is, is not told.\n"
    )
    document = json.loads(statemend("artifacts", made.root, "--format", "json").out)
    jsonschema.validate(document, json.loads(schemas.render("artifacts-v1.json")))
    index, tasks = sorted(document["files"], key=lambda each: each["kind"], reverse=True)
    assert (index["kind"], index["modified_at"], index["sha256"]) == ("search-index", None, "")
    assert [(each["id"], each["messages"], each["present"]) for each in index["sessions"]] == [
        (None, 2, None)
    ]
    assert [(each["id"], each["messages"], each["present"]) for each in tasks["sessions"]] == [
        ("gone", 1, False)
    ]
    for said in ("turn 1 of goes", "a hidden task"):
        for options in ((), ("--format", "json")):
            assert said not in statemend("artifacts", made.root, *options).out
            assert said in statemend("artifacts", made.root, "--with-content", *options).out
