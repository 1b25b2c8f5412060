"""STO001 invalid-header."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import EXPORTED, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

pytestmark = pytest.mark.built("STO001", "no release writes a file that is no database")

Build = Callable[..., HomeBuilder]


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

    (finding,) = home.findings("STO001")

    assert facts(finding)["fault"] == fault
    assert finding.verdict is Verdict.FAULT
    assert finding.severity is Severity.CRITICAL


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
