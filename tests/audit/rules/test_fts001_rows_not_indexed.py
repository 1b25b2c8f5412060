"""FTS001 rows-not-indexed: messages that a search passes over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.audit.builder import VERSIONS, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

pytestmark = pytest.mark.built(
    "FTS001", "no release misses a row while its triggers stand; tests/hermes/test_search_index.py drops one"
)

Build = Callable[..., HomeBuilder]


@contextmanager
def without_triggers(home: HomeBuilder, index: str = "messages_fts", event: str = "insert") -> Iterator[None]:
    """Within the block the index is not told of what is written."""
    name = f"{index}_{event}"
    ((sql,),) = home.sql("SELECT sql FROM sqlite_schema WHERE name = ?", bindings=(name,))
    home.sql(f"DROP TRIGGER {name}")
    yield
    home.sql(sql)


@pytest.mark.fires("FTS001")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_that_is_not_in_the_index_is_a_fault(build: Build, version: str) -> None:
    home = build(version)
    home.chat("a", 4)
    with without_triggers(home):
        row = home.message("a", "user", "never found")

    (finding,) = home.findings("FTS001")

    assert finding.verdict is Verdict.FAULT
    assert finding.severity is Severity.MEDIUM
    assert finding.subject.message_ids == (row,)
    assert facts(finding)["name"] == "messages_fts"
    assert facts(finding)["rows not indexed"] == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_an_index_that_is_whole_is_silent(build: Build, version: str) -> None:
    home = build(version)
    rows = home.chat("a", 6)
    home.message("a", "tool", "x" * 9000, tool_call_id="c")
    home.message("a", "assistant", None, tool_calls=[{"id": "c"}])
    home.chat("job", 2, source="cron")
    home.chat("run", 2, parent_session_id="a", model_config={"_delegate_from": "a"})
    home.sql("DELETE FROM messages WHERE id = ?", bindings=(rows[-1],))
    for deep in (False, True):
        assert home.findings("FTS001", deep=deep) == []
        assert home.findings("FTS002", deep=deep) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_the_index_by_parts_of_words_is_compared_by_the_thorough_audit(build: Build, version: str) -> None:
    home = build(version)
    home.chat("a", 4)
    with without_triggers(home, "messages_fts_trigram"):
        row = home.message("a")
    (finding,) = home.findings("FTS001", deep=True)
    assert facts(finding)["name"] == "messages_fts_trigram"
    assert finding.subject.message_ids == (row,)


def test_a_run_of_a_program_that_a_person_goes_on_with_is_silent(build: Build) -> None:
    """0.22 leaves out what cron and subagents say, and adds nothing when such a session becomes a chat's."""
    home = build("0.22.2")
    home.chat("job", 4, source="cron")
    home.sql("UPDATE sessions SET source = 'telegram' WHERE id = 'job'")
    home.turns("job", 2)
    assert home.findings("FTS001", deep=True) == []
    with without_triggers(home, "messages_fts_trigram"):
        row = home.message("job")
    (finding,) = home.findings("FTS001", deep=True)
    assert finding.subject.message_ids == (row,)


def test_one_missing_and_one_too_many_are_told_apart_by_the_thorough_audit(build: Build) -> None:
    home = build()
    rows = home.chat("a", 4)
    with without_triggers(home):
        home.message("a")
    with without_triggers(home, event="delete"):
        home.sql("DELETE FROM messages WHERE id = ?", bindings=(rows[0],))
    assert home.findings("FTS001") == []
    assert len(home.findings("FTS001", deep=True)) == 1
    assert len(home.findings("FTS002", deep=True)) == 1


@pytest.mark.parametrize(("version", "verdict"), [("0.15.2", "fault"), ("0.16.0", "leftover")])
def test_a_missing_trigger_is_healed_by_newer_releases(build: Build, version: str, verdict: str) -> None:
    home = build(version)
    home.sql("DROP TRIGGER messages_fts_insert")
    home.chat("a", 2)
    (finding,) = home.findings("FTS001")
    assert finding.verdict.value == verdict
    assert facts(finding)["missing triggers"] == ["messages_fts_insert"]


@pytest.mark.parametrize("version", ["0.20.1", "0.22.2"])
def test_rows_that_wait_for_a_rebuild_are_silent(build: Build, version: str) -> None:
    home = build(version)
    rows = home.chat("a", 6)
    home.sql(
        "INSERT INTO messages_fts(messages_fts) VALUES ('delete-all')",
        "INSERT INTO messages_fts_trigram(messages_fts_trigram) VALUES ('delete-all')",
        f"INSERT INTO state_meta VALUES ('fts_rebuild_high_water', '{rows[-1]}')",
        "INSERT INTO state_meta VALUES ('fts_rebuild_progress', '0')",
    )
    home.turns("a", 2)
    assert home.findings("FTS001", deep=True) == []
    home.sql(f"UPDATE state_meta SET value = '{rows[2]}' WHERE key = 'fts_rebuild_progress'")
    by_name = {facts(each)["name"]: each for each in home.findings("FTS001", deep=True)}
    assert by_name["messages_fts"].subject.message_ids == tuple(rows[:3])


def test_an_index_that_is_noted_as_out_of_use_is_silent(build: Build) -> None:
    home = build("0.22.2")
    home.sql("INSERT INTO state_meta VALUES ('fts_stale', '1')", "DROP TRIGGER messages_fts_insert")
    home.chat("a", 4)
    assert home.findings("FTS001", deep=True) == []


def test_a_source_that_no_release_made_is_not_judged(build: Build) -> None:
    home = build("0.20.1")
    home.chat("a", 2)
    home.sql(
        "DROP VIEW messages_fts_trigram_src",
        "CREATE VIEW messages_fts_trigram_src AS SELECT * FROM messages WHERE length(content) > 99",
    )
    with without_triggers(home, "messages_fts_trigram"):
        home.message("a")
    assert home.findings("FTS001", deep=True) == []


@pytest.mark.near_miss("FTS001")
def test_a_store_without_a_search_index_is_silent(build: Build) -> None:
    home = build()
    home.sql(*(f"DROP TRIGGER messages_fts_{event}" for event in ("insert", "update", "delete")))
    home.sql("DROP TABLE messages_fts")
    home.chat("a", 2)
    assert home.findings("FTS001", deep=True) == []


def test_a_note_that_holds_no_number_hides_nothing_but_what_may_wait(build: Build) -> None:
    home = build("0.22.2")
    with without_triggers(home):
        home.chat("a", 2)
    home.sql("INSERT INTO state_meta VALUES ('fts_rebuild_high_water', '''); DROP TABLE messages; --')")
    assert home.findings("FTS001") == []


def test_the_id_does_not_depend_on_what_grows(build: Build) -> None:
    home = build()
    with without_triggers(home):
        home.chat("a", 2)
        (before,) = home.findings("FTS001")
        home.turns("a", 2)
    (after,) = home.findings("FTS001")
    assert before.id == after.id
