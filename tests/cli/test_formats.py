"""The machine formats of a scan, and its baseline, on a real home."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import apsw
import jsonschema
import pytest
from tests.cli.conftest import Outcome, snapshot

Run = Callable[..., Outcome]
SARIF = Path(__file__).parent.parent / "data" / "sarif" / "sarif-schema-2.1.0.json"
MACHINES = {"r.sarif": "sarif", "r.sarif.json": "sarif", "r.xml": "junit", "r.jsonl": "jsonl"}


@pytest.fixture
def known(statemend: Run, demo: Path, tmp_path: Path) -> Path:
    """A baseline of the damaged home."""
    path = tmp_path / "known.json"
    assert statemend("scan", demo, "--write-baseline", path).code == 1
    return path


def starts(path: Path, format_: str) -> bool:
    head = {"sarif": '{\n  "$schema"', "junit": "<?xml", "jsonl": '{"type":"report"'}[format_]
    return path.read_text("utf-8").startswith(head)


@pytest.mark.parametrize("name", MACHINES)
def test_a_name_tells_the_format_and_its_file_may_be_written_anew(
    statemend: Run, demo: Path, tmp_path: Path, name: str
) -> None:
    target = tmp_path / name
    for _ in range(2):
        told = statemend("scan", demo, "-o", target, "--rules", "EXP,ORP")
        assert told.code == 1, told.err
    assert starts(target, MACHINES[name])
    assert target.stat().st_mode & 0o777 == 0o600
    assert told.out.splitlines()[-1] == f"Report: {target}"


@pytest.mark.parametrize("name", ["r.sarif", "r.xml", "r.jsonl"])
def test_a_file_of_another_tool_is_kept(statemend: Run, demo: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    content = '<?xml version="1.0"?><testsuites/>' if name == "r.xml" else '{"version": "2.1.0"}'
    target.write_text(content)
    assert statemend("scan", demo, "-o", target).code == 4
    assert target.read_text() == content


def test_machine_formats_agree_with_the_report(statemend: Run, demo: Path) -> None:
    report = json.loads(statemend("scan", demo, "--format", "json").out)
    ids = {finding["id"] for finding in report["findings"]}

    log = json.loads(statemend("scan", demo, "--format", "sarif").out)
    jsonschema.Draft4Validator(json.loads(SARIF.read_text("utf-8"))).validate(log)
    (run,) = log["runs"]
    assert {result["partialFingerprints"]["findingId/v1"] for result in run["results"]} == ids
    assert run["invocations"][0]["exitCode"] == 1
    digests = {file["hashes"]["sha-256"] for file in run["artifacts"] if "hashes" in file}
    assert digests == {file["sha256"] for file in report["artifacts"]}

    root = ET.fromstring(statemend("scan", demo, "--format", "junit").out.encode())
    assert root.get("errors") == "0"
    failed = {finding["rule"] for finding in report["findings"] if finding["verdict"] == "fault"}
    assert root.get("failures") == str(len(failed))

    lines = [json.loads(line) for line in statemend("scan", demo, "--format", "jsonl").out.splitlines()]
    assert {line["id"] for line in lines if line["type"] == "finding"} == ids

    short = statemend("scan", demo, "--format", "summary").out
    assert report["verdict"] in short
    assert len(short) < 6000


@pytest.mark.parametrize("format_", ["sarif", "junit", "summary"])
def test_texts_of_messages_never_reach_formats_that_are_sent_about(
    statemend: Run, demo: Path, format_: str
) -> None:
    shown = statemend("scan", demo, "--format", "json", "--with-content")
    texts = {said["text"][:30] for said in json.loads(shown.out)["contents"] if len(said["text"]) > 30}
    assert texts
    written = statemend("scan", demo, "--format", format_, "--with-content").out
    assert not [text for text in texts if text in written]


def test_a_store_that_cannot_be_read_is_an_error_in_every_format(statemend: Run, tmp_path: Path) -> None:
    store = tmp_path / "state.db"
    store.write_bytes(b"\0" * 8192)
    for format_ in ("sarif", "junit", "jsonl", "summary"):
        told = statemend("scan", store, "--format", format_)
        assert told.code == 3
        assert told.err == ""
        if format_ == "sarif":
            (invocation,) = json.loads(told.out)["runs"][0]["invocations"]
            assert invocation["executionSuccessful"] is False
        elif format_ == "junit":
            assert int(ET.fromstring(told.out.encode()).get("errors", "0")) > 0
        else:
            assert "cannot be read" in told.out


@pytest.mark.parametrize("release", ["0.13.0", "0.22.2"])
def test_hostile_cells_break_no_format(
    statemend: Run, tmp_path: Path, stores: Mapping[str, Path], release: str
) -> None:
    store = tmp_path / "state.db"
    shutil.copyfile(stores[release], store)
    db = apsw.Connection(str(store))
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
    db.execute("UPDATE sessions SET id = id || char(10, 27, 8238, 65535) || ']]><b>{0}[a](b)'")
    db.execute("UPDATE sessions SET parent_session_id = CAST(x'eda080ff' AS TEXT), message_count = 'many'")
    db.close()
    shown = {}
    for format_ in ("sarif", "junit", "jsonl", "summary"):
        told = statemend("scan", store, "--format", format_, "--fail-on", "never")
        assert (told.code, told.err) == (0, "")
        assert not {"\x1b", "\u202e", "\uffff"} & set(told.out)
        shown[format_] = told.out
    log = json.loads(shown["sarif"])
    jsonschema.Draft4Validator(json.loads(SARIF.read_text("utf-8"))).validate(log)
    assert log["runs"][0]["results"]
    ET.fromstring(shown["junit"].encode())
    assert json.loads(shown["jsonl"].splitlines()[-1])["lines"] == len(shown["jsonl"].splitlines())


class TestBaseline:
    """--baseline and --write-baseline."""

    def test_what_was_known_is_hidden_and_does_not_count(
        self, statemend: Run, demo: Path, known: Path
    ) -> None:
        number = len(json.loads(known.read_text())["findings"])
        told = statemend("scan", demo, "--baseline", known)
        assert told.code == 0
        assert f"No new fault and no new risk found; {number} known findings hidden" in told.out
        assert known.stat().st_mode & 0o777 == 0o600
        document = json.loads(statemend("scan", demo, "--baseline", known, "--format", "json").out)
        assert document["findings"] == []
        assert len(document["baseline"]["hidden"]) == number
        assert document["baseline"]["gone"] == []

    def test_a_report_is_a_baseline_too(self, statemend: Run, demo: Path, tmp_path: Path) -> None:
        statemend("scan", demo, "-o", tmp_path / "r.json")
        assert statemend("scan", demo, "--baseline", tmp_path / "r.json").code == 0

    def test_what_is_new_still_fails(self, statemend: Run, demo: Path, known: Path, tmp_path: Path) -> None:
        home = tmp_path / "home"
        shutil.copytree(demo, home)
        db = apsw.Connection(str(home / "state.db"))
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
        db.execute(
            "UPDATE messages SET session_id = '20260101_000000_abcdef' "
            "WHERE id = (SELECT MAX(id) FROM messages)"
        )
        db.close()
        told = statemend("scan", home, "--baseline", known, "--format", "json")
        assert told.code == 1
        document = json.loads(told.out)
        assert "20260101_000000_abcdef" in {finding["subject"]["session"] for finding in document["findings"]}

    def test_what_was_not_looked_for_is_not_called_gone(
        self, statemend: Run, demo: Path, known: Path
    ) -> None:
        told = statemend("scan", demo, "--baseline", known, "--rules", "LIN", "--format", "json")
        baseline = json.loads(told.out)["baseline"]
        assert baseline["gone"] == []
        assert {id_[:3] for id_ in baseline["hidden"]} == {"LIN"}
        assert "ORP" in {id_[:3] for id_ in baseline["unknown"]}

    def test_a_mended_home_says_what_is_gone(self, statemend: Run, sound: Path, known: Path) -> None:
        told = statemend("scan", sound, "--baseline", known)
        number = len(json.loads(known.read_text())["findings"])
        assert told.code == 0
        assert f"{number} known findings of the baseline no longer found" in told.out

    def test_a_baseline_can_be_brought_up_to_date_in_place(
        self, statemend: Run, demo: Path, known: Path
    ) -> None:
        before = json.loads(known.read_text())["findings"]
        told = statemend("scan", demo, "--baseline", known, "--write-baseline", known)
        assert told.code == 0, told.err
        assert json.loads(known.read_text())["findings"] == before

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            ("", "not a baseline"),
            ('{"schema": "statemend/plan/v1"}', "statemend/plan/v1"),
            ("- a\n", "not a"),
        ],
    )
    def test_what_is_no_baseline_is_refused_before_the_audit(
        self, statemend: Run, demo: Path, tmp_path: Path, content: str, why: str
    ) -> None:
        path = tmp_path / "b.json"
        path.write_text(content)
        told = statemend("scan", demo, "--baseline", path)
        assert told.code == 2
        assert why in told.err
        assert len(told.err.splitlines()) == 1
        assert told.out == ""

    def test_one_that_is_not_there_or_no_file_is_refused(
        self, statemend: Run, demo: Path, tmp_path: Path
    ) -> None:
        for path in (tmp_path / "nowhere.json", tmp_path, Path("/dev/zero")):
            told = statemend("scan", demo, "--baseline", path)
            assert told.code == 2
            assert str(path) in told.err

    def test_one_that_is_too_large_is_refused_unread(
        self, statemend: Run, demo: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "b.json"
        with path.open("wb") as file:
            file.truncate(1 << 40)
        told = statemend("scan", demo, "--baseline", path)
        assert told.code == 2
        assert "too large" in told.err

    def test_it_replaces_nothing_but_a_baseline(self, statemend: Run, demo: Path, tmp_path: Path) -> None:
        report = tmp_path / "r.json"
        statemend("scan", demo, "-o", report)
        before = report.read_bytes()
        told = statemend("scan", demo, "--write-baseline", report)
        assert told.code == 4
        assert "not a baseline of statemend" in told.err
        assert report.read_bytes() == before
        assert statemend("scan", demo, "-o", tmp_path / "x", "--write-baseline", tmp_path / "x").code == 2

    def test_a_report_does_not_replace_a_baseline(self, statemend: Run, demo: Path, known: Path) -> None:
        before = known.read_bytes()
        assert statemend("scan", demo, "-o", known).code == 4
        assert known.read_bytes() == before

    def test_none_is_written_into_the_home(self, statemend: Run, demo: Path) -> None:
        before = snapshot(demo)
        assert statemend("scan", demo, "--write-baseline", demo / "known.json").code == 4
        assert snapshot(demo) == before
