"""Folders full of what is no export, and exports that lie: read within bounds, or left with a reason."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import socket
import stat
import zipfile
from pathlib import Path

import pytest
from tests.e2e.conftest import DATA
from tests.e2e.running import Audit, Statemend, found, rules

EXPORTS = DATA / "exports" / "0.22.2"
SID = "20260801_090000_aaaaaa"
JSONL = (EXPORTS / "jsonl" / "all.jsonl").read_bytes()
MARKDOWN = next((EXPORTS / "md").glob(f"{SID}*.md")).read_bytes()
PAGE = next((EXPORTS / "html").glob("single-*.html")).read_bytes()
LEADS_OUT = "a symbolic link that leads out of the folders looked at; name its target with --exports"
LINE = (
    f"2026-08-01 10:00:00,123 WARNING [{SID}] agent: Session DB append_message failed: database is locked\n"
)


@pytest.fixture
def exports(home: Path) -> Path:
    folder = home / "session-exports"
    folder.mkdir()
    return folder


@pytest.fixture
def logs(home: Path) -> Path:
    folder = home / "logs"
    folder.mkdir()
    return folder


def skipped(document: dict[str, object], below: Path) -> dict[str, str]:
    """What a report left out below a folder, by relative path, with the reason."""
    entries = document["skipped"]
    assert isinstance(entries, list)
    return {os.path.relpath(entry["path"], below): entry["reason"] for entry in entries}


def test_nothing_that_would_block_is_opened(audit: Audit, home: Path, exports: Path) -> None:
    os.mkfifo(exports / "a.jsonl")
    os.mkfifo(home / "logs")
    os.mkfifo(home / "sessions")
    (exports / "zero.jsonl").symlink_to("/dev/zero")
    (exports / "stdin").symlink_to("/dev/stdin")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(exports)
        try:
            listening.bind("socket.md")
        finally:
            os.chdir(here)
        document = audit(home, code=0)
    assert skipped(document, home) == {
        "logs": "a named pipe",
        "sessions": "a named pipe",
        "session-exports/a.jsonl": "a named pipe",
        "session-exports/socket.md": "a socket",
        "session-exports/zero.jsonl": LEADS_OUT,
        "session-exports/stdin": LEADS_OUT,
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_is_not_opened(audit: Audit, home: Path, exports: Path) -> None:
    try:
        os.mknod(exports / "zero.md", 0o644 | stat.S_IFCHR, os.makedev(1, 5))
    except OSError:
        pytest.skip("this machine lets nobody make a device")
    assert skipped(audit(home, code=0), exports) == {"zero.md": "a device"}


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="no file here blocks who reads it")
def test_a_file_of_the_system_that_blocks_is_not_read(statemend: Statemend, home: Path) -> None:
    told = statemend("scan", home, "--exports", "/proc/kmsg", "--format", "json")
    assert (told.code, told.err) == (0, "")
    assert [entry["kind"] for entry in json.loads(told.out)["artifacts"]] == ["empty"]


def test_links_are_followed_in_and_never_out(audit: Audit, home: Path, exports: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "all.jsonl").write_bytes(JSONL)
    (home / "kept").mkdir()
    (home / "kept" / "all.jsonl").write_bytes(JSONL)
    for name, target in {
        "here": ".",
        "up": "..",
        "itself": "itself",
        "one": "two",
        "two": "one",
        "nothing": "gone",
        "out": secret,
        "file": secret / "all.jsonl",
        "passwd": "/etc/passwd",
        "in": "../kept",
    }.items():
        (exports / name).symlink_to(target)
    document = audit(home, code=3)
    reasons = skipped(document, exports)
    assert {reasons.pop(name) for name in ("out", "file", "passwd")} == {LEADS_OUT}
    assert reasons.pop("nothing") == "a symbolic link to nothing"
    assert {reasons.pop(name) for name in ("itself", "one", "two")} == {
        "could not be read: Too many levels of symbolic links"
    }
    assert [Path(each["path"]).name for each in document["artifacts"]] == ["all.jsonl"]
    assert str(secret) not in json.dumps(document["artifacts"])


def test_a_folder_of_the_home_that_leads_out_is_read_when_it_is_named(
    audit: Audit, home: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(EXPORTS / "md", elsewhere)
    (home / "session-exports").symlink_to(elsewhere)
    document = audit(home, code=0)
    assert skipped(document, home) == {"session-exports": LEADS_OUT}
    assert document["artifacts"] == []
    named = audit(home, "--exports", home / "session-exports", code=0)
    assert len(named["artifacts"]) > 10


def test_a_folder_deeper_than_a_path_may_be_long_ends(audit: Audit, home: Path, exports: Path) -> None:
    here = Path.cwd()
    os.chdir(exports)
    try:
        for _ in range(60):
            os.mkdir("d" * 60)
            os.chdir("d" * 60)
        Path("all.jsonl").write_bytes(JSONL)
        for _ in range(10):
            os.mkdir("d" * 60)
            os.chdir("d" * 60)
    finally:
        os.chdir(here)
    document = audit(home, code=3)
    assert len(document["artifacts"]) == 1
    ((path, reason),) = skipped(document, exports).items()
    assert reason == "could not be read: File name too long"
    assert len(path) > 3800


def test_five_thousand_files_of_noise_are_each_left_with_a_reason(
    statemend: Statemend, home: Path, exports: Path
) -> None:
    noise = random.Random(3)
    for number in range(5000):
        (exports / f"{number}").write_bytes(noise.randbytes(noise.randrange(1, 100)))
    told = statemend("scan", home, "--format", "json")
    assert (told.code, told.err) == (0, "")
    document = json.loads(told.out)
    assert len(document["skipped"]) + len(document["artifacts"]) == 5000
    assert not any(entry["unread"] for entry in document["skipped"])


def test_empty_files_are_no_fault(audit: Audit, home: Path, exports: Path, logs: Path) -> None:
    for name in ("a.jsonl", "b.md", "c.html", "manifest.jsonl", "d.qmd"):
        (exports / name).touch()
    for name in ("agent.log", "agent.log.1.gz", "errors.log"):
        (logs / name).touch()
    document = audit(home, code=0)
    told = {(finding["rule"], finding["verdict"]) for finding in document["findings"]}
    assert {verdict for rule, verdict in told if rule != "EXP012"} <= {"undecidable"}
    assert rules(document, "could not run") == {}


HEAD = b'{"id":"%s","source":"cli",' % SID.encode()
DAMAGED_JSONL = {
    "nested without end": HEAD
    + b'"messages":[{"role":"user","content":'
    + b"[" * 200_000
    + b"]" * 200_000
    + b"}]}\n",
    "nested and cut": HEAD + b'"messages":[{"role":"user","content":' + b'{"a":' * 100_000,
    "cut": JSONL[:-100],
    "not UTF-8": JSONL.replace(b"e", b"\xff", 3),
    "entries that are no messages": HEAD + b'"messages":[7,null,{"role":5},"x",[]]}\n',
    "no messages": HEAD + b'"messages":"none"}\n' + JSONL,
    "with NULs": JSONL.replace(b"a", b"\0", 50),
    "numbers without end": HEAD
    + b'"message_count":%s,"messages":[{"role":"user","content":"x","id":%s}]}\n' % (b"9" * 5000, b"9" * 400),
}
ODD_JSONL = {
    "after a byte order mark": b"\xef\xbb\xbf" + JSONL,
    "with line ends of Windows": JSONL.replace(b"\n", b"\r\n"),
    "of every wrong type": HEAD
    + b'"title":[],"started_at":"x","parent_session_id":{},"lineage_session_ids":[1,null,"\\ud800"],'
    b'"message_count":-5,"messages":[{"role":"user","content":{"a":[1]},"tool_calls":{"x":1},"id":"z",'
    b'"timestamp":"y","active":"no"}]}\n',
    "with lone surrogates": b'{"id":"\\ud800\\udc00\\ud800","source":"cli","title":"\\udfff","messages":'
    b'[{"role":"user","content":"\\ud800"}]}\n',
    "with times beyond the calendar": HEAD
    + b'"started_at":1e999,"messages":[{"role":"user","content":"x","timestamp":8e252}]}\n',
    "with a line of 8 MB": HEAD + b'"messages":[{"role":"user","content":"' + b"a" * 8_000_000 + b'"}]}\n',
    "with 20,000 messages": HEAD
    + b'"messages":['
    + b",".join([b'{"role":"user","content":"a"}'] * 20_000)
    + b"]}\n",
}


@pytest.mark.parametrize("name", DAMAGED_JSONL)
def test_a_damaged_jsonl_export_is_a_finding(audit: Audit, home: Path, exports: Path, name: str) -> None:
    (exports / "x.jsonl").write_bytes(DAMAGED_JSONL[name])
    document = audit(home, code=1)
    assert [finding["verdict"] for finding in found(document, "EXP003")] == ["fault"]
    assert rules(document, "could not run") == {}


@pytest.mark.parametrize("name", ODD_JSONL)
def test_an_odd_jsonl_export_is_read_for_what_it_is(
    audit: Audit, home: Path, exports: Path, name: str
) -> None:
    (exports / "x.jsonl").write_bytes(ODD_JSONL[name])
    document = audit(home, code=0)
    assert found(document, "EXP003") == []
    assert rules(document, "could not run") == {}


def test_an_export_in_another_encoding_is_told_and_leaves_something_open(
    audit: Audit, home: Path, exports: Path
) -> None:
    (exports / "x.jsonl").write_bytes(JSONL.decode().encode("utf-16"))
    (skipped,) = audit(home, code=3)["skipped"]
    assert (skipped["unread"], skipped["reason"]) == (
        True,
        "a file of the kind jsonl, in UTF-16; save it as UTF-8 to have it read",
    )


FOOTER = MARKDOWN.rindex(b"\n\n## Export verification")
DAMAGED_MARKDOWN = {
    "with 10,000 headings": MARKDOWN[:FOOTER] + b"\n\n\n### User" * 10_000 + MARKDOWN[FOOTER:],
    "with fences": MARKDOWN[:FOOTER] + b"\n```" * 100_000 + MARKDOWN[FOOTER:],
    "with bytes that are no text": MARKDOWN[:300] + b"\xff\xfe\0\0" + MARKDOWN[300:],
    "cut": MARKDOWN[: len(MARKDOWN) // 2],
    "with a front matter without end": MARKDOWN[:20] + b'title: "a"\n' * 50_000,
}


@pytest.mark.parametrize("name", DAMAGED_MARKDOWN)
def test_a_damaged_markdown_export_is_a_finding(audit: Audit, home: Path, exports: Path, name: str) -> None:
    (exports / "x.md").write_bytes(DAMAGED_MARKDOWN[name])
    document = audit(home, code=1)
    assert [finding["verdict"] for finding in found(document, "EXP003")] == ["fault"]
    assert rules(document, "could not run") == {}


def test_a_markdown_export_that_is_there_twice_in_a_file_is_read_twice(
    audit: Audit, home: Path, exports: Path
) -> None:
    (exports / "x.md").write_bytes(MARKDOWN + MARKDOWN)
    document = audit(home, code=0)
    assert found(document, "EXP003") == []
    (entry,) = (each for each in document["sessions"] if each["id"] == SID)
    assert [each["lossy"] for each in entry["artifacts"]] == [entry["display"]] * 2


def test_a_hundred_thousand_headings_are_counted_and_none_is_a_message(
    statemend: Statemend, home: Path, exports: Path
) -> None:
    (exports / "x.md").write_bytes(MARKDOWN[:FOOTER] + b"\n\n\n### User" * 100_000 + MARKDOWN[FOOTER:])
    document = json.loads(statemend("scan", home, "--format", "json").out)
    (entry,) = (each for each in document["sessions"] if each["id"] == SID)
    (holding,) = entry["artifacts"]
    assert holding["lossy"] == entry["display"]


@pytest.mark.parametrize("name", ["mark", "line ends"])
def test_a_markdown_export_that_an_editor_saved_again_is_read(
    audit: Audit, home: Path, exports: Path, name: str
) -> None:
    saved = b"\xef\xbb\xbf" + MARKDOWN if name == "mark" else MARKDOWN.replace(b"\n", b"\r\n")
    (exports / "x.md").write_bytes(saved)
    document = audit(home, code=0)
    (entry,) = (each for each in document["sessions"] if each["id"] == SID)
    (holding,) = entry["artifacts"]
    assert (holding["missing"], holding["extra"]) == (0, 0)


INSIDE = PAGE.rindex(b"</body>") if b"</body>" in PAGE else len(PAGE) // 2
PAGES = {
    "a flood of entities": (PAGE[:INSIDE] + b"&amp;lt;&#x1F600;&bogus;&#0;" * 50_000 + PAGE[INSIDE:], 0),
    "messages in messages": (PAGE[:INSIDE] + b'<div class="message">' * 20_000 + PAGE[INSIDE:], None),
    "elements without end": (PAGE[:INSIDE] + b"<b>" * 50_000 + PAGE[INSIDE:], None),
    "attributes without end": (PAGE[:INSIDE] + b"<div " + b"a=b " * 50_000 + b">" + PAGE[INSIDE:], None),
    "NULs": (PAGE.replace(b"e", b"\0", 100), None),
    "a mark": (b"\xef\xbb\xbf" + PAGE, 0),
    "line ends of Windows": (PAGE.replace(b"\n", b"\r\n"), 0),
    "half": (PAGE[: len(PAGE) // 2], 1),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_anything_is_read_within_bounds(
    statemend: Statemend, audit: Audit, home: Path, exports: Path, name: str
) -> None:
    data, code = PAGES[name]
    (exports / "x.html").write_bytes(data)
    told = statemend("scan", home, "--format", "json")
    assert told.code in ((0, 1) if code is None else (code,))
    assert rules(audit(home, code=told.code), "could not run") == {}


@pytest.mark.parametrize("pattern", ["md/*.md", "qmd/*.qmd", "only-user-prompts/*.md"])
def test_an_export_too_large_to_be_held_leaves_something_open(
    statemend: Statemend, home: Path, exports: Path, pattern: str
) -> None:
    source = min(EXPORTS.glob(pattern))
    huge = exports / f"huge{source.suffix}"
    huge.write_bytes(source.read_bytes())
    os.truncate(huge, 2 << 30)  # a hole: it takes no room
    told = statemend("scan", home, "--format", "json")
    document = json.loads(told.out)
    assert (told.code, told.err) == (3, "")
    assert document["skipped"] == [
        {"path": str(huge), "reason": "too large to be read (2,147,483,648 bytes)", "unread": True}
    ]


def line_of_manifest(path: str, **others: object) -> str:
    members: dict[str, object] = {
        "exported_at": 1.79e9,
        "format": "md",
        "lineage_session_ids": [SID],
        "message_count": 3,
        "path": path,
        "session_id": SID,
        "sha256": "a" * 64,
    }
    return json.dumps(members | others) + "\n"


ELSEWHERE = (
    "/etc/passwd",
    "../../../etc/passwd",
    "../state.db",
    "..",
    ".",
    "",
    "/",
    "a\0b",
    "x" * 5000,
    "\ud800",
    "C:\\x\\y.md",
    "x.md/",
    "\n",
)


def test_a_manifest_that_names_the_impossible_reaches_nothing(
    audit: Audit, home: Path, exports: Path
) -> None:
    (exports / "manifest.jsonl").write_text("".join(map(line_of_manifest, ELSEWHERE)))
    document = audit(home, code=0)
    told = [(each["rule"], each["verdict"]) for each in document["findings"]]
    assert told == [("EXP011", "leftover"), ("EXP012", "leftover")]
    assert rules(document, "could not run") == {}
    assert "root:x:0" not in json.dumps(document)


def test_a_manifest_counts_for_the_file_beside_it_whatever_folder_it_names(
    audit: Audit, home: Path, exports: Path
) -> None:
    (exports / "x.md").write_bytes(MARKDOWN)
    (exports / "manifest.jsonl").write_text(
        line_of_manifest("/home/of/another/x.md", exported_at=1e308, message_count=-1)
        + '{"sha256": 1}\nnull\n[]\n{"sha256": "'
        + "[" * 1000
    )
    document = audit(home, code=1)
    reasons = {Path(each["subject"]["artifact"]).name: each["summary"] for each in found(document, "EXP003")}
    assert "not the file that the manifest lists" in reasons["x.md"]
    assert "unreadable" in reasons["manifest.jsonl"]


@pytest.fixture
def bombs(logs: Path) -> Path:
    line = LINE.encode()
    with gzip.open(logs / "agent.log.1.gz", "wb", compresslevel=1) as file:
        file.write(line)
        for _ in range(600):
            file.write(bytes(1 << 20))
    (logs / "agent.log.2.gz").write_bytes(gzip.compress(line * 1000)[:-20])
    (logs / "agent.log.3.gz").write_bytes(gzip.compress(gzip.compress(line)))
    (logs / "agent.log.4.gz").write_bytes(b"\x1f\x8b\x08" + random.Random(5).randbytes(2000))
    (logs / "agent.log").write_bytes(line[:-1] + b"A" * 3_000_000 + b"\n" + b"\xff\xfe" + line + line[:50])
    (logs / "gateway.log").write_bytes(line.replace(SID.encode(), b"\x1b[2J\xff<b>") * 5)
    return logs


def test_logs_that_unpack_without_end_are_read_to_a_bound(
    statemend: Statemend, home: Path, bombs: Path
) -> None:
    told = statemend("scan", home, "--format", "json")
    document = json.loads(told.out)
    assert told.code == 3
    assert rules(document, "could not run") == {}
    unread = [Path(each["path"]).name for each in document["skipped"] if each["unread"]]
    assert unread == ["agent.log.3.gz"]  # packed twice
    damage = {Path(each["path"]).name: each["damage"] for each in document["artifacts"]}
    assert damage == {
        "agent.log": None,
        "agent.log.1.gz": "the gzip unpacks to more than 512 MiB, the rest was not read",
        "agent.log.2.gz": "the gzip is cut off",
        "gateway.log": None,
    }
    assert {each["subject"]["session"] for each in found(document, "ORP004")} == {SID, "\x1b[2J\\xff<b>"}


BROKEN = {
    "tab": b"\tsessions: [\n",
    "nested": b"[" * 2_000,
    "code": b"!!python/object/apply:os.system ['touch pwned']\n",
    "number": b"sessions:\n  retention_days: " + b"9" * 5000 + b"\n",
    "date": b"sessions: 2001-99-99\n",
    "keys": b"{[a]: b, {c: d}: e}\n",
    "noise": random.Random(1).randbytes(3000),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_configuration_is_told_and_stops_nothing(audit: Audit, home: Path, name: str) -> None:
    (home / "config.yaml").write_bytes(BROKEN[name])
    document = audit(home, code=3)
    (reason,) = skipped(document, home).values()
    assert reason.startswith("not valid YAML")
    assert rules(document, "could not run").keys() == {"EXP010", "EXP012"}


@pytest.mark.parametrize(
    "content",
    [
        b"a: &a [*a]\nsessions: *a\n",
        b"a: &a [x, x]\n" + b"".join(b"%c: &%c [*%c, *%c]\n" % (n + 1, n + 1, n, n) for n in range(97, 121)),
        b"sessions:\n  auto_prune: [1]\n  retention_days: {a: .nan}\n",
        b"sessions: {auto_prune: true, retention_days: -1e400}\n",
        b"sessions: {auto_prune: true, retention_days: 1e400}\n",
        b"",
    ],
)
def test_a_strange_configuration_is_taken_as_it_is(audit: Audit, home: Path, content: bytes) -> None:
    (home / "config.yaml").write_bytes(content)
    document = audit(home, code=0)
    assert document["skipped"] == []
    assert rules(document, "could not run") == {}


def test_a_configuration_that_is_no_file_leaves_something_open(audit: Audit, home: Path) -> None:
    (home / "config.yaml").mkdir()
    document = audit(home, code=3)
    assert document["verdict"] == (
        "No fault found, but 2 rules could not run and 1 file could not be read, "
        "so this home cannot be called clean."
    )
    assert document["skipped"] == [
        {"path": str(home / "config.yaml"), "reason": "not a regular file", "unread": True}
    ]


def zipped(path: Path, name: str = "state.db", data: bytes = b"", *, mode: int = 0) -> None:
    entry = zipfile.ZipInfo(name)
    entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(entry, data)


def test_archives_that_play_tricks_are_left_with_a_reason(audit: Audit, home: Path) -> None:
    backups = home / "backups"
    zipped(backups / "bomb.zip", data=bytes(70 * 1024**2))
    zipped(backups / "climbs.zip", name="../../state.db", data=b"x")
    zipped(backups / "link.zip", data=b"/etc/passwd", mode=stat.S_IFLNK | 0o777)
    zipped(backups / "none.zip", name="notes.txt", data=b"x")
    before = sorted(home.iterdir())
    document = audit(home, code=3)
    reasons = skipped(document, backups)
    assert reasons["bomb.zip"].endswith("as only a bomb is")
    assert reasons["climbs.zip"] == "the name of its state.db leads out of the archive"
    assert reasons["link.zip"] == "its state.db is a link or no regular file"
    assert reasons["none.zip"] == "an archive without a state.db"
    assert sorted(home.iterdir()) == before


def test_other_stores_that_are_broken_are_said_to_be_and_stop_nothing(audit: Audit, home: Path) -> None:
    snapshots = home / "state-snapshots"
    whole = (home / "state.db").read_bytes()
    spoilt = {
        "cut": whole[: len(whole) // 2],
        "header alone": whole[:100],
        "scrambled": whole[:100] + random.Random(1).randbytes(len(whole) - 100),
        "no tables": whole[:100] + bytes(len(whole) - 100),
    }
    for name, data in spoilt.items():
        (snapshots / name).mkdir(parents=True)
        (snapshots / name / "state.db").write_bytes(data)
    os.mkfifo(snapshots / "pipe")
    document = audit(home, code=0)
    stores = [each for each in document["artifacts"] if each["kind"] == "store"]
    assert {Path(each["path"]).parent.name for each in stores if each["damage"]} == set(spoilt)
