"""FTS003 index-not-kept-up: triggers that are missing or fit another layout, and rebuilds that wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Finding

pytestmark = pytest.mark.built(
    "FTS003", "only a Python without full-text search makes a release drop its triggers"
)
Build = Callable[..., HomeBuilder]
DELETE = "CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN "


def told(finding: Finding) -> tuple[str, str, str]:
    return facts(finding)["name"], finding.verdict.value, finding.severity.value


@pytest.mark.near_miss("FTS003")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_triggers_of_each_release_keep_its_indexes_up(build: Build, version: str) -> None:
    home = build(version)
    home.chat("a", 4)
    assert home.findings("FTS003") == []


@pytest.mark.fires("FTS003")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("trigger", ["messages_fts_insert", "messages_fts_trigram_delete"])
def test_a_missing_trigger_is_a_risk_until_a_release_makes_it_anew(
    build: Build, version: str, trigger: str
) -> None:
    home = build(version)
    home.sql(f"DROP TRIGGER {trigger}")
    (finding,) = home.findings("FTS003")
    index = trigger.rpartition("_")[0]
    expected = ("risk", "medium") if version < "0.16" else ("leftover", "low")
    assert told(finding) == (index, *expected)
    assert facts(finding)["missing triggers"] == [trigger]


@pytest.mark.parametrize(
    ("version", "body"),
    [
        ("0.19.0", "INSERT INTO messages_fts(messages_fts, rowid) VALUES ('delete', old.id); END"),
        ("0.19.0", "SELECT 1; END"),
        ("0.20.1", "DELETE FROM messages_fts WHERE rowid = old.id; END"),
        ("0.22.2", "DELETE FROM messages_fts WHERE rowid = old.id; END"),
    ],
)
def test_a_trigger_of_another_layout_is_a_risk(build: Build, version: str, body: str) -> None:
    home = build(version)
    home.sql("DROP TRIGGER messages_fts_delete", DELETE + body)
    (finding,) = home.findings("FTS003")
    assert told(finding) == ("messages_fts", "risk", "medium")
    assert facts(finding)["triggers of another layout"] == ["messages_fts_delete"]


@pytest.mark.parametrize("version", ["0.20.1", "0.22.2"])
def test_a_rebuild_that_waits_is_a_point_to_know_of(build: Build, version: str) -> None:
    home = build(version)
    home.chat("a", 4)
    home.sql("INSERT INTO state_meta VALUES ('fts_rebuild_high_water', '4')")
    found = sorted(told(each) for each in home.findings("FTS003"))
    assert found == [(name, "leftover", "info") for name in ("messages_fts", "messages_fts_trigram")]


def test_an_index_that_is_noted_as_out_of_use_is_too(build: Build) -> None:
    home = build("0.22.2")
    home.sql("INSERT INTO state_meta VALUES ('fts_stale', '1')", "DROP TRIGGER messages_fts_insert")
    assert {told(each)[1:] for each in home.findings("FTS003")} == {("leftover", "info")}


def test_a_store_without_indexes_lacks_no_trigger(build: Build) -> None:
    home = build("0.19.0")
    for index in ("messages_fts", "messages_fts_trigram"):
        home.sql(*(f"DROP TRIGGER {index}_{event}" for event in ("insert", "update", "delete")))
        home.sql(f"DROP TABLE {index}")
    assert home.findings("FTS003") == []
