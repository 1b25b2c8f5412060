"""Which format a file has is told from its content, and every file can be read as an artifact."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.corpus import READABLE, VERSIONS, files

from statemend import formats
from statemend.errors import Undetermined
from statemend.formats import files as reading
from statemend.formats import manifest
from statemend.formats.artifact import Kind
from statemend.formats.manifest import ManifestLine

EXPECTED = [
    ("jsonl/*.jsonl", Kind.JSONL),
    ("html/*.html", Kind.HTML),
    ("only-user-prompts/*.md", Kind.PROMPTS_MARKDOWN),
    ("**/manifest.jsonl", Kind.MANIFEST),
    ("md/*.md", Kind.MARKDOWN),
    ("md-logical/*.md", Kind.MARKDOWN),
    ("qmd/*.qmd", Kind.QMD),
    ("state.db", Kind.STORE),
    ("delete-after-verified/t.jsonl", Kind.TRACE),
]


@pytest.mark.parametrize("version", READABLE)
@pytest.mark.parametrize(("pattern", "kind"), EXPECTED)
def test_real_files_are_told_by_content_alone(tmp_path: Path, version: str, pattern: str, kind: Kind) -> None:
    for path in files(version, pattern):
        nameless = tmp_path / "x"
        shutil.copyfile(path, nameless)
        assert formats.classify(nameless) is kind, path.name
        artifact = formats.read(nameless)
        assert artifact.kind is kind
        assert artifact.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert artifact.damage is None
        found = [list(formats.records(nameless, artifact, section)) for section in artifact.sections]
        assert (kind in (Kind.UNCLASSIFIED, Kind.MANIFEST)) == (found == [])


@pytest.mark.parametrize(
    ("pattern", "kind"), [*EXPECTED[:4], ("only-user-prompts/[aop]*.jsonl", Kind.PROMPTS_JSONL)]
)
def test_a_byte_order_mark_changes_nothing(tmp_path: Path, pattern: str, kind: Kind) -> None:
    for path in files("0.22.2", pattern):
        marked = tmp_path / "x"
        marked.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        before, after = formats.read(path), formats.read(marked)
        assert (after.kind, after.damage) == (kind, None)
        for old, new in zip(before.sections, after.sections, strict=True):
            assert list(formats.records(path, before, old)) == list(formats.records(marked, after, new))


def test_prompts_of_a_session_without_any_are_an_empty_file() -> None:
    kinds = {path.name[:8]: formats.classify(path) for path in files("0.22.2", "only-user-prompts/*.jsonl")}
    assert kinds.pop("single-E") is Kind.EMPTY
    assert set(kinds.values()) == {Kind.PROMPTS_JSONL}


@pytest.mark.parametrize("version", VERSIONS)
def test_jsonl_of_every_release_is_told(version: str) -> None:
    assert {formats.classify(path) for path in files(version, "jsonl/*.jsonl")} == {Kind.JSONL}


def test_an_empty_file_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()
    artifact = formats.read(path)
    assert (artifact.kind, artifact.size, artifact.damage, artifact.sections) == (Kind.EMPTY, 0, None, ())
    assert artifact.sha256 == hashlib.sha256(b"").hexdigest()


def test_what_is_no_file_could_not_be_determined(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path, tmp_path / "missing", tmp_path / "loop"):
        with pytest.raises(Undetermined, match=path.name):
            formats.read(path)
        with pytest.raises(Undetermined):
            formats.classify(path)


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_bytes_can_be_read(tmp_path_factory: Any, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "any"
    path.write_bytes(content)
    artifact = formats.read(path)
    assert artifact.kind is formats.classify(path)
    assert artifact.sha256 == hashlib.sha256(content).hexdigest()


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_real_file_with_a_few_bytes_changed_can_be_read(tmp_path_factory: Any, data: st.DataObject) -> None:
    pattern, _ = data.draw(st.sampled_from(EXPECTED[:7]))
    content = bytearray(data.draw(st.sampled_from(files("0.22.2", pattern))).read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=4))
    path = tmp_path_factory.mktemp("changed") / "any"
    path.write_bytes(content)
    artifact = formats.read(path)
    assert artifact.size == len(content)
    for section in artifact.sections:
        assert 0 <= section.offset <= section.offset + section.length <= artifact.size
        assert all(record.role for record in formats.records(path, artifact, section))


def test_a_line_too_long_to_keep_is_counted_but_not_held(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"short\n" + b"x" * 5_000_000 + b"\nlast")
    scan = reading.Scan(path, longest=1000)
    lines = [(line.number, line.offset, line.length, line.overlong, len(line.data)) for line in scan]
    assert lines == [(1, 0, 6, False, 6), (2, 6, 5_000_001, True, 0), (3, 5_000_007, 4, False, 4)]
    assert scan.size == path.stat().st_size
    assert scan.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


#: Eleven megabytes, and more than a gigabyte when it is parsed.
DENSE = b"{}," * 3_700_000 + b"{}"
DENSE_LINES = {
    Kind.JSONL: b'{"id": "s", "source": "cli", "messages": [%s]}\n',
    Kind.PROMPTS_JSONL: b'{"session_id": "s", "index": 1, "role": "user", "text": [%s]}\n',
    Kind.TRAJECTORY: b'{"conversations": [{"from": "human", "value": "x"}, %s]}\n',
    Kind.MANIFEST: b'{"path": "x", "session_id": "s", "sha256": "", "more": [%s]}\n',
}
DENSE_OBJECTS = {
    Kind.JSONL: b'{\n  "id": "s", "source": "cli", "messages": [%s]}\n',
    Kind.SAVE_JSON: b'{"model": "m", "session_id": "s", "session_start": "x", "messages": [%s]}\n',
}


@pytest.mark.parametrize("kind", DENSE_LINES)
def test_a_line_that_takes_too_much_memory_is_passed_over(tmp_path: Path, kind: Kind) -> None:
    path = tmp_path / "dense"
    first, shape = DENSE_LINES[kind] % b'{"role": "user"}', DENSE_LINES[kind]
    if kind is Kind.MANIFEST:
        first = manifest.render_line(ManifestLine("x", "s", "0" * 64, 1, 1.0, "md")).encode()
    path.write_bytes(first + shape % DENSE + first)
    artifact = formats.read(path)
    assert (artifact.kind, artifact.damage) == (kind, "line 2 is too long to be read")


@pytest.mark.parametrize("kind", DENSE_OBJECTS)
def test_an_object_that_takes_too_much_memory_is_not_read(tmp_path: Path, kind: Kind) -> None:
    path = tmp_path / "dense"
    path.write_bytes(DENSE_OBJECTS[kind] % DENSE)
    artifact = formats.read(path)
    assert (artifact.kind, artifact.sections) == (kind, ())
    assert artifact.damage == "the file is too long to be read as one object"


def test_a_long_text_is_no_dense_one(tmp_path: Path) -> None:
    path = tmp_path / "long"
    prose = b"Well, {that} is, as they say, what it is. " * 400_000
    path.write_bytes(DENSE_LINES[Kind.JSONL] % (b'{"role": "user", "content": "%s"}' % prose))
    artifact = formats.read(path)
    assert ([each.held for each in artifact.sections], artifact.damage) == ([1], None)


def test_a_file_that_changes_under_the_reader_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(b"one\ntwo\n")
    scan = reading.Scan(path)
    for line in scan:
        if line.number == 1:
            path.write_bytes(b"one\ntwo\nthree\n")
    assert scan.changed
