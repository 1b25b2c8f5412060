"""EXP003 artifact-altered: files that are no longer as they were written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audit.builder import DATA, EXPORTED, START, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict
from statemend.formats.artifact import Kind
from statemend.formats.markdown import render
from statemend.store.connection import open_for_audit
from statemend.store.history import View, messages

pytestmark = pytest.mark.built("EXP003", "no release alters an export that it has written")

Build = Callable[..., HomeBuilder]
TOOLS = "20260801_100000_cccccc-tools"


def copy(home: HomeBuilder, folder: str, version: str = "0.19.0") -> Path:
    """Copy a folder of real exports into the home."""
    target = home.root / "session-exports" / folder
    shutil.copytree(DATA / "exports" / version / folder, target)
    return target


@pytest.mark.parametrize("version", EXPORTED)
def test_the_exports_of_every_release_are_intact(build: Build, version: str) -> None:
    home = build(version, rich=True)
    found = home.findings("EXP003", exports=[DATA / "exports" / version])
    assert [finding for finding in found if finding.verdict is Verdict.FAULT] == []
    assert {Path(finding.subject.artifact or "").name for finding in found} <= {
        "single-E-20260801_160000_666666.jsonl"
    }


@pytest.mark.fires("EXP003")
@pytest.mark.parametrize(("folder", "suffix"), [("md", "md"), ("qmd", "qmd")])
def test_a_changed_word_is_found(build: Build, folder: str, suffix: str) -> None:
    home = build()
    path = copy(home, folder) / f"{TOOLS}.{suffix}"
    path.write_bytes(path.read_bytes().replace(b"List files", b"Lose files"))
    (finding,) = home.findings("EXP003")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    assert finding.subject.artifact == str(path)
    assert finding.subject.session == "20260801_100000_cccccc"
    assert "checksum mismatch" in facts(finding)["what is wrong"]
    assert "files" not in finding.summary

    manifest = path.with_name("manifest.jsonl")
    manifest.write_text(manifest.read_text().replace('"exported_at": 17960', '"exported_at": 17950'))
    assert [finding.verdict for finding in home.findings("EXP003")] == [Verdict.FAULT]


def test_a_cut_file_is_found(build: Build) -> None:
    home = build()
    path = copy(home, "md") / f"{TOOLS}.md"
    path.write_bytes(path.read_bytes()[:900])
    (finding,) = home.findings("EXP003")
    assert "truncated" in finding.summary


@pytest.mark.parametrize("folder", ["jsonl", "only-user-prompts"])
def test_a_cut_line_is_found(build: Build, folder: str) -> None:
    home = build()
    path = copy(home, folder) / "all.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    found = [finding for finding in home.findings("EXP003") if finding.verdict is Verdict.FAULT]
    assert [finding.subject.artifact for finding in found] == [str(path)]


def test_a_page_that_does_not_end_is_found(build: Build) -> None:
    home = build()
    path = copy(home, "html") / "all.html"
    path.write_bytes(path.read_bytes()[:-200])
    assert [finding.subject.artifact for finding in home.findings("EXP003")] == [str(path)]


def test_a_file_whose_own_checksum_was_renewed_is_told_by_the_manifest(build: Build) -> None:
    home = build()
    folder = copy(home, "md")
    other = DATA / "exports" / "0.19.0" / "md-redact" / f"{TOOLS}.md"
    same_time = (folder / f"{TOOLS}.md").read_bytes().split(b"exported_at: ")[1].split(b"\n")[0]
    assert same_time != other.read_bytes().split(b"exported_at: ")[1].split(b"\n")[0]
    manifest = folder / "manifest.jsonl"
    digest = facts_of_manifest(manifest, TOOLS)
    manifest.write_text(manifest.read_text().replace(digest, "0" * 64))
    (finding,) = home.findings("EXP003")
    assert finding.verdict is Verdict.FAULT
    assert facts(finding)["sha256 in the manifest"] == "0" * 64
    assert facts(finding)["sha256 of the file"] == digest


def facts_of_manifest(manifest: Path, name: str) -> str:
    """The digest that a manifest lists for a file."""
    (line,) = [line for line in manifest.read_text().splitlines() if name in line]
    return line.split('"sha256": "')[1][:64]


def test_another_export_in_the_place_of_the_listed_one_is_undecidable(build: Build) -> None:
    home = build()
    folder = copy(home, "md")
    path = folder / f"{TOOLS}.md"
    digest = facts_of_manifest(folder / "manifest.jsonl", TOOLS)
    manifest = (folder / "manifest.jsonl").read_text().replace(digest, "0" * 64)
    lines = [
        line.replace('"exported_at": 17960', '"exported_at": 17950') if path.name in line else line
        for line in manifest.splitlines()
    ]
    (folder / "manifest.jsonl").write_text("\n".join(lines) + "\n")
    assert [finding.verdict for finding in home.findings("EXP003")] == [Verdict.UNDECIDABLE]


@pytest.mark.near_miss("EXP003")
def test_the_last_line_of_the_manifest_counts(build: Build) -> None:
    home = build()
    folder = copy(home, "md")
    manifest = folder / "manifest.jsonl"
    digest = facts_of_manifest(manifest, TOOLS)
    manifest.write_text(manifest.read_text().replace(digest, "0" * 64) + manifest.read_text())
    assert home.findings("EXP003") == []


def test_an_empty_jsonl_file_is_undecidable(build: Build) -> None:
    home = build()
    home.file("session-exports/empty.jsonl", b"")
    (finding,) = home.findings("EXP003")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.LOW)


def test_an_empty_file_that_the_manifest_lists_is_a_fault(build: Build) -> None:
    home = build()
    path = copy(home, "md") / f"{TOOLS}.md"
    path.write_bytes(b"")
    assert [finding.verdict for finding in home.findings("EXP003")] == [Verdict.FAULT]


def test_what_is_lawful_hides_nothing_behind_it(build: Build) -> None:
    home = build()
    home.file("a/empty.txt", b"")
    home.file("a/sessions/session_a.json", b"{")
    listed = {"session_id": "s", "message_count": 2, "exported_at": START, "format": "md"}
    lines = [
        json.dumps({**listed, "path": name, "sha256": "0" * 64})
        for name in ("x\0.md", "deep/down/y.md", "z.jsonl")
    ]
    manifest = home.file("a/manifest.jsonl", "".join(line + "\n" for line in lines))
    home.file("a/y.md", b"")
    line = (DATA / "exports/0.19.0/jsonl/single-P-20260801_090000_aaaaaa.jsonl").read_bytes()
    home.file("a/z.jsonl", line)
    cut = home.file("a/x.jsonl", b"\xef\xbb\xbf \n" + line[:-40])

    found = {
        Path(each.subject.artifact or "").name: each
        for each in home.findings("EXP003", exports=[home.root / "a"])
    }

    assert found.keys() == {"x.jsonl", "y.md", "z.jsonl"}
    assert {each.verdict for each in found.values()} == {Verdict.FAULT}
    assert facts(found["y.md"])["manifest"] == str(manifest)
    assert found["x.jsonl"].subject.artifact == str(cut)


def test_another_empty_file_is_silent(build: Build) -> None:
    home = build()
    home.file("session-exports/note.txt", b"")
    assert home.findings("EXP003") == []


def test_a_text_that_contains_an_export_is_undecidable(build: Build) -> None:
    home = build()
    line = (DATA / "exports/0.19.0/jsonl/single-P-20260801_090000_aaaaaa.jsonl").read_text()
    home.file("session-exports/console.txt", "$ hermes sessions export -\n" + line + "[exit 0]\n")
    assert [finding.verdict for finding in home.findings("EXP003")] == [Verdict.UNDECIDABLE]


def test_it_speaks_when_the_store_cannot_be_opened(build: Build) -> None:
    home = build()
    path = copy(home, "md") / f"{TOOLS}.md"
    path.write_bytes(path.read_bytes()[:900])
    home.store.write_bytes(b"not a store at all, only a text that is long enough to be read" * 20)
    assert len(home.findings("EXP003")) == 1


SAVED_ANEW = {
    "with the line ends of Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "with these behind a mark": lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    "behind a mark": lambda data: b"\xef\xbb\xbf" + data,
    "without its last newline": lambda data: data.rstrip(b"\n"),
    "with an empty line behind it": lambda data: data + b"\n",
}


@pytest.mark.parametrize("save", SAVED_ANEW.values(), ids=SAVED_ANEW)
def test_the_listed_file_that_was_only_saved_anew_is_a_leftover(
    build: Build, save: Callable[[bytes], bytes]
) -> None:
    home = build()
    path = copy(home, "md") / f"{TOOLS}.md"
    path.write_bytes(save(path.read_bytes()))
    (finding,) = home.findings("EXP003")
    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.LOW)


@pytest.mark.parametrize(
    ("lost", "gone", "expected"),
    [
        (1, False, Verdict.UNDECIDABLE),
        (8, False, Verdict.FAULT),
        (8, True, Verdict.UNDECIDABLE),
    ],
    ids=["the last newline", "a part of the last text", "as much, of sessions that are gone"],
)
def test_an_end_without_a_newline_is_judged_by_the_store(
    build: Build, lost: int, gone: bool, expected: Verdict
) -> None:
    home = build("0.19.0", rich=True)
    data = (DATA / "exports/0.19.0/only-user-prompts/multi-cli.md").read_bytes()
    home.file("session-exports/prompts.md", data[:-lost])
    if gone:
        home.sql("DELETE FROM messages", "DELETE FROM sessions")
    assert [finding.verdict for finding in home.findings("EXP003")] == [expected]


CRLF = {
    "to those of Unix": lambda data: data.replace(b"\r\n", b"\n"),
    "to those of Windows": lambda data: data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "as Python reads text": lambda data: data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"),
}


def of_two_kinds(home: HomeBuilder, lineage: tuple[str, ...] = ()) -> Path:
    """An export of sessions whose messages have line ends of every kind."""
    sessions = lineage or ("s",)
    for number, each in enumerate(sessions):
        home.session(each, started_at=START + 100 * number)
        for text in ("one\r\ntwo", "plain\nlines", "a lone\rone", "and two\r\r\nof them", "the end\r\n"):
            home.message(each, "user", text)
    with open_for_audit(home.store) as store:
        segments = [(each, list(messages(store, each, View.RAW))) for each in sessions]
    fields = {"id": sessions[-1], "title": "Ends", "source": "cli", "started_at": START, "model": "m"}
    text = render(fields, segments, kind=Kind.MARKDOWN, exported_at=START + 9000, lineage=lineage)
    return home.file("session-exports/ends.md", text.encode())


@pytest.mark.parametrize("lineage", [(), ("first", "second")], ids=["single", "lineage"])
@pytest.mark.parametrize("convert", CRLF.values(), ids=CRLF)
def test_line_ends_inside_of_messages_may_be_converted_too(
    build: Build, convert: Callable[[bytes], bytes], lineage: tuple[str, ...]
) -> None:
    home = build("0.19.0")
    path = of_two_kinds(home, lineage)
    written = path.read_bytes()
    assert home.findings("EXP003") == []
    path.write_bytes(convert(written))
    (finding,) = home.findings("EXP003")
    assert (finding.verdict, finding.severity) == (Verdict.LEFTOVER, Severity.LOW)
    assert home.findings("EXP005") == []

    path.write_bytes(convert(written).replace(b"plain", b"other"))
    assert [finding.verdict for finding in home.findings("EXP003")] == [Verdict.FAULT]


def test_of_a_session_that_is_gone_a_conversion_cannot_be_told(build: Build) -> None:
    home = build("0.19.0")
    path = of_two_kinds(home)
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
    home.sql("DELETE FROM messages", "DELETE FROM sessions")
    assert [finding.verdict for finding in home.findings("EXP003")] == [Verdict.FAULT]
