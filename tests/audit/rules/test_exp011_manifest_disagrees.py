"""EXP011 manifest-disagrees: what a manifest lists, and what is there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import DATA, EXPORTED, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

pytestmark = pytest.mark.built("EXP011", "people move and delete exports, no release does")

Build = Callable[..., HomeBuilder]
TOOLS = "20260801_100000_cccccc"
FILE = f"{TOOLS}-tools.md"


@pytest.fixture
def home(build: Build) -> HomeBuilder:
    """A home with a folder of real exports and their manifest, and the store they were made from."""
    home = build("0.19.0", rich=True)
    shutil.copytree(DATA / "exports/0.19.0/md", home.root / "session-exports" / "md")
    return home


def folder(home: HomeBuilder) -> Path:
    return home.root / "session-exports" / "md"


def drop(home: HomeBuilder) -> None:
    """Delete the session as Hermes does."""
    home.sql(
        f"DELETE FROM messages WHERE session_id = '{TOOLS}'", f"DELETE FROM sessions WHERE id = '{TOOLS}'"
    )


@pytest.mark.parametrize("version", EXPORTED)
def test_the_manifests_of_every_release_agree_with_their_files(build: Build, version: str) -> None:
    home = build(version, rich=True)
    found = home.findings("EXP011", exports=[DATA / "exports" / version])
    assert [each for each in found if each.verdict is not Verdict.LEFTOVER] == []


@pytest.mark.fires("EXP011")
def test_a_missing_export_of_a_session_that_is_gone(home: HomeBuilder) -> None:
    (folder(home) / FILE).unlink()
    drop(home)
    (finding,) = home.findings("EXP011")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.HIGH)
    assert finding.subject.session == TOOLS
    assert finding.subject.artifact == str(folder(home) / "manifest.jsonl")
    assert facts(finding)["messages in it"] == 9


def test_a_missing_export_of_a_session_that_is_there_is_a_leftover(home: HomeBuilder) -> None:
    (folder(home) / FILE).unlink()
    (finding,) = home.findings("EXP011")
    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.INFO)
    assert facts(finding)["sessions"] == [TOOLS]


def test_a_missing_export_whose_session_another_file_holds_is_a_leftover(home: HomeBuilder) -> None:
    (folder(home) / FILE).unlink()
    drop(home)
    other = DATA / f"exports/0.19.0/jsonl/single-T-{TOOLS}.jsonl"
    home.file(f"session-exports/{other.name}", other.read_bytes())
    assert [finding.verdict for finding in home.findings("EXP011")] == [Verdict.LEFTOVER]


@pytest.mark.parametrize("place", ["md/renamed.md", "elsewhere/renamed.md"])
def test_a_file_that_was_renamed_or_moved_is_known_by_its_checksum(home: HomeBuilder, place: str) -> None:
    target = home.root / "session-exports" / place
    target.parent.mkdir(exist_ok=True)
    shutil.move(folder(home) / FILE, target)
    drop(home)
    assert home.findings("EXP011") == []
    assert home.findings("EXP003") == []


def test_an_export_that_is_not_listed(home: HomeBuilder) -> None:
    manifest = folder(home) / "manifest.jsonl"
    manifest.write_text("".join(line for line in manifest.read_text().splitlines(True) if FILE not in line))
    (finding,) = home.findings("EXP011")
    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.INFO)
    assert facts(finding)["names"] == [FILE]


def test_all_of_a_manifest_that_are_missing_and_all_that_are_not_listed_are_one_finding(
    home: HomeBuilder,
) -> None:
    manifest = folder(home) / "manifest.jsonl"
    lines = manifest.read_text().splitlines(keepends=True)
    names = list(dict.fromkeys(json.loads(line)["path"].split("/")[-1] for line in lines))
    for name in names[:2]:
        (folder(home) / name).unlink()
    manifest.write_text("".join(x for x in lines if not any(y in x for y in names[-2:])) + "no line\n")
    missing, unlisted = home.findings("EXP011")
    assert missing.summary.startswith("2 files that the manifest lists are not here")
    assert unlisted.summary.startswith("2 exports beside the manifest are not listed")


def test_a_file_that_could_not_be_read_is_not_missing(home: HomeBuilder) -> None:
    path = folder(home) / FILE
    path.unlink()
    path.mkdir()
    drop(home)
    assert home.findings("EXP011") == []


def test_other_formats_are_not_listed_by_any_manifest(home: HomeBuilder) -> None:
    for file in ("jsonl/all.jsonl", "html/all.html"):
        shutil.copy(DATA / "exports/0.19.0" / file, folder(home))
    assert home.findings("EXP011") == []


@pytest.mark.near_miss("EXP011")
def test_a_changed_file_is_told_of_by_another_rule(home: HomeBuilder) -> None:
    path = folder(home) / FILE
    path.write_bytes(path.read_bytes().replace(b"List files", b"Lose files"))
    assert home.findings("EXP011") == []
    assert [finding.rule for finding in home.findings("EXP003")] == ["EXP003"]
