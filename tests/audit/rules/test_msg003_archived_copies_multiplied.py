"""MSG003 archived-copies-multiplied."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest
from tests.audit.builder import VERSIONS, HomeBuilder, facts
from tests.repair.copies import compacted

from statemend.audit.finding import Severity, Verdict
from statemend.store.connection import open_for_audit
from statemend.store.repeats import WORTH, repeats

Build = Callable[..., HomeBuilder]

WITH_ARCHIVE = [version for version in VERSIONS if version >= "0.18.2"]


@pytest.mark.fires("MSG003")
@pytest.mark.parametrize("version", WITH_ARCHIVE)
def test_copies_outnumber_what_they_repeat(build: Build, version: str) -> None:
    home = build(version)
    home.chat("quiet", 4)
    rows = compacted(home, "chat", messages=10, times=15)

    (finding,) = home.findings("MSG003")

    told = facts(finding)
    assert finding.subject.session == "chat"
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.LOW)
    assert (told["live and archived rows"], told["archived rows"]) == (len(rows), len(rows) - 10)
    assert told["rows that only repeat another"] == len(rows) - 20  # the first and the live one stay
    assert (told["messages that they repeat"], told["most rows of one message"]) == (10, 16)
    assert told["bytes that they hold"] > 100 * (len(rows) - 20)
    assert shlex.split(finding.remedy.command or "")[:4] == ["statemend", "cleanup", "plan", "--collapse"]


@pytest.mark.near_miss("MSG003")
@pytest.mark.parametrize("version", WITH_ARCHIVE)
def test_one_row_for_each_compaction_is_how_these_releases_work(build: Build, version: str) -> None:
    """A long conversation: of each twenty messages twelve are kept by the three compactions that follow."""
    home = build(version)
    home.session("chat")
    placed = "display_identity" in home.columns("messages")
    column, value = (", display_identity", ", CAST(n AS BLOB)") if placed else ("", "")
    home.sql(
        f"""
        WITH RECURSIVE
            turn(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM turn WHERE n < 799),
            kept(generation, n) AS (
                SELECT n / 20 + later.value, n FROM turn, json_each('[0, 1, 2, 3]') AS later
                WHERE n / 20 + later.value <= 39 AND (later.value = 0 OR n % 20 >= 8)
            )
        INSERT INTO messages (session_id, role, content, timestamp, active, compacted{column})
        SELECT 'chat', 'user', 'turn ' || n, 1790000000.0 + n, generation = 39, generation < 39 {value}
        FROM kept ORDER BY generation, n
        """
    )
    with open_for_audit(home.store) as store:
        assert len(repeats(store, "chat").surplus) > WORTH
    assert home.findings("MSG003") == []


def test_a_few_are_not_worth_speaking_of(build: Build) -> None:
    home = build("0.20.1")
    compacted(home, "chat", messages=9, times=12)
    assert len(home.sql("SELECT 1 FROM messages WHERE active = 0")) > WORTH
    assert home.findings("MSG003") == []


@pytest.mark.parametrize(
    "values",
    [
        "timestamp = timestamp + id",  # the same words at another time are another message
        "reasoning = 'thought ' || id",
        "token_count = id",
        "content = content || id",
    ],
)
def test_rows_that_differ_in_any_column_are_no_copies(build: Build, values: str) -> None:
    home = build("0.20.1")
    compacted(home, "chat", messages=10, times=15)
    home.sql(f"UPDATE messages SET {values} WHERE session_id = 'chat'")
    assert home.findings("MSG003") == []


@pytest.mark.parametrize("state", ["active = 1, compacted = 0", "active = 0, compacted = 0"])
def test_rows_that_are_not_archived_are_no_copies(build: Build, state: str) -> None:
    home = build("0.20.1")
    compacted(home, "chat", messages=10, times=15)
    home.sql(f"UPDATE messages SET {state} WHERE session_id = 'chat'")
    assert home.findings("MSG003") == []


def test_ids_that_a_release_draws_for_rows_do_not_tell_them_apart(build: Build) -> None:
    home = build("0.22.2")
    compacted(home, "chat", messages=10, times=15)
    home.sql("UPDATE messages SET message_uid = 'uid ' || id")
    assert len(home.findings("MSG003")) == 1
