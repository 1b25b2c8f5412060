"""What a check may ask, what it is told, and what of the answer is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.audit.builder import NOW, HomeBuilder

from statemend.errors import StoreUnreadable, Undetermined, UsageError
from statemend.playbook import query
from statemend.playbook.model import Check, Expect
from statemend.report.produce import produce
from statemend.store.connection import Store, open_for_audit

MARKER = "MARKER-of-a-message"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> HomeBuilder:
    """A home with a session ``a`` of four messages, each with the marker, and two messages of a session that
    is gone."""
    home = HomeBuilder(tmp_path_factory.mktemp("home"), "0.22.2")
    home.chat("a", 4, title="A title")
    home.chat("gone", 2)
    home.sql("DELETE FROM sessions WHERE id = 'gone'", f"UPDATE messages SET content = '{MARKER}' || id")
    home.sql("UPDATE messages SET tool_calls = json_array(content)")
    return home


@pytest.fixture(scope="module")
def tables(built: HomeBuilder) -> query.Tables:
    return query.Tables.of(produce(built.root, now=NOW))


@pytest.fixture
def store(built: HomeBuilder) -> Iterator[Store]:
    with open_for_audit(built.store) as opened:
        yield opened


def step(sql: str, expect: Expect = Expect.ROWS, **options: Any) -> Check:
    return Check(sql=sql, expect=expect, message="It is not so.", **options)


def test_a_check_sees_the_tables_as_rules_do_and_what_the_scan_found(
    store: Store, tables: query.Tables
) -> None:
    sql = """
    SELECT f.rule, f.session, f.messages, count(m.id) AS rows, c.artifact
    FROM findings AS f
    JOIN messages AS m ON m.session_id = f.session
    LEFT JOIN coverage AS c USING (session)
    GROUP BY f.id -- the rows that no session has
    """
    answer = query.ask(store, step(sql), {}, tables)

    assert answer.columns == ("rule", "session", "messages", "rows", "artifact")
    assert answer.rows == (("ORP001", "gone", 2, 2, None),)
    assert query.judge(step(sql), answer) == (True, "1 row, as expected")


def test_every_canonical_column_is_there_in_the_oldest_store(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path, "0.13.0")
    home.chat("a", 2)
    sql = "SELECT active, compacted, display_order FROM messages LIMIT 1"

    with open_for_audit(home.store) as store:
        assert query.ask(store, step(sql), {}, query.Tables()).rows == ((1, 0, None),)


def test_inputs_are_bound_by_name_and_paths_as_a_list(store: Store) -> None:
    sql = (
        "SELECT id FROM sessions WHERE id IN (SELECT value FROM json_each(:ids)) AND started_at > :at AND :on"
    )
    given = {"ids": ["a", "b"], "at": 1.5, "on": True, "other": 1}

    assert query.ask(store, step(sql), given, query.Tables()).rows == (("a",),)
    with pytest.raises(UsageError, match=":ids is no input"):
        query.ask(store, step(sql), {}, query.Tables())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT content FROM messages",
        "SELECT * FROM messages",
        "SELECT upper(content) || role FROM messages",
        "SELECT id FROM sessions UNION SELECT content FROM messages",
        "WITH x(s) AS (SELECT id FROM sessions UNION ALL SELECT content FROM messages) SELECT s FROM x",
        "SELECT role FROM (SELECT content AS role FROM messages)",
        "SELECT (SELECT content FROM messages) AS id, m.role FROM messages AS m",
        "SELECT group_concat(content) FROM messages",
        "SELECT j.value FROM messages, json_each(tool_calls) AS j",
        "SELECT CAST(content AS BLOB) FROM messages",
        "SELECT k FROM (SELECT 1 AS k) RIGHT JOIN (SELECT content AS k FROM messages) USING (k)",
        "SELECT max(content) AS id FROM messages WHERE role IN (SELECT role FROM messages)",
        "WITH RECURSIVE r(id, n) AS (SELECT content, 1 FROM messages) SELECT id FROM r",
        "SELECT first_value(content) OVER () AS id FROM messages",
        "SELECT content AS role, role AS content FROM messages GROUP BY 1",
        "SELECT b.role FROM messages AS a, (SELECT content AS role FROM messages LIMIT 5) AS b",
        """SELECT fullkey, path, key FROM messages, json_tree('{"' || content || '": 1}')""",
        """SELECT '["' || content || '"]' ->> 0 FROM messages""",
        "SELECT [content] AS [id], likely(content) COLLATE NOCASE FROM messages",
    ],
)
def test_the_text_of_a_message_is_never_shown(store: Store, sql: str) -> None:
    answer = query.ask(store, step(sql), {}, query.Tables())

    assert answer.count
    assert MARKER.upper() not in repr((answer.columns, answer.rows)).upper()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(substr(content, 20) AS INTEGER) FROM messages",
        "SELECT id, 1 * substr(content, 20) FROM messages",
        "SELECT -substr(content, 20) FROM messages",
        'SELECT (SELECT "Sum"(substr(content, 20)) FROM messages)',
        "SELECT '[' || substr(content, 20) || ']' ->> 0 FROM messages",
        "SELECT j.value FROM messages, json_each('[' || substr(content, 20) || ']') AS j",
        "SELECT n FROM (SELECT substr(content, 20) | 0 AS n FROM messages)",
    ],
)
def test_a_number_in_a_message_is_not_shown(store: Store, sql: str) -> None:
    """The marker is followed by the number of the row."""
    answer = query.ask(store, step(sql), {}, query.Tables())

    assert {row[-1] for row in answer.rows} == {"a number"}


def test_what_counts_messages_is_shown(store: Store) -> None:
    sql = "SELECT count(*), max(length(content)) -- 1 * 2\nFROM messages WHERE content LIKE '%-%'"

    assert query.ask(store, step(sql), {}, query.Tables()).rows == ((6, 20),)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT json_extract('{}', content) FROM messages",
        "SELECT '{}' ->> ('$' || content) FROM messages",
        "SELECT 1 FROM messages, json_each('{}', '$' || content)",
    ],
)
def test_the_text_of_a_message_is_not_in_an_error(store: Store, sql: str) -> None:
    with pytest.raises(Undetermined, match="bad JSON path; mend the query") as raised:
        query.ask(store, step(sql), {}, query.Tables())

    assert MARKER not in str(raised.value)


def test_other_text_is_shown(store: Store, tables: query.Tables) -> None:
    def rows(sql: str) -> tuple[tuple[Any, ...], ...]:
        return query.ask(store, step(sql), {}, tables).rows

    assert rows("SELECT title, group_concat(id), 'so' FROM sessions") == (("A title", "a", "so"),)
    assert rows("SELECT session_id, role, length(content), content FROM messages LIMIT 1") == (
        ("a", "user", len(MARKER) + 1, f"text of {len(MARKER) + 1} characters"),
    )
    assert rows("SELECT remedy, command FROM findings")[0][1].startswith("statemend plan")
    assert rows("SELECT NULL, 1.5, 9e999, x'00ff', char_count FROM (SELECT 1 AS char_count)") == (
        (None, 1.5, "inf", "2 bytes", 1),
    )


def test_hostile_text_is_shown_for_what_it_is(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path, "0.22.2")
    home.session("a\x1b[31m\u202e", title="x" * 5000)
    home.message("a", role="\udcff".encode("utf-8", "surrogatepass").decode("latin-1"))
    home.sql("UPDATE messages SET role = CAST(x'ff41' AS TEXT)")
    with open_for_audit(home.store) as store:
        ((name, title),) = query.ask(store, step("SELECT id, title FROM sessions"), {}, query.Tables()).rows
        roles = query.ask(store, step("SELECT role FROM messages -- odd"), {}, query.Tables()).rows

    assert name == "a[U+001B][31m[U+202E]"
    assert title.endswith("… (5,000 characters)")
    assert roles == (("\\xffA",),)


def test_rows_are_counted_up_to_the_limit_and_few_are_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "MOST_SHOWN", 2)
    asked = step("SELECT id FROM messages", rows=5)
    answer = query.ask(store, asked, {}, query.Tables())

    assert (answer.count, answer.truncated, len(answer.rows)) == (5, True, 2)
    assert query.judge(asked, answer) == (True, "more than 5 rows, as expected")
    whole = query.ask(store, step("SELECT id FROM messages", rows=6), {}, query.Tables())
    assert (whole.count, whole.truncated) == (6, False)


@pytest.mark.parametrize(
    ("sql", "expect", "value", "verdict"),
    [
        ("SELECT 1 WHERE 0", Expect.EMPTY, None, (True, "no row, as expected")),
        ("SELECT 1", Expect.EMPTY, None, (False, "It is not so. (1 row)")),
        ("SELECT 1", Expect.ROWS, None, (True, "1 row, as expected")),
        ("SELECT 1 WHERE 0", Expect.ROWS, None, (False, "It is not so. (no row)")),
        ("SELECT count(*) FROM messages", Expect.VALUE, 6, (True, "the value is 6")),
        ("SELECT 6.0", Expect.VALUE, 6, (True, "the value is 6.0")),
        ("SELECT 7", Expect.VALUE, 6, (False, "It is not so. (expected 6, got 7)")),
        ("SELECT '6'", Expect.VALUE, 6, (False, "It is not so. (expected 6, got 6 (text))")),
        ("SELECT title FROM sessions", Expect.VALUE, "A title", (True, "the value is A title")),
        ("SELECT NULL", Expect.VALUE, 0, (False, "It is not so. (expected 0, got nothing)")),
        ("SELECT 1 WHERE 0", Expect.VALUE, 1, (False, "It is not so. (expected 1, got no row)")),
        (
            "SELECT 1 UNION SELECT 2",
            Expect.VALUE,
            1,
            (False, "It is not so. (expected 1, got more than one row)"),
        ),
        (
            "SELECT content FROM messages LIMIT 1",
            Expect.VALUE,
            "x",
            (False, f"It is not so. (expected x, got text of {len(MARKER) + 1} characters)"),
        ),
    ],
    ids=lambda value: None,
)
def test_an_answer_is_judged(
    store: Store, sql: str, expect: Expect, value: Any, verdict: tuple[bool, str]
) -> None:
    asked = step(sql, expect, value=value)

    assert query.judge(asked, query.ask(store, asked, {}, query.Tables())) == verdict


def test_a_check_leaves_the_store_as_it_was_for_the_next(store: Store, tables: query.Tables) -> None:
    query.ask(store, step("SELECT id FROM findings"), {}, tables)
    with pytest.raises(UsageError):
        query.ask(store, step("SELECT id FROM nowhere"), {}, tables)

    assert store.value("SELECT count(*) FROM main.sqlite_schema WHERE name = 'messages'") == 1
    assert store.value("SELECT printf('%d', 1)") == "1"
    with pytest.raises(StoreUnreadable, match="no such table"):
        store.value("SELECT id FROM findings")
    assert store.unchanged()


def test_a_table_of_the_store_cannot_pass_for_one_of_the_scan(tmp_path: Path) -> None:
    home = HomeBuilder(tmp_path, "0.22.2")
    home.session("a")
    home.sql("CREATE TABLE findings (id TEXT)", "INSERT INTO findings VALUES ('forged')")
    home.sql("CREATE TABLE json_each (value TEXT)", "INSERT INTO json_each VALUES ('forged')")
    with open_for_audit(home.store) as store:
        assert query.ask(store, step("SELECT * FROM findings"), {}, query.Tables()).count == 0
        with pytest.raises(UsageError, match="json_each"):
            query.ask(store, step("SELECT value FROM json_each"), {}, query.Tables())


def test_json_that_is_none_is_an_answer_that_could_not_be_had(store: Store) -> None:
    with pytest.raises(Undetermined, match="malformed JSON"):
        query.ask(store, step("SELECT json_extract('{', '$')"), {}, query.Tables())
