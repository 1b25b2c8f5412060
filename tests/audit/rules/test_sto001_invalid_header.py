"""STO001 invalid-header."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.audit.builder import EXPORTED, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

pytestmark = pytest.mark.built("STO001", "no release writes a file that is no database")

Build = Callable[..., HomeBuilder]
TRANSCRIPT = json.dumps(
    {
        "session_id": "20260901_100000_aaaaaa",
        "model": "m",
        "session_start": "2026-09-01T10:00:00",
        "last_updated": "2026-09-01T10:01:00",
        "messages": [{"role": "user", "content": "text"}],
    }
)
TURN = (
    "2026-09-01 10:00:00,000 INFO agent.conversation_loop: conversation turn: "
    "session=20260901_100000_aaaaaa model=m provider=p platform=cli history=0\n"
)


@pytest.mark.fires("STO001")
@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda data: b"", "empty"),
        (lambda data: bytes(len(data)), "zeroed"),
        (lambda data: data[:300], "too-short"),
        (lambda data: b"# notes\n" + b"not a database\n" * 100, "not-sqlite"),
        (lambda data: b"\xaa" * 4096 + data[4096:], "overwritten-first-page"),
        (lambda data: data[: len(data) // 4096 // 2 * 4096], "page-count"),
    ],
    ids=["empty", "zeroed", "short", "text", "first page", "truncated"],
)
def test_a_file_that_is_no_database_is_named_for_what_it_is(
    build: Build, damage: Callable[[bytes], bytes], fault: str
) -> None:
    home = build("0.19.0", empty=False)
    home.store.write_bytes(damage(home.store.read_bytes()))
    home.file("sessions/session_20260901_100000_aaaaaa.json", TRANSCRIPT)

    (finding,) = home.findings("STO001")

    assert facts(finding)["fault"] == fault
    assert finding.verdict is Verdict.FAULT
    assert finding.severity is Severity.CRITICAL


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (None, b""),
        ("state.db-wal", b""),
        ("config.yaml", b"model: x\n"),
        ("logs/agent.log", b"2026-09-01 10:00:00,000 INFO agent: started\n"),
    ],
    ids=["nothing", "empty log", "settings", "log without a turn"],
)
def test_an_empty_file_alone_does_not_tell_whether_anything_was_lost(
    build: Build, path: str | None, content: bytes | str
) -> None:
    home = build(empty=False)
    home.store.write_bytes(b"")
    if path:
        home.file(path, content)

    (finding,) = home.findings("STO001")

    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.MEDIUM)
    assert facts(finding)["what would decide"] == "whether Hermes was ever used with this home"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("state.db-wal", b"frames"),
        ("state.db.zeroed-20260901-100000-77.bak", b"evidence"),
        ("sessions/session_20260901_100000_aaaaaa.json", TRANSCRIPT),
        ("logs/agent.log", TURN),
    ],
    ids=["log", "copy", "transcript", "turn"],
)
def test_an_empty_file_in_a_home_that_was_used_is_a_fault(
    build: Build, path: str, content: bytes | str
) -> None:
    home = build(empty=False)
    home.store.write_bytes(b"")
    home.file(path, content)

    (finding,) = home.findings("STO001")

    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.CRITICAL)


def test_copies_beside_a_broken_store_are_named(build: Build) -> None:
    home = build(empty=False)
    home.file("state.db.zeroed-20260901-100000-77.bak", b"evidence")
    home.file("state.db-wal", b"frames")
    home.store.write_bytes(bytes(8192))

    (finding,) = home.findings("STO001")

    assert facts(finding)["copies beside the store"] == ["state.db.zeroed-20260901-100000-77.bak"]
    assert facts(finding)["size of the -wal in bytes"] == 6


def test_every_rule_that_needs_the_store_could_not_run_and_says_why(build: Build) -> None:
    home = build(empty=False)
    home.store.write_bytes(bytes(8192))

    ended = {result.id: result for result in home.audit().rules}

    assert ended["STO001"].status == "findings"
    for rule in ("STO003", "STO004", "ORP001", "ORP002", "LIN001", "CNT001"):
        assert ended[rule].status == "could not run", rule
        assert "zero" in ended[rule].reason


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("STO001").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("STO001").status == "clean"


@pytest.mark.near_miss("STO001")
def test_a_store_without_rows_is_not_an_empty_file(build: Build) -> None:
    assert build("0.22.2").result("STO001").status == "clean"
