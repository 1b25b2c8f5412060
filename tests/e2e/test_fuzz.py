"""Bytes changed at random, in a store and in what lies beside it: every audit ends, and says how."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.e2e.conftest import CONTRACT, DATA
from tests.e2e.folder import snapshot
from tests.e2e.running import PATIENCE, Outcome, rules

from statemend.cli.app import run

BROAD = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
#: One change: where (as a share of the file), how, and with what.
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.sampled_from(["flip", "write", "insert", "remove", "cut", "repeat"]),
        st.binary(min_size=1, max_size=40)
        | st.sampled_from([b"\0" * 600, b"\xff" * 600, b"\n", b'"', b"```\n"]),
    ),
    min_size=1,
    max_size=6,
)
VERSIONS = ("0.13.0", "0.16.0", "0.19.0", "0.22.2")
RELEASE = DATA / "exports" / "0.22.2"
FILES = [
    sorted(RELEASE.glob(pattern))[0]
    for pattern in (
        "jsonl/single-C-*",
        "md/20260801_120000*",
        "md-bulk-logical/20260801_133000*",
        "qmd/20260801_120000*",
        "html/single-C-*",
        "html/all.html",
        "only-user-prompts/*.jsonl",
        "only-user-prompts/*.md",
        "md/manifest.jsonl",
    )
]
LOG = b"".join(
    b"2026-08-01 10:%02d:00,123 WARNING [20260801_120000_ffffff] agent.session: "
    b"Session DB append_message failed: FOREIGN KEY constraint failed\n" % minute
    for minute in range(20)
)


def changed(data: bytes, changes: Sequence[tuple[float, str, bytes]]) -> bytes:
    """``data`` after the changes."""
    content = bytearray(data)
    for share, how, given_bytes in changes:
        at = int(share * max(len(content) - 1, 0))
        if how == "flip" and content:
            content[at] ^= given_bytes[0] or 1
        elif how == "write":
            content[at : at + len(given_bytes)] = given_bytes
        elif how == "insert":
            content[at:at] = given_bytes
        elif how == "remove":
            del content[at : at + 8 * len(given_bytes)]
        elif how == "cut":
            del content[at:]
        else:
            content[at:at] = content[at : at + 400] * 3
    return bytes(content)


def quietly(*arguments: object) -> Outcome:
    """Run a command line with its output kept, however often within one test."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = streams
    try:
        code = run([str(argument) for argument in arguments])
    finally:
        sys.stdout, sys.stderr = before
    out, err = (stream.detach().getvalue().decode() for stream in streams)
    return Outcome(code, out, err)


def audited(home: Path, form: str) -> dict[str, Any] | None:
    """Audit a home; the report when it is JSON and there is one."""
    signal.alarm(PATIENCE)  # for each example anew
    before = snapshot(home)
    told = quietly("scan", home, "--format", form)
    assert snapshot(home) == before
    assert told.code in (0, 1, 3), told.err
    assert "Traceback" not in told.out + told.err
    assert "unexpected" not in told.err
    if told.err:
        assert (told.code, told.out, told.err.count("\n")) == (3, "", 1)
        return None
    if form != "json":
        return None
    document: dict[str, Any] = json.loads(told.out)
    CONTRACT.validate(document)
    assert document["exit_code"] == told.code
    failed = {rule: why for rule, why in rules(document, "could not run").items() if "itself failed" in why}
    assert failed == {}
    return document


@pytest.mark.parametrize("version", VERSIONS)
@BROAD
@given(changes=CHANGES, form=st.sampled_from(["json", "json", "json", "html", "md", "table"]))
def test_a_store_with_changed_bytes_is_audited_or_refused(
    tmp_path: Path, version: str, changes: Sequence[tuple[float, str, bytes]], form: str
) -> None:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / "state.db").write_bytes(changed((DATA / "exports" / version / "state.db").read_bytes(), changes))
    audited(home, form)


@BROAD
@given(data=st.binary(max_size=3000), suffix=st.sampled_from(["-wal", "-journal", "-shm"]))
def test_anything_beside_a_store_is_audited_or_refused(tmp_path: Path, data: bytes, suffix: str) -> None:
    home = tmp_path / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    shutil.copyfile(DATA / "stores" / "0.22.2.db", home / "state.db")
    (home / f"state.db{suffix}").write_bytes(data)
    audited(home, "json")


@pytest.mark.parametrize("source", FILES, ids=lambda path: f"{path.parent.name}/{path.suffix[1:]}")
@BROAD
@given(changes=CHANGES)
def test_an_export_with_changed_bytes_stops_no_rule(
    tmp_path: Path, source: Path, changes: Sequence[tuple[float, str, bytes]]
) -> None:
    home = tmp_path / "home"
    (home / "session-exports").mkdir(parents=True, exist_ok=True)
    if not (home / "state.db").exists():
        shutil.copyfile(RELEASE / "state.db", home / "state.db")
    (home / "session-exports" / source.name).write_bytes(changed(source.read_bytes(), changes))
    document = audited(home, "json")
    assert document is not None
    assert rules(document, "could not run") == {}


@BROAD
@given(changes=CHANGES, packed=st.booleans())
def test_a_log_with_changed_bytes_stops_no_rule(
    tmp_path: Path, changes: Sequence[tuple[float, str, bytes]], packed: bool
) -> None:

    home = tmp_path / "home"
    (home / "logs").mkdir(parents=True, exist_ok=True)
    if not (home / "state.db").exists():
        shutil.copyfile(RELEASE / "state.db", home / "state.db")
    data = gzip.compress(LOG, mtime=0) if packed else LOG
    (home / "logs" / "agent.log").write_bytes(changed(data, changes))
    document = audited(home, "json")
    assert document is not None
    assert rules(document, "could not run") == {}
