"""STO004 schema-disagrees."""

from __future__ import annotations

from collections.abc import Callable

import apsw
import pytest
from tests.audit.builder import EXPORTED, VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

pytestmark = pytest.mark.built("STO004", "each release adds what is missing when it opens a store")

Build = Callable[..., HomeBuilder]


def drop(home: HomeBuilder, table: str, *columns: str) -> None:
    """Take a table apart and leave it without these columns, and without indexes and triggers."""
    kept = ", ".join(f'"{name}"' for name in sorted(home.columns(table) - set(columns)))
    home.sql(
        f"CREATE TABLE rest AS SELECT {kept} FROM {table}",
        f"DROP TABLE {table}",
        f"CREATE TABLE {table} AS SELECT * FROM rest",
        "DROP TABLE rest",
    )


@pytest.mark.fires("STO004")
@pytest.mark.parametrize("table", ["messages", "sessions"])
def test_a_missing_table_is_a_fault(build: Build, table: str) -> None:
    home = build("0.19.0", empty=False)
    home.sql(f"DROP TABLE {table}")

    (finding,) = home.findings("STO004")

    assert finding.summary == f"The store has no table {table}."
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.CRITICAL)


def test_rules_that_read_the_missing_table_do_not_apply(build: Build) -> None:
    home = build("0.19.0", empty=False)
    home.sql("DROP TABLE messages")

    ended = {result.id: result for result in home.audit("ORP", "CNT").rules}

    assert ended["CNT001"].status == "not applicable"
    assert ended["CNT001"].reason == "the store has no table messages"


def test_columns_of_the_releases_before_its_own_must_be_there(build: Build) -> None:
    home = build("0.22.2", empty=False)
    drop(home, "sessions", "profile_name", "handoff_state")

    (finding,) = home.findings("STO004")

    assert facts(finding)["columns missing"] == ["handoff_state", "profile_name"]
    assert finding.severity is Severity.MEDIUM


def test_without_a_column_that_every_release_needs_it_is_worse(build: Build) -> None:
    home = build("0.13.0", empty=False)
    drop(home, "messages", "role")

    (finding,) = home.findings("STO004")

    assert facts(finding)["columns missing"] == ["role"]
    assert finding.severity is Severity.HIGH


def test_a_number_ahead_of_the_columns_is_a_fault(build: Build) -> None:
    home = build("0.15.2", empty=False)
    home.sql("UPDATE schema_version SET version = 22")

    columns = {facts(finding)["schema number"]: finding for finding in home.findings("STO004")}

    assert columns.keys() == {22}


@pytest.mark.near_miss("STO004")
def test_a_number_behind_the_columns_is_lawful(build: Build) -> None:
    home = build("0.22.2", empty=False)
    home.sql("UPDATE schema_version SET version = 11")

    assert home.result("STO004").status == "clean"


def test_a_first_opening_by_a_newer_release_that_broke_off_is_a_leftover(build: Build) -> None:
    """The columns come one by one and in any order, the number comes last."""
    home = build("0.13.0", empty=False)
    home.sql("ALTER TABLE messages ADD COLUMN display_kind TEXT", "ALTER TABLE sessions ADD COLUMN cwd TEXT")

    found = {finding.summary.split()[2]: finding for finding in home.findings("STO004")}

    assert found.keys() == {"messages", "sessions"}
    assert {finding.verdict for finding in found.values()} == {Verdict.LEFTOVER}
    assert "compacted" in facts(found["messages"])["columns missing"]
    home.sql("UPDATE schema_version SET version = 22")
    assert {finding.verdict for finding in home.findings("STO004")} == {Verdict.FAULT}


def test_columns_and_tables_that_nobody_knows_are_lawful(build: Build) -> None:
    home = build("0.17.0", empty=False)
    home.sql("ALTER TABLE messages ADD COLUMN anthropic_content_blocks TEXT", "CREATE TABLE plugin_notes (x)")

    assert home.result("STO004").status == "clean"


def test_a_store_between_two_releases_is_lawful(build: Build) -> None:
    """A build of the days before 0.22.2 had its columns only in part."""
    home = build("0.22.2", empty=False)
    drop(home, "sessions", "tool_names", "auto_archived")

    assert home.result("STO004").status == "clean"


def test_the_database_of_another_program_is_named(build: Build) -> None:
    home = build("0.19.0")
    home.store.unlink()
    other = apsw.Connection(str(home.store))
    other.execute("CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url TEXT)")
    other.close()

    outcome = home.audit("STO", "CNT")

    (finding,) = outcome.findings
    assert finding.rule == "STO004"
    assert "moz_places" in str(facts(finding)["what was found"])
    stopped = {result.id for result in outcome.rules if result.status == "could not run"}
    assert stopped == {"STO003", "STO005", "STO006", "CNT001"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("STO004").status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("STO004").status == "clean"
