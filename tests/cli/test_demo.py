"""``statemend demo`` does its job once, says where things are, and never writes over anything."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest

from statemend.cli.app import run

#: What the demo is there to show: each kind of damage, by rule.
SHOWN = {
    "EXP001", "EXP002", "EXP004", "EXP010", "EXP012", "LIN001", "LIN002", "LIN003", "LIN008", "LIN009",
    "ORP001", "ORP004",
}  # fmt: skip


def test_demo_builds_audits_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"
    assert run(["demo", str(home)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    reports = [tmp_path / "home-reports" / f"audit.{suffix}" for suffix in ("html", "md", "json")]
    for path in (home, *reports):
        assert str(path) in said.out
    assert {stat.S_IMODE(path.stat().st_mode) for path in reports} == {0o600}


def test_demo_shows_each_kind_of_damage_and_no_other(tmp_path: Path) -> None:
    assert run(["demo", str(tmp_path / "home")]) == 0
    report = msgspec.json.decode((tmp_path / "home-reports" / "audit.json").read_bytes())
    assert {finding["rule"] for finding in report["findings"]} == SHOWN
    aside = {rule["id"] for rule in report["rules"] if rule["status"] not in ("clean", "findings")}
    assert aside == {"PRO002"}, "the demo home has no profiles"


def test_scan_of_the_demo_home_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", str(tmp_path / "home")]) == 0
    kept = msgspec.json.decode((tmp_path / "home-reports" / "audit.json").read_bytes())
    capsys.readouterr()
    assert run(["scan", str(tmp_path / "home"), "--format", "json"]) == 1
    scanned = msgspec.json.decode(capsys.readouterr().out)
    assert [finding["id"] for finding in scanned["findings"]] == [
        finding["id"] for finding in kept["findings"]
    ]


@pytest.mark.parametrize("taken", ["home", "home-reports"])
def test_demo_leaves_what_is_there_alone(
    tmp_path: Path, taken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / taken).mkdir()
    (tmp_path / taken / "mine").write_text("mine")
    assert run(["demo", str(tmp_path / "home")]) == 2
    assert "already holds something" in capsys.readouterr().err
    assert [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()] == [
        Path(taken, "mine")
    ]


def test_demo_without_a_folder_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "."]) == 2
    assert capsys.readouterr().err.startswith("statemend: ")


def test_finding_ids_outlast_a_move_of_the_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["demo", str(tmp_path / "home")]) == 0
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home").rename(tmp_path / "elsewhere" / "moved")
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    named = []
    for path in ("elsewhere/moved", str(tmp_path / "elsewhere" / "moved" / "state.db")):
        assert run(["scan", path, "--format", "json"]) == 1
        named.append([finding["id"] for finding in msgspec.json.decode(capsys.readouterr().out)["findings"]])
    kept = msgspec.json.decode((tmp_path / "home-reports" / "audit.json").read_bytes())
    assert named == [[finding["id"] for finding in kept["findings"]]] * 2
