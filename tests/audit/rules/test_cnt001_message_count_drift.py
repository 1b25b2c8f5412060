"""CNT001 message-count-drift."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import EXPORTED, START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

pytestmark = pytest.mark.built(
    "CNT001", "no life of a session makes a counter drift in a release (tests/hermes/test_counters.py)"
)

Build = Callable[..., HomeBuilder]

WITH_REWIND = [version for version in VERSIONS if version >= "0.16.0"]
WITH_ARCHIVE = [version for version in VERSIONS if version >= "0.18.2"]


def count(home: HomeBuilder, session_id: str, number: object) -> None:
    home.sql("UPDATE sessions SET message_count = ? WHERE id = ?", bindings=(number, session_id))


@pytest.mark.fires("CNT001")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("number", [1, 3, 6], ids=["too small", "one off", "too large"])
def test_a_number_that_no_release_would_hold(build: Build, version: str, number: int) -> None:
    home = build(version)
    home.chat("right", 4)
    home.chat("wrong", 4)
    count(home, "wrong", number)

    (finding,) = home.findings("CNT001")

    assert finding.subject.session == "wrong"
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.LOW)
    assert (facts(finding)["lawful from"], facts(finding)["lawful to"]) == (4, 4)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_ended_session_counted_as_empty_is_in_danger_where_a_clean_up_believes_it(
    build: Build, version: str
) -> None:
    home = build(version)
    home.chat("full", 4, ended_at=START + 100, end_reason="cli_close")
    count(home, "full", 0)

    (finding,) = home.findings("CNT001")

    believes = "0.16.0" <= version < "0.22.0"
    assert finding.severity is (Severity.HIGH if believes else Severity.LOW)
    assert facts(finding)["a clean-up of empty sessions would delete it"] is believes


@pytest.mark.parametrize("values", [{}, {"ended_at": START + 9, "end_reason": "cli_close", "archived": 1}])
def test_an_open_or_archived_session_counted_as_empty_is_not_deleted(
    build: Build, values: dict[str, object]
) -> None:
    home = build("0.19.0")
    home.chat("full", 4, **values)
    count(home, "full", 0)

    (finding,) = home.findings("CNT001")

    assert finding.severity is Severity.LOW


@pytest.mark.parametrize("number", [None, "twelve", 1.5])
def test_a_counter_that_holds_no_number_of_messages(build: Build, number: object) -> None:
    home = build()
    home.chat("odd", 4)
    count(home, "odd", number)

    (finding,) = home.findings("CNT001")

    assert finding.severity is Severity.LOW


def test_all_that_a_clean_up_would_delete_is_counted(build: Build) -> None:
    home = build("0.19.0")
    home.chat("full", 4, ended_at=START + 100, end_reason="cli_close")
    home.turns("full", 3, active=0)
    home.turns("full", 2, active=0, compacted=1)
    count(home, "full", 0)

    (finding,) = home.findings("CNT001")

    assert "delete its 9 rows" in finding.summary


def test_a_counter_without_rows_is_a_drift_too(build: Build) -> None:
    home = build()
    home.session("hollow", message_count=7)

    (finding,) = home.findings("CNT001")

    assert facts(finding)["live rows"] == 0


@pytest.mark.parametrize("number", [0, None])
def test_an_empty_session_is_lawful(build: Build, number: object) -> None:
    home = build()
    home.session("empty", message_count=number)

    assert home.findings("CNT001") == []


@pytest.mark.near_miss("CNT001")
@pytest.mark.parametrize("version", WITH_REWIND)
@pytest.mark.parametrize("number", [4, 5, 6])
def test_rewound_rows_may_be_counted_or_not(build: Build, version: str, number: int) -> None:
    home = build(version)
    home.chat("undone", 4)
    home.turns("undone", 2, active=0)
    count(home, "undone", number)

    assert home.findings("CNT001") == []


@pytest.mark.parametrize("version", WITH_ARCHIVE)
def test_archived_rows_are_not_counted(build: Build, version: str) -> None:
    home = build(version)
    home.session("compacted")
    home.turns("compacted", 6, active=0, compacted=1)
    home.turns("compacted", 3)
    count(home, "compacted", 3)
    assert home.findings("CNT001") == []

    count(home, "compacted", 9)

    assert len(home.findings("CNT001")) == 1


def test_rows_that_have_no_state_may_be_counted_or_not(build: Build) -> None:
    home = build("0.17.0")
    rewrite = "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = 'messages'"
    home.sql(
        "PRAGMA writable_schema = ON",
        rewrite,
        bindings=("active INTEGER NOT NULL DEFAULT 1", "active INTEGER"),
    )
    home.chat("hidden", 4)
    home.sql("UPDATE messages SET active = NULL")

    assert home.findings("CNT001") == []


def test_what_a_recovery_rebuilt_counts_every_row(build: Build) -> None:
    home = build("0.22.2")
    home.session("rebuilt", source="recovered")
    home.turns("rebuilt", 2, active=0, compacted=1)
    home.turns("rebuilt", 2)

    assert home.findings("CNT001") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("CNT001").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("CNT001").status == "clean"
