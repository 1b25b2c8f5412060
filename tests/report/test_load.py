from __future__ import annotations

import json as stdlib
import os
from pathlib import Path

import pytest
from tests.report import sample

from statemend.errors import UsageError
from statemend.report import json, load
from statemend.report.load import load_report


def write(folder: Path, content: bytes) -> Path:
    path = folder / "r.json"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("make", [sample.report, sample.clean_report, sample.hostile_report])
def test_a_report_reads_back_equal(tmp_path: Path, make: object) -> None:
    assert callable(make)
    report = make()
    assert load_report(write(tmp_path, json.render(report).encode())) == report


def test_a_report_of_an_older_version_still_reads(tmp_path: Path) -> None:
    document = stdlib.loads(json.render(sample.report()))
    for name in ("exports", "fail_on"):
        del document[name]
    for rule in document["rules"]:
        del rule["hidden"]
    assert load_report(write(tmp_path, stdlib.dumps(document).encode())) == sample.report()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "truncated"),
        (b"\x89PNG\r\n", "malformed"),
        (b"null", "expected `object`"),
        (b'{"tool": {}}', "names no schema"),
        (b'{"schema": "statemend/report/v2"}', "'statemend/report/v2'"),
        (b'{"schema": "statemend/report/v1", "findings": 7}', "$.findings"),
        (b'{"schema": "statemend/report/v1", "home": "\xff"}', "utf-8"),
        (b'{"schema": "statemend/report/v1", "x": ' + b"[" * 100_000, "recursion"),
        (b'{"schema": "' + b"x" * 500 + b'"}', "'" + "x" * 100 + "'"),
    ],
    ids=["empty", "png", "null", "no-schema", "newer", "wrong-type", "not-utf8", "deep", "long-name"],
)
def test_what_is_no_report_is_refused_in_one_line(tmp_path: Path, content: bytes, why: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(UsageError) as caught:
        load_report(path)
    told = str(caught.value)
    assert told.startswith(f"{path}: ")
    assert why in told.lower()
    assert "statemend scan" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ("tool", "version"),
        ("", "generated_at"),
        ("rules", "id"),
        ("rules", "slug"),
        ("findings", "id"),
        ("findings", "rule"),
        ("artifacts", "kind"),
        ("artifacts", "sha256"),
        ("timeline", "at"),
        ("checklist", "question"),
    ],
)
@pytest.mark.parametrize("word", ["<b>", "a\x1b[2J", "x" * 201, "[a](b)", "\u202e"], ids=list("abcde"))
def test_our_own_words_are_plain(tmp_path: Path, part: str, field: str, word: str) -> None:
    document = stdlib.loads(json.render(sample.report()))
    place = document[part] if part else document
    (place[0] if isinstance(place, list) else place)[field] = word
    with pytest.raises(UsageError, match="not a report"):
        load_report(write(tmp_path, stdlib.dumps(document).encode()))


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, why in ((tmp_path / "none", "No such file"), (tmp_path, "not a"), (tmp_path / "pipe", "not a")):
        with pytest.raises(UsageError, match=why):
            load_report(path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, json.render(sample.report()).encode())
    monkeypatch.setattr(load, "LARGEST_REPORT", path.stat().st_size)
    assert load_report(path) == sample.report()
    monkeypatch.setattr(load, "LARGEST_REPORT", path.stat().st_size - 1)
    with pytest.raises(UsageError, match="too large"):
        load_report(path)
