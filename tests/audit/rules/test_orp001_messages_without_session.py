"""ORP001 messages-without-session."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest
from tests.audit.builder import EXPORTED, START, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

pytestmark = pytest.mark.built(
    "ORP001", "each release deletes the messages with their session; a program without foreign keys does not"
)

Build = Callable[..., HomeBuilder]


@pytest.mark.fires("ORP001")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_messages_of_a_deleted_session_are_one_finding(build: Build, version: str) -> None:
    home = build(version)
    home.chat("kept", 2)
    rows = home.chat("gone", 5)
    home.sql("DELETE FROM sessions WHERE id = 'gone'")

    (finding,) = home.findings("ORP001")

    assert finding.subject.session == "gone"
    assert finding.subject.message_ids == tuple(rows)
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    assert facts(finding)["rows"] == facts(finding)["live rows"] == 5
    assert facts(finding)["rows by role"] == ["assistant: 2", "user: 3"]


def test_times_are_utc(build: Build) -> None:
    home = build()
    home.message("gone", timestamp=START)
    home.message("gone", timestamp=START + 60)

    (finding,) = home.findings("ORP001")

    assert facts(finding)["first time"] == "2026-09-21T14:13:20Z"
    assert facts(finding)["last time"] == "2026-09-21T14:14:20Z"


def test_rows_are_counted_by_state_and_only_shown_ones_are_named(build: Build) -> None:
    home = build("0.22.2")
    archived = home.message("gone", content="first", active=0, compacted=1)
    home.message("gone", content="taken back", active=0, compacted=0)
    live = home.message("gone", content="second")
    home.turns("gone", 3, active=0)

    (finding,) = home.findings("ORP001")

    assert finding.subject.message_ids == (archived, live)
    evidence = facts(finding)
    assert (evidence["live rows"], evidence["archived rows"], evidence["rewound rows"]) == (1, 1, 4)
    assert evidence["rows"] == 6


def test_each_session_is_a_finding_of_its_own_with_a_stable_id(build: Build) -> None:
    home = build()
    for name in ("b", "a", "c"):
        home.message(name)
    before = {finding.subject.session: finding.id for finding in home.findings("ORP001")}
    home.message("b")

    after = {finding.subject.session: finding.id for finding in home.findings("ORP001")}

    assert before.keys() == {"a", "b", "c"}
    assert before == after


def test_the_command_to_run_next_plans_the_repair(build: Build) -> None:
    home = build(name="it's; rm -rf")
    home.message("gone")

    (finding,) = home.findings("ORP001")

    assert finding.remedy.command is not None
    planned = ["statemend", "plan", "-o", "plan.json", str(home.root)]
    assert shlex.split(finding.remedy.command) == planned


def test_a_session_id_that_is_a_blob_is_shown_and_not_confused_with_text(build: Build) -> None:
    home = build()
    home.chat("abc", 1)
    home.message(b"abc")  # type: ignore[arg-type]

    (finding,) = home.findings("ORP001")

    assert finding.subject.session == "b'abc'"


def test_a_session_id_that_is_not_valid_text_is_reported_by_its_rows(build: Build) -> None:
    home = build()
    row = home.message("x")
    home.sql("UPDATE messages SET session_id = CAST(x'61ff' AS TEXT)")

    (finding,) = home.findings("ORP001")

    assert finding.subject.session == "a\\xff"
    assert finding.subject.message_ids == (row,)
    assert finding.summary.startswith("1 message belongs to a session that is not in the store, and")

    home.sql("INSERT INTO sessions (id, source, started_at) VALUES (CAST(x'61ff' AS TEXT), 'cli', 1.0)")
    assert home.findings("ORP001") == []


def test_messages_that_name_no_session(build: Build) -> None:
    home = build()
    home.sql(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = 'messages'",
        bindings=("session_id TEXT NOT NULL", "session_id TEXT"),
    )
    rows = [home.message("x"), home.message("x")]
    home.sql("UPDATE messages SET session_id = NULL")
    home.message("gone")

    nameless, gone = home.findings("ORP001")

    assert (gone.subject.session, nameless.subject.session) == ("gone", None)
    assert nameless.subject.message_ids == tuple(rows)
    assert nameless.summary.startswith("2 messages name no session")


@pytest.mark.near_miss("ORP001")
def test_a_session_without_messages_is_lawful(build: Build) -> None:
    home = build()
    home.session("empty")
    home.chat("full", 3)

    assert home.findings("ORP001") == []


def test_no_text_of_a_message_is_in_a_finding(build: Build) -> None:
    home = build()
    home.message("gone", content="the secret word is heron")

    assert "heron" not in repr(home.findings("ORP001"))


def test_a_cell_that_holds_no_role_is_not_shown(build: Build) -> None:
    home = build()
    home.message("gone", role="the secret word is heron")
    home.message("gone", role="another one is crane")

    (finding,) = home.findings("ORP001")

    assert facts(finding)["rows by role"] == ["no role: 2"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("ORP001").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("ORP001").status == "clean"
