from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import jsonschema
import pytest
from tests.cli.conftest import Outcome

from statemend.report import schemas

Run = Callable[..., Outcome]


@pytest.fixture
def monday(statemend: Run, demo: Path, tmp_path: Path) -> Path:
    """The report of the damaged home."""
    path = tmp_path / "monday.json"
    assert statemend("scan", demo, "-o", path).code == 1
    return path


def scanned(statemend: Run, home: Path, name: str, *options: object) -> Path:
    path = home.parent / name
    assert statemend("scan", home, "-o", path, *options).err == ""
    return path


def test_the_same_home_twice_has_nothing_new(
    statemend: Run, monday: Path, demo: Path, tmp_path: Path
) -> None:
    today = tmp_path / "today.json"
    statemend("scan", demo, "-o", today)
    told = statemend("diff", monday, today)
    assert (told.code, told.err) == (0, "")
    assert "Nothing new, nothing gone, nothing changed." in told.out


def test_a_repair_is_gone_and_a_fresh_damage_new(
    statemend: Run, demo: Path, monday: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    db = apsw.Connection(str(home / "state.db"))
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
    (lost,) = next(
        db.execute("SELECT session_id FROM messages WHERE session_id NOT IN (SELECT id FROM sessions)")
    )
    db.execute("INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', 1790000000.0)", (lost,))
    db.execute(
        "UPDATE messages SET session_id = '20260101_000000_abcdef' WHERE id = (SELECT MAX(id) FROM messages)"
    )
    db.close()
    today = scanned(statemend, home, "today.json")
    told = statemend("diff", monday, today, "--format", "json")
    assert told.code == 1, told.err
    document = json.loads(told.out)
    jsonschema.validate(document, json.loads((schemas.FOLDER / "diff-v1.json").read_text("utf-8")))
    assert ("ORP001", lost) in {
        (each["finding"]["rule"], each["finding"]["subject"]["session"]) for each in document["gone"]
    }
    assert "20260101_000000_abcdef" in {each["finding"]["subject"]["session"] for each in document["new"]}
    assert statemend("diff", monday, today, "--fail-on", "never").code == 0
    for format_ in ("table", "md"):
        shown = statemend("diff", monday, today, "--format", format_)
        assert shown.code == 1
        assert document["new"][0]["finding"]["id"] in shown.out


def test_what_was_not_looked_for_is_unknown_and_the_code_says_so(
    statemend: Run, demo: Path, monday: Path, tmp_path: Path
) -> None:
    today = tmp_path / "today.json"
    statemend("scan", demo, "-o", today, "--rules", "LIN")
    told = statemend("diff", monday, today, "--format", "json")
    assert told.code == 3
    document = json.loads(told.out)
    assert document["gone"] == []
    assert {each["reason"] for each in document["unknown"]} == {"its rule was not run"}


def test_a_store_that_can_no_longer_be_read_makes_nothing_gone(
    statemend: Run, monday: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "state.db").write_bytes(b"\0" * 8192)
    today = scanned(statemend, home, "today.json")
    told = statemend("diff", monday, today, "--format", "json")
    assert told.code == 3
    document = json.loads(told.out)
    assert not [each for each in document["gone"] if each["finding"]["rule"].startswith(("ORP001", "LIN"))]
    assert document["undetermined"]


@pytest.mark.parametrize("which", [0, 1], ids=["old", "new"])
def test_what_is_no_report_is_refused_in_one_line(
    statemend: Run, monday: Path, tmp_path: Path, which: int
) -> None:
    other = tmp_path / "other"
    for content in (b"", b"{}", b"\x1b[2J", b'{"schema": "statemend/plan/v1"}', b"[" * 100_000):
        other.write_bytes(content)
        pair = [other, monday] if which == 0 else [monday, other]
        told = statemend("diff", *pair)
        assert told.code == 2
        assert str(other) in told.err
        assert len(told.err.splitlines()) == 1
        assert "\x1b" not in told.err
        assert told.out == ""
    assert statemend("diff", monday, tmp_path / "none").code == 2


def test_help_explains_the_codes_and_gives_examples_that_parse(statemend: Run) -> None:
    told = statemend("diff", "--help")
    assert "3 NEW could not" in " ".join(told.out.split())
    examples = re.findall(r"^    statemend diff (.*)$", told.out, flags=re.MULTILINE)
    assert len(examples) == 3
    for example in examples:
        outcome = statemend("diff", *re.split(r" [|>]", example)[0].split())
        assert outcome.code == 2
        assert "monday.json: could not be read" in outcome.err
