"""FTS002 index-rows-without-message: what a search index kept of messages that are gone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import VERSIONS, HomeBuilder, facts
from tests.audit.rules.test_fts001_rows_not_indexed import without_triggers
from tests.audit.rules.test_sto005_store_younger_than_evidence import export

from statemend.audit.finding import Severity, Verdict

pytestmark = pytest.mark.built(
    "FTS002", "no release deletes a message past its triggers; tests/hermes/test_search_index.py does"
)

Build = Callable[..., HomeBuilder]


@pytest.mark.fires("FTS002")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_of_a_message_that_is_gone_is_a_fault(build: Build, version: str) -> None:
    home = build(version)
    rows = home.chat("a", 4)
    with without_triggers(home, event="delete"):
        home.sql("DELETE FROM messages WHERE id = ?", bindings=(rows[1],))

    (finding,) = home.findings("FTS002")

    assert finding.verdict is Verdict.FAULT
    assert finding.severity is Severity.LOW
    assert facts(finding)["first of them"] == [rows[1]]
    keeps = facts(finding)["keeps a copy of every text"]
    assert keeps is (version < "0.20")
    assert ("with their texts" in finding.summary) is keeps
    assert "turn 1" not in str(finding)


def test_what_the_newest_release_leaves_by_itself_is_a_leftover(build: Build) -> None:
    home = build("0.22.2")
    home.chat("a", 4)
    home.sql("UPDATE sessions SET source = 'cron'", "DELETE FROM messages", "DELETE FROM sessions")
    (finding,) = home.findings("FTS002", deep=True)
    assert finding.verdict is Verdict.LEFTOVER
    assert facts(finding)["name"] == "messages_fts_trigram"
    assert facts(finding)["rows without a message"] == 4


def test_missing_triggers_make_it_a_leftover_where_hermes_heals_it(build: Build) -> None:
    home = build("0.19.0")
    home.chat("a", 4)
    home.sql("DROP TRIGGER messages_fts_delete", "DELETE FROM messages")
    assert [finding.verdict for finding in home.findings("FTS002")] == [Verdict.LEFTOVER]


@pytest.mark.near_miss("FTS002")
def test_an_index_that_is_noted_as_out_of_use_is_silent(build: Build) -> None:
    home = build("0.22.2")
    home.chat("a", 4)
    home.sql("INSERT INTO state_meta VALUES ('fts_stale', '1')", "DROP TRIGGER messages_fts_delete")
    home.sql("DELETE FROM messages")
    assert home.findings("FTS002") == []


def test_rows_are_told_while_a_rebuild_waits(build: Build) -> None:
    home = build("0.22.2")
    rows = home.chat("a", 4)
    with without_triggers(home, event="delete"):
        home.sql("DELETE FROM messages WHERE id = ?", bindings=(rows[0],))
    home.sql("INSERT INTO state_meta VALUES ('fts_rebuild_high_water', '99')")
    assert len(home.findings("FTS002")) == 1


def test_texts_that_the_index_kept_are_told_by_session(build: Build) -> None:
    home = build("0.19.0")
    home.chat("goes", 3)
    export(home, "goes")
    home.message("goes", content="said later")
    with without_triggers(home, event="delete"):
        home.sql("DELETE FROM messages", "DELETE FROM sessions")
    (finding,) = home.findings("FTS002")
    told = facts(finding)
    assert told["sessions that these texts are of"] == ["goes"]
    assert told["texts of these sessions"] == 3
    assert told["texts of which nothing tells the session"] == 1
    assert "statemend artifacts --with-content" in finding.remedy.text
    assert "said later" not in str(finding)
