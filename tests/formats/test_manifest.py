"""Manifests: every line against the file it names, and the lines written again byte for byte."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.corpus import READABLE, files

from statemend.formats import manifest
from statemend.formats.artifact import Kind
from statemend.formats.manifest import ManifestLine


@pytest.fixture(params=READABLE)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def line_of(export: Path, path: str, exported_at: float) -> ManifestLine:
    """What a manifest has to say of an export, told from the export itself."""
    data = export.read_bytes()
    front = dict(re.findall(r"^(\w+): (.*)$", data.decode().split("---\n")[1], re.MULTILINE))
    session_id = json.loads(front["session_id"])
    return ManifestLine(
        path=path,
        session_id=session_id,
        sha256=hashlib.sha256(data).hexdigest(),
        message_count=int(front["message_count"]),
        exported_at=exported_at,
        format=export.suffix[1:],
        lineage=tuple(json.loads(front.get("lineage_session_ids", json.dumps([session_id])))),
    )


def test_a_line_made_from_the_export_is_the_line_that_was_written(version: str) -> None:
    compared = 0
    for path in files(version, "**/manifest.jsonl"):
        written = path.read_bytes().splitlines(keepends=True)
        for valid in manifest.valid(manifest.lines(path)).values():
            export = path.parent / Path(valid.path).name
            if not export.exists():  # only some of the files are kept as fixtures
                continue
            made = line_of(export, valid.path, valid.exported_at)
            assert manifest.render_line(made).encode() == written[valid.line - 1]
            compared += 1
    assert compared >= 40


def test_a_manifest_is_an_artifact_without_sections(version: str) -> None:
    for path in files(version, "**/manifest.jsonl"):
        assert manifest.recognise(path.read_bytes()) is Kind.MANIFEST
        artifact = manifest.read(path)
        assert (artifact.kind, artifact.sections, artifact.damage) == (Kind.MANIFEST, (), None)
        assert artifact.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def entry(path: str = "md/a.md", **more: Any) -> dict[str, Any]:
    facts = {"session_id": "s", "sha256": "0" * 64, "message_count": 2, "exported_at": 5.5, "format": "md"}
    return {"path": path, **facts, "lineage_session_ids": ["s"], **more}


def wrote(folder: Path, *lines: Any) -> Path:
    path = folder / "any.name"
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines]
    path.write_bytes(b"".join(raw))
    return path


def test_the_last_line_of_a_path_is_the_valid_one(tmp_path: Path) -> None:
    path = wrote(tmp_path, entry(message_count=1), entry("md/b.md"), entry(message_count=3))
    found = manifest.valid(manifest.lines(path))
    assert {name: (line.message_count, line.line) for name, line in found.items()} == {
        "md/a.md": (3, 3),
        "md/b.md": (2, 2),
    }


@pytest.mark.parametrize(
    "bad",
    [
        entry(path=None),
        entry(session_id=3),
        entry(sha256="abc"),
        entry(sha256="0" * 64 + "\n"),
        entry(message_count="2"),
        entry(message_count=True),
        entry(exported_at="now"),
        b"{\n",
        b"[" * 100_000 + b"\n",
        [1],
    ],
)
def test_a_bad_line_is_named_and_skipped(tmp_path: Path, bad: Any) -> None:
    path = wrote(tmp_path, entry(), bad, entry("md/c.md"))
    assert manifest.read(path).damage == "line 2 is unreadable"
    assert [line.path for line in manifest.lines(path)] == ["md/a.md", "md/c.md"]


def test_members_of_less_weight_may_be_odd(tmp_path: Path) -> None:
    (line,) = manifest.lines(wrote(tmp_path, entry(format=None, lineage_session_ids=["a", 1])))
    assert (line.format, line.lineage) == ("", ("a",))


def test_a_cut_last_line_is_damage(tmp_path: Path) -> None:
    path = wrote(tmp_path, entry(), json.dumps(entry("md/b.md")).encode()[:-4])
    assert manifest.read(path).damage == "the last line is cut off"
    assert len(list(manifest.lines(path))) == 1


def test_other_lines_are_not_taken_for_a_manifest() -> None:
    prompt = {"session_id": "s", "index": 1, "role": "user", "text": "sha256 path"}
    assert manifest.recognise(json.dumps(prompt).encode()) is None
    assert manifest.recognise(b'{"sha256": "x", "path": "y"}\n') is None


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_no_content_raises(tmp_path_factory: Any, content: bytes) -> None:
    path = wrote(tmp_path_factory.mktemp("any"), entry(), content)
    manifest.recognise(content)
    assert manifest.read(path).size == path.stat().st_size
    assert next(manifest.lines(path)).path == "md/a.md"
