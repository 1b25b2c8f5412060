from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from tests.cli.conftest import Outcome, snapshot
from tests.store.folders import changed, held

from statemend.repair import schemas

Run = Callable[..., Outcome]
COMPACTED = "20260812_190500_3f81c2"


def test_a_session_is_exported_and_shown(statemend: Run, demo: Path, tmp_path: Path) -> None:
    before = snapshot(demo)
    told = statemend("export", demo, COMPACTED, "-o", tmp_path / "out")
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"{COMPACTED}\n  result  complete\n  file    ")
    assert "  holds   31 rows, 26 archived\n" in told.out
    assert "  proof   read back; messages of the display view in it: 27 exact\n" in told.out
    assert told.out.endswith("\n1 of 1 session exported whole.\n")
    assert snapshot(demo) == before
    (file,) = (tmp_path / "out").glob(f"{COMPACTED}-*.jsonl")
    assert file.read_bytes().endswith(b"}\n")


@pytest.mark.parametrize("form", ["jsonl", "md", "qmd", "html"])
def test_what_was_exported_is_no_longer_at_risk(
    statemend: Run, demo: Path, tmp_path: Path, form: str
) -> None:
    told = statemend(
        "export", demo, "--at-risk", "--format", form, "-o", tmp_path / "out", "--report", "json"
    )
    assert told.code == 0, told.err
    document = json.loads(told.out)
    assert document["schema"] == "statemend/export/v1"
    jsonschema.validate(document, json.loads((schemas.FOLDER / "export-v1.json").read_text("utf-8")))
    assert (document["format"], document["view"]) == (form, "raw" if form == "jsonl" else "display")
    assert COMPACTED in {file["session"] for file in document["files"]}
    scanned = statemend(
        "scan", demo, "--rules", "EXP001,EXP010", "--exports", tmp_path / "out", "--format", "json"
    )
    assert json.loads(scanned.out)["findings"] == []
    again = statemend("export", demo, "--at-risk", "--format", form, "-o", tmp_path / "out")
    assert (again.code, again.out) == (0, "No session is at risk.\n")


def test_a_file_that_is_there_is_refused(statemend: Run, demo: Path, tmp_path: Path) -> None:
    arguments = ["export", demo, COMPACTED, "-o", tmp_path / "out"]
    statemend(*arguments)
    before = snapshot(tmp_path / "out")
    told = statemend(*arguments)
    assert told.code == 4
    assert "  result   refused\n  because  " in told.out
    assert "exists already and is kept as it is" in " ".join(told.out.split())
    assert told.out.endswith("0 of 1 session exported whole; 1 refused.\n")
    assert snapshot(tmp_path / "out") == before
    assert statemend(*arguments, "--force").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "no session was named; name one or more, or ask for those --at-risk"),
        (("nobody",), 2, "no session 'nobody' in the store"),
        (("2026",), 2, "'2026' begins "),
        ((COMPACTED, "--format", "pdf"), 2, "invalid value for '--format'"),
    ],
)
def test_a_wrong_request_is_one_line(
    statemend: Run, demo: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    told = statemend("export", demo, *arguments, "-o", tmp_path / "out")
    assert (told.code, told.out) == (code, "")
    assert said in told.err
    assert told.err.startswith("statemend: ")
    assert told.err.count("\n") == 1
    assert not list(tmp_path.glob("out/*"))


def test_a_folder_must_be_named(statemend: Run, demo: Path) -> None:
    told = statemend("export", demo, COMPACTED)
    assert told.code == 2
    assert "'-o'" in told.err


def test_the_home_is_no_place_for_exports(statemend: Run, demo: Path) -> None:
    before = snapshot(demo)
    told = statemend("export", demo, COMPACTED, "-o", demo / "session-exports")
    assert told.code == 4
    assert "lies in the audited home, where nothing is written" in told.err
    assert snapshot(demo) == before


def test_a_store_in_use_is_refused_without_live(statemend: Run, demo: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    arguments = ["export", home, COMPACTED, "-o", tmp_path / "out"]
    with held(home / "state.db"):
        told = statemend(*arguments)
        assert told.code == 4
        assert "held by" in told.err
        assert not list((tmp_path / "out").glob("*"))
        assert statemend(*arguments, "--live").code == 0


def test_an_incomplete_export_is_named_and_ends_with_6(statemend: Run, demo: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    changed(
        home / "state.db",
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, 1e9)",
        bindings=(COMPACTED, '\0json:["\\ud83d"]'),
    )
    told = statemend("export", home, COMPACTED, "--format", "md", "-o", tmp_path / "out")
    assert told.code == 6
    assert "  result    incomplete\n" in told.out
    assert "text that UTF-8 cannot hold is spelled out (jsonl can hold it)" in " ".join(told.out.split())
    assert list((tmp_path / "out").glob("*.md"))
    assert statemend("export", home, COMPACTED, "-o", tmp_path / "out").code == 0


def test_an_interruption_says_what_stays(
    statemend: Run, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("statemend.repair.export_session.prove", interrupted)
    told = statemend("export", demo, COMPACTED, "-o", tmp_path / "out")
    assert (told.code, told.out) == (130, "")
    assert told.err == "statemend: interrupted; files that have their name are whole, and stay\n"
    assert list((tmp_path / "out").iterdir()) == []


def test_help_says_what_is_proved(statemend: Run) -> None:
    told = statemend("export", "--help")
    assert told.code == 0
    assert "read back and compared with the store" in " ".join(told.out.split())
