"""Files that were made to do harm: refused in one line, in time, without anything done."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from tests.audit.builder import HomeBuilder

from statemend.errors import StatemendError, Undetermined, UsageError
from statemend.playbook import check, choices, query, source
from statemend.playbook.model import Check, Expect
from statemend.store.connection import Store, open_for_audit

BOMB = b"a: &a [x, x]\n" + b"".join(
    b"%c: &%c [*%c, *%c]\n" % (c, c, c - 1, c - 1) for c in range(ord("b"), ord("z"))
)

YAML = {
    "bomb of aliases": (BOMB, "an anchor"),
    "alias": (b"a: *b\n", "an alias"),
    "anchored root": (b"&a {a: 1}\n", "an anchor"),
    "anchored key": (b"&a a: 1\n", "an anchor"),
    "merge key": (b"a:\n  <<: {b: 1}\n", "a merge key"),
    "object": (b"a: !!python/object/apply:os.system [id]\n", "a tag"),
    "own tag": (b"a: !x 1\n", "a tag"),
    "lists in lists": (b"[" * 200_000, "nested more than 20 deep"),
    "mappings in mappings": (b"{a: " * 60_000, "nested more than 20 deep"),
    "items in items": (b"- " * 120_000, "nested more than 20 deep"),
    "keys in keys": (b"? " * 120_000, "a key that is no text"),
    "ever further in": (b"".join(b" " * n + b"a:\n" for n in range(600)), "nested more than 20 deep"),
    "too many values": (b"- a\n" * 60_000, "more than 5,000 values"),
    "too many keys": (b"".join(b"k%d: 1\n" % n for n in range(20_000)), "more than 5,000 values"),
    "too large": (b"# " + b"x" * 300_000, "larger than 256 KiB"),
    "nothing but blanks": (b"\n" * 260_000, "the file is empty"),
    "endless key": (b"k" * 100_000 + b": 1\n", "not YAML"),
    "endless number": (b"a: " + b"9" * 100_000 + b"\n", "a whole number beyond 64 bits"),
    "NUL": (b"a: b\0c\n", "the character U+0000"),
    "escape codes": (b"a: \x1b[31m\n", "the character U+001B"),
    "half a character": (b'a: "\\ud83d"\n', "half a character"),
    "not UTF-8": (b"a: 1\nb: \xff\xfe\n", "2:4: not valid UTF-8"),
    "UTF-16": ("a: 1\n".encode("utf-16"), "not valid UTF-8"),
    "binary": (bytes(range(256)), "not valid UTF-8"),
    "unclosed": (b'a: "' + b"x" * 100_000, "not YAML"),
}


def refusal(action: Callable[[], object]) -> str:
    """The one line with which an action is refused."""
    with pytest.raises(StatemendError) as raised:
        action()
    assert type(raised.value) in (UsageError, Undetermined)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 1000
    return str(raised.value)


@pytest.mark.parametrize("name", YAML)
def test_hostile_yaml_is_refused(tmp_path: Path, name: str) -> None:
    text, said = YAML[name]
    path = tmp_path / "p.yaml"
    path.write_bytes(text)

    assert said in refusal(lambda: source.read(path))


def test_hostile_yaml_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        for name in ("bomb of aliases", "items in items", "keys in keys", "endless number"):
            refusal(partial(source.parse, YAML[name][0], "p.yaml"))
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    tracemalloc.start()
    try:
        assert "larger than 256 KiB" in refusal(lambda: source.read(path))
        assert "larger than 2,048 KiB" in refusal(lambda: choices.load(path))
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("read", [source.read, choices.load], ids=["playbook", "choices"])
def test_what_is_no_regular_file_is_not_opened(tmp_path: Path, read: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "link")
    assert "not a regular file" in refusal(lambda: read(tmp_path))
    assert "not a regular file" in refusal(lambda: read(tmp_path / "pipe"))
    assert "not a regular file" in refusal(lambda: read(Path("/dev/zero")))
    assert "could not be read" in refusal(lambda: read(tmp_path / "link"))
    assert "could not be read" in refusal(lambda: read(tmp_path / ("x" * 300)))


def test_a_playbook_of_many_steps_is_checked_in_time() -> None:
    steps = "".join(f"  - {{do: verify, id: v{number}}}\n" for number in range(99))
    text = f"schema: statemend/playbook/v1\nname: a\ntitle: a\npurpose: a\nhome: /h\nsteps:\n{steps}"
    found = check.problems(source.parse(f"{text}  - do: cleanup\n".encode(), "p.yaml"))

    assert len(found) == 101


TEMPLATES = [
    "{{ ''.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ home.__init__.__globals__ }}",
    "{{ run.__class__ }}",
    "{{ run['name'] }}",
    "{{ home|attr('__class__') }}",
    "{{ self.__init__ }}",
    "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "{{ cycler }}",
    "{{ range(1000000000)|list }}",
    "{{ 'x' * 1000000000 }}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ home ~ home }}",
    "{{ 'x'|center(1000000000) }}",
    "{{ ['x'] * 1000 }}",
    "{{ home if home else home }}",
    "{{ home is defined }}",
    "{{ '%s' % home }}",
    "{{ '{0.__class__}'.format(home) }}",
    "{% for x in home %}{{ x }}{% endfor %}",
    "{% set x = home %}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{% macro m() %}{{ m() }}{% endmacro %}",
    "{% raw %}",
    "{{ " + "(" * 3000 + "home" + ")" * 3000 + " }}",
    "{{ home" + "|upper" * 3000 + " }}",
    "{{ 1" + "0" * 6000 + " }}",
    "{{ home }}" * 300,
    "{{ '" + "x" * 100 + "'" + ("|join('" + "y" * 100 + "')") * 3 + " }}",
    "{{ home|upper|join('x') }}",
    "{{ home|join('" + "y" * 100 + "') }}",
    "{{ home|join(',', '__class__') }}",
    "{{ home",
    "{{",
    "{%",
]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda text: text[:40])
def test_a_template_that_would_compute_is_refused(template: str) -> None:
    quoted = "'" + template.replace("'", "''") + "'"
    text = f"""schema: statemend/playbook/v1
name: trial
title: A trial
purpose: To break out
inputs: {{home: {{type: path, help: the home}}}}
steps:
  - do: pause
    message: {quoted}
"""
    said = refusal(lambda: check.check(source.parse(text.encode(), "p.yaml")))

    assert said.startswith("p.yaml:8:14: ")


def test_what_a_template_makes_is_bounded() -> None:
    from statemend.playbook.variables import TemplateError, render

    with pytest.raises(TemplateError, match="longer than 64 KiB"):
        render("{{ a }}" * 100, {"a": "x" * 4096})


SQL = [
    "DELETE FROM messages",
    "UPDATE sessions SET id = 1",
    "INSERT INTO sessions (id) VALUES (1)",
    "REPLACE INTO sessions (id) VALUES (1)",
    "WITH x AS (SELECT 1) DELETE FROM messages",
    "CREATE TABLE x (a)",
    "DROP TABLE messages",
    "ALTER TABLE sessions ADD COLUMN x",
    "SELECT 1; DELETE FROM messages",
    "SELECT 1; SELECT 2",
    "SELECT 1 /* ; */; DELETE FROM messages",
    "BEGIN IMMEDIATE",
    "VACUUM INTO '/tmp/statemend-hostile'",
    "REINDEX",
    "ANALYZE",
    "ATTACH '/tmp/statemend-hostile' AS x",
    "DETACH main",
    "PRAGMA writable_schema = 1",
    "PRAGMA user_version",
    "EXPLAIN SELECT 1",
    "VALUES (1)",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('sessions')",
    "SELECT count(*) FROM pragma_wal_checkpoint('main')",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM main.messages",
    "SELECT * FROM temp.sqlite_schema",
    "SELECT * FROM (WITH sqlite_schema AS (SELECT 1) SELECT 1), sqlite_schema",
    "SELECT * FROM messages_fts WHERE messages_fts MATCH 'x'",
    "SELECT * FROM messages_fts_content",
    "SELECT * FROM dbstat",
    "SELECT count(*) FROM dbstat",
    "WITH sessions AS (SELECT 1 AS id) SELECT id FROM sessions",
    "SELECT load_extension('/tmp/x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/statemend-hostile', 'x')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT sqlite_log(1, 'x')",
    "SELECT zeroblob(2000000000)",
    "SELECT randomblob(2000000000)",
    "SELECT printf('%.*c', 2000000000, 'x')",
    "SELECT format('%2000000000s', 'x')",
    "SELECT replace(content, '', content) FROM messages",
    "SELECT hex(content) FROM messages",
    "SELECT instr(content, role) FROM messages",
    "SELECT trim(content, role) FROM messages",
    "SELECT trim(content, :set) FROM messages",
    "SELECT \"RTRIM\" (content, 'a' || role) FROM messages",
    "SELECT ltrim(content, '" + "a" * 100 + "') FROM messages",
    "SELECT random()",
    "SELECT ?",
    "SELECT " + "(" * 1000 + "1" + ")" * 1000,
    "SELECT " + "NOT " * 900 + "1",
    "SELECT " + "- " * 1500 + "1",
    "SELECT 1" + " + 1" * 900,
    "SELECT " + "CASE WHEN 1 THEN " * 200 + "1" + " END" * 200,
    "SELECT 1" + " UNION ALL SELECT 1" * 200,
    "WITH a0 AS (SELECT 1 AS x)"
    + "".join(f", a{n} AS (SELECT p.x FROM a{n - 1} AS p, a{n - 1} AS q)" for n in range(1, 40))
    + " SELECT count(*) FROM a39",
    "SELECT 1 FROM sessions" + ", sessions" * 70,
    "",
    ";",
    "-- nothing",
    "/* nothing",
    "SELECT 'a",
    "SELECT",
    "SELECT 1\0; DELETE FROM messages",
    "SELECT '\ud800'",
    "select \N{ZERO WIDTH SPACE}1 from",
]


@pytest.mark.parametrize("sql", SQL, ids=[f"{n}-{sql[:40]!a}" for n, sql in enumerate(SQL)])
def test_sql_that_is_more_than_a_question_is_refused_before_it_runs(sql: str) -> None:
    refusal(lambda: query.guard(sql))
    assert not Path("/tmp/statemend-hostile").exists()


SHAPES = {
    "joins without a condition": "SELECT 1 FROM messages" + " JOIN messages" * 60,
    "joins within joins": "SELECT 1 FROM messages AS a"
    + "".join(f" JOIN messages AS b{n} JOIN messages AS c{n} ON 1" for n in range(30)),
    "calls within calls": "SELECT " + "date(" * 45 + "1" + ")" * 45,
    "names within names": "SELECT 1" + ") AS (" * 600,
    "searches within searches": "SELECT " + "instr(1, (" * 24 + "1" + "))" * 24,
    "quotes": "SELECT " + "'" * 3900,
    "comments": "SELECT 1 " + "/*" * 1900,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_query_of_any_shape_is_understood_or_refused(shape: str) -> None:
    """A parser that tries every meaning of a text never comes to an end with some of these."""
    with suppress(UsageError):
        query.guard(SHAPES[shape])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> HomeBuilder:
    made = HomeBuilder(tmp_path_factory.mktemp("home"), "0.22.2")
    made.chat("a", 40)
    return made


@pytest.fixture
def store(home: HomeBuilder) -> Iterator[Store]:
    with open_for_audit(home.store) as opened:
        yield opened


NUMBERS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
LONG = (
    "WITH RECURSIVE c(i, x) AS (SELECT 0, 'xxxxxxxxxx' UNION ALL "
    "SELECT i + 1, iif(length(x) < 2000000, x || x, x) FROM c)"
)


@pytest.mark.parametrize(
    "sql",
    [
        f"{NUMBERS} SELECT max(n) FROM c",
        f"{NUMBERS} SELECT n FROM c WHERE n < 0",
        f"{NUMBERS} SELECT n FROM c ORDER BY n DESC",
        f"{LONG} SELECT max(length(x)) FROM c",
        f"{LONG} SELECT i FROM c ORDER BY x",
        "SELECT count(*) FROM messages a, messages b, messages c, messages d, messages e, messages f",
    ],
    ids=[
        "counts for ever",
        "never finds",
        "sorts for ever",
        "grows",
        "sorts what grows",
        "joins all with all",
    ],
)
def test_a_question_that_never_ends_is_stopped(store: Store, sql: str) -> None:
    asked = Check(sql=sql, expect=Expect.ROWS, message="m", seconds=0.2)

    assert "no answer after 0.2 seconds" in refusal(lambda: query.ask(store, asked, {}, query.Tables()))
    assert store.value("SELECT count(*) FROM messages") == 40


def test_a_value_that_doubles_for_ever_is_stopped(store: Store) -> None:
    sql = (
        "WITH RECURSIVE c(x) AS (SELECT 'xxxxx' UNION ALL SELECT x || x FROM c) SELECT max(length(x)) FROM c"
    )
    asked = Check(sql=sql, expect=Expect.ROWS, message="m")

    assert "a value longer than 32 MiB" in refusal(lambda: query.ask(store, asked, {}, query.Tables()))


def test_a_pattern_is_short(store: Store) -> None:
    asked = Check(sql=f"SELECT '{'a' * 300}' LIKE '%{'a' * 300}'", expect=Expect.ROWS, message="m")

    assert "pattern too complex" in refusal(lambda: query.ask(store, asked, {}, query.Tables()))


def test_rows_without_end_are_not_read_beyond_the_limit(store: Store) -> None:
    asked = Check(sql=f"{NUMBERS} SELECT n FROM c", expect=Expect.ROWS, message="m", rows=100)
    answer = query.ask(store, asked, {}, query.Tables())

    assert (answer.count, answer.truncated) == (100, True)


def test_temporary_files_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statemend.store.question._LARGEST_SPILL", 1024 * 1024)
    asked = Check(sql=f"{LONG} SELECT i FROM c ORDER BY x", expect=Expect.ROWS, message="m", seconds=60)

    assert "MiB of temporary files" in refusal(lambda: query.ask(store, asked, {}, query.Tables()))
