from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.formats.corpus import EXPORTS, READABLE, VERSIONS, files

from statemend.errors import UsageError
from statemend.evidence.inventory import Home, Inventory, find_home, take
from statemend.evidence.partial import partial_name
from statemend.formats.artifact import Kind

LOG_LINE = "2026-08-01 09:00:00,123 WARNING [s1] hermes_state: Session DB append_message failed: x\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with one export of each kind."""
    root = tmp_path / "home"
    exports = root / "session-exports"
    exports.mkdir(parents=True)
    (root / "sessions" / "saved").mkdir(parents=True)
    (root / "logs").mkdir()
    shutil.copyfile(EXPORTS / "0.19.0" / "state.db", root / "state.db")
    for pattern in ("md/2*_100000*.md", "md/manifest.jsonl", "qmd/2*_100000*.qmd", "jsonl/all.jsonl"):
        shutil.copy(files("0.19.0", pattern)[0], exports)
    shutil.copy(files("0.19.0", "html/all.html")[0], root / "sessions" / "saved" / "page.html")
    shutil.copy(files("0.19.0", "only-user-prompts/all.jsonl")[0], exports / "prompts.txt")
    (root / "logs" / "agent.log").write_text(LOG_LINE)
    return find_home(root)


def names(inventory: Inventory) -> dict[str, Kind]:
    return {Path(each.path).name: each.kind for each in inventory.artifacts}


def reasons(inventory: Inventory) -> dict[str, str]:
    return {Path(each.path).name: each.reason for each in inventory.skipped}


def test_finds_a_home_by_its_folder_or_its_store(home: Home) -> None:
    assert find_home(Path(home.store)) == home
    assert find_home(Path(home.root)) == home


def test_a_folder_without_a_store_is_no_home(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no state\.db in this folder"):
        find_home(tmp_path)


def test_a_path_that_does_not_exist_is_no_home(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        find_home(tmp_path / "nothing")


def test_tells_every_kind_by_its_content(home: Home) -> None:
    inventory = take(home)
    assert names(inventory) == {
        "20260801_100000_cccccc-tools.md": Kind.MARKDOWN,
        "20260801_100000_cccccc-tools.qmd": Kind.QMD,
        "all.jsonl": Kind.JSONL,
        "prompts.txt": Kind.PROMPTS_JSONL,
        "page.html": Kind.HTML,
    }
    assert [Path(each.path).name for each in inventory.logs] == ["agent.log"]
    assert [Path(each.path).name for each in inventory.manifests] == ["manifest.jsonl"]
    assert inventory.skipped == ()
    assert inventory.home == home


def test_a_name_decides_nothing(home: Home) -> None:
    exports = Path(home.root) / "session-exports"
    (exports / "all.jsonl").rename(exports / "all.html")
    assert names(take(home))["all.html"] is Kind.JSONL


@pytest.mark.parametrize("version", VERSIONS)
def test_reads_every_real_export_without_damage(version: str, tmp_path: Path) -> None:
    shutil.copyfile(EXPORTS / version / "state.db", tmp_path / "state.db")
    inventory = take(find_home(tmp_path), [EXPORTS / version])
    kinds = {each.kind for each in inventory.artifacts}
    expected = {Kind.JSONL, Kind.HTML, Kind.MARKDOWN, Kind.QMD, Kind.PROMPTS_JSONL, Kind.PROMPTS_MARKDOWN}
    expected.add(Kind.TRACE)
    assert kinds - {Kind.EMPTY, Kind.STORE} == (expected if version in READABLE else {Kind.JSONL})
    assert [each.path for each in inventory.artifacts if each.damage] == []
    skipped = reasons(inventory)
    assert skipped["ids.json"] == "no kind of export, transcript or log that is known here"
    assert [Path(each.path).parent.name for each in inventory.stores] == [version]


def test_counts_a_logical_export_for_each_segment(home: Home) -> None:
    extra = files("0.19.0", "md-logical/2*.md")
    by_session = take(home, extra).by_session()
    tip, root = "20260801_133000_222222", "20260801_130000_111111"
    for session_id in (tip, root):
        paths = [artifact.path for artifact, _ in by_session[session_id]]
        assert paths.count(str(extra[0])) == 1
    assert all(
        section.session_id == tip
        for artifact, section in by_session[root]
        if artifact.path in map(str, extra)
    )


def test_takes_each_file_once(home: Home) -> None:
    exports = Path(home.root) / "session-exports"
    os.link(exports / "all.jsonl", exports / "again.jsonl")
    (exports / "link.jsonl").symlink_to(exports / "all.jsonl")
    (exports / "loop").symlink_to(exports, target_is_directory=True)
    inventory = take(home, [exports, exports / "all.jsonl", Path(home.root)])
    jsonl = [each for each in inventory.artifacts if each.kind is Kind.JSONL]
    assert len(jsonl) == 1
    assert len(inventory.artifacts) == 5


def test_the_audited_store_is_no_artifact(home: Home) -> None:
    for suffix in ("-wal", "-shm", "-journal"):
        Path(home.store + suffix).write_bytes(b"\0" * 64)
    shutil.copyfile(home.store, Path(home.root) / "state.db.bak")
    inventory = take(home, [Path(home.root)])
    assert inventory.skipped == ()
    assert [Path(each.path).name for each in inventory.stores] == ["state.db.bak"]


def test_leaves_no_folder_by_a_link(home: Home, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copy(files("0.19.0", "jsonl/single-C2*.jsonl")[0], outside / "secret.jsonl")
    exports = Path(home.root) / "session-exports"
    (exports / "folder").symlink_to(outside, target_is_directory=True)
    (exports / "file.jsonl").symlink_to(outside / "secret.jsonl")
    (exports / "broken").symlink_to(tmp_path / "nothing")
    inventory = take(home)
    leads_out = "a symbolic link that leads out of the folders looked at; name its target with --exports"
    assert reasons(inventory) == {
        "folder": leads_out,
        "file.jsonl": leads_out,
        "broken": "a symbolic link to nothing",
    }
    assert "secret.jsonl" in names(take(home, [outside]))


def test_a_folder_of_the_home_may_lie_elsewhere_in_it_and_not_outside(home: Home, tmp_path: Path) -> None:
    exports = Path(home.root) / "session-exports"
    exports.rename(Path(home.root) / "moved")
    exports.symlink_to(Path(home.root) / "moved")
    assert "all.jsonl" in names(take(home))
    exports.unlink()
    (Path(home.root) / "moved").rename(tmp_path / "outside")
    exports.symlink_to(tmp_path / "outside")
    assert reasons(take(home)) == {
        "session-exports": "a symbolic link that leads out of the folders looked at; "
        "name its target with --exports"
    }
    assert "all.jsonl" in names(take(home, [exports]))


def test_a_folder_of_the_home_that_cannot_be_reached_leaves_something_open(home: Home) -> None:
    exports = Path(home.root) / "session-exports"
    shutil.rmtree(exports)
    exports.symlink_to("/nowhere/mounted")
    (skipped,) = take(home).skipped
    assert (skipped.reason, skipped.unread) == ("a symbolic link to nothing", True)


def test_never_waits_for_what_is_no_file(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    exports = Path(home.root) / "session-exports"
    os.mkfifo(exports / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(exports)
    listening.bind("socket")
    try:
        skipped = reasons(take(home))
    finally:
        listening.close()
    assert skipped == {"pipe": "a named pipe", "socket": "a socket"}


def test_says_why_a_file_is_none(home: Home) -> None:
    exports = Path(home.root) / "session-exports"
    (exports / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (exports / "notes.md").write_text("# Notes\n")
    (exports / "failed.jsonl").write_bytes(b"")
    inventory = take(home)
    assert reasons(inventory) == {
        "picture.png": "not text",
        "notes.md": "no kind of export, transcript or log that is known here",
    }
    assert names(inventory)["failed.jsonl"] is Kind.EMPTY


WRAPPINGS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "utf-16": (lambda data: data.decode().encode("utf-16"), "in UTF-16; save it as UTF-8"),
    "utf-16-be": (
        lambda data: codecs.BOM_UTF16_BE + data.decode().encode("utf-16-be"),
        "in UTF-16; save it as UTF-8",
    ),
    "gzip": (gzip.compress, "packed by gzip; unpack it"),
    "gzip twice": (lambda data: gzip.compress(gzip.compress(data)), "packed by gzip; unpack it"),
    "bzip2": (bz2.compress, "packed by bzip2; unpack it"),
    "xz": (lzma.compress, "packed by xz; unpack it"),
}


@pytest.mark.parametrize("name", WRAPPINGS)
def test_an_export_in_a_wrapping_leaves_something_open(home: Home, name: str) -> None:
    wrap, advice = WRAPPINGS[name]
    path = Path(home.root) / "session-exports" / "all.jsonl"
    path.write_bytes(wrap(path.read_bytes()))
    (skipped,) = take(home).skipped
    assert (Path(skipped.path).name, skipped.unread) == ("all.jsonl", True)
    assert skipped.reason == f"a file of the kind jsonl, {advice} to have it read"


@pytest.mark.parametrize("place", ["", "state-snapshots", "session-exports"])
def test_a_store_in_a_wrapping_leaves_something_open(home: Home, place: str) -> None:
    folder = Path(home.root) / place
    folder.mkdir(exist_ok=True)
    (folder / "state.db.gz").write_bytes(gzip.compress(Path(home.store).read_bytes()))
    (skipped,) = take(home).skipped
    assert skipped.unread
    assert skipped.reason == "a file of the kind store, packed by gzip; unpack it to have it read"


WRAPPED_NOTHING = {
    "unknown": gzip.compress(b"nothing that is known"),
    "zeroes": gzip.compress(b"\0" * 10_000_000),
    "cut gzip": gzip.compress(b"")[:12],
    "notes": "notes".encode("utf-16"),
    "half a pair": codecs.BOM_UTF16_LE + b"\xd8",
    "no bzip2": b"BZh91AY&SY",
    "no xz": b"\xfd7zXZ\0\0\0",
}


@pytest.mark.parametrize("name", WRAPPED_NOTHING)
def test_a_wrapping_around_nothing_known_is_nothing_known(home: Home, name: str) -> None:
    (Path(home.root) / "session-exports" / "x").write_bytes(WRAPPED_NOTHING[name])
    assert [each.unread for each in take(home).skipped] == [False]


def test_an_export_that_was_broken_off_is_no_export_and_hides_none(home: Home) -> None:
    """It may be half of one, or a second name of a whole one."""
    exports = Path(home.root) / "session-exports"
    before = names(take(home))
    half, twin = partial_name("half.jsonl"), partial_name("all.jsonl")
    (exports / half).write_bytes((exports / "all.jsonl").read_bytes()[:-40])
    os.link(exports / "all.jsonl", exports / twin)

    inventory = take(home, [exports, exports / half])

    assert names(inventory) == before
    assert sorted(Path(one.path).name for one in inventory.skipped) == sorted([half, twin])
    assert all("broken off" in one.reason and not one.unread for one in inventory.skipped)
    (exports / half).rename(exports / "half.jsonl")
    assert names(take(home))["half.jsonl"] is Kind.JSONL


def test_an_extra_path_that_does_not_exist_is_refused(home: Home, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        take(home, [tmp_path / "nothing"])


def test_a_store_alone_has_nothing_beside_it(tmp_path: Path) -> None:
    shutil.copyfile(EXPORTS / "0.13.0" / "state.db", tmp_path / "other.db")
    inventory = take(find_home(tmp_path / "other.db"))
    assert (inventory.artifacts, inventory.logs, inventory.manifests, inventory.skipped) == ((), (), (), ())


SETTINGS = {
    "sessions: {auto_prune: true, retention_days: 30}": (True, 30.0, "config.yaml"),
    "sessions: {auto_prune: false}": (False, None, "config.yaml"),
    "sessions: {auto_prune: 'yes', retention_days: '7'}": (True, 7.0, "config.yaml"),
    "sessions: {auto_prune: maybe, retention_days: soon}": (False, None, "config.yaml, whose retention_days"),
    "sessions: {retention_days: .inf}": (False, None, "config.yaml, whose retention_days is no number"),
    "sessions: {retention_days: true}": (None, 1.0, "config.yaml"),
    "model: x": (None, None, "config.yaml, which says nothing of sessions"),
    "sessions: [1]": (False, None, "config.yaml, where sessions are no mapping"),
    "- 1": (None, None, "config.yaml, which says nothing of sessions"),
    "": (None, None, "config.yaml, which says nothing of sessions"),
    "a: b: c": (None, None, "config.yaml is not valid YAML (line 1)"),
    "x: !!python/object:os.system {}": (None, None, "config.yaml is not valid YAML (line 1)"),
    "\0": (None, None, "config.yaml is not valid YAML"),
    "sessions: " + "[" * 2000: (None, None, "config.yaml is not valid YAML"),
}


@pytest.mark.parametrize(("text", "expected"), SETTINGS.items(), ids=[repr(text)[:40] for text in SETTINGS])
def test_reads_the_settings_that_delete(
    home: Home, text: str, expected: tuple[bool | None, float | None, str]
) -> None:
    (Path(home.root) / "config.yaml").write_text(text)
    found = take(home).settings
    assert (found.auto_prune, found.retention_days) == expected[:2]
    assert found.source.startswith(expected[2])


def test_a_home_without_settings_says_so(home: Home) -> None:
    found = take(home).settings
    assert (found.auto_prune, found.retention_days, found.source) == (None, None, "no config.yaml")
