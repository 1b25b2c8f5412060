"""Digests: equal for equal content, different for any difference, whatever is not content."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.rows import ARCHIVED, ERA_RELEASES, Rows

from statemend.store.connection import open_for_audit
from statemend.store.history import View, messages
from statemend.store.identity import (
    content,
    content_digest,
    message_digest,
    session_digest,
    store_digest,
    view_digest,
)

MakeRows = Callable[[str], Rows]


@pytest.fixture
def rows(tmp_path: Path) -> MakeRows:
    return lambda release: Rows(tmp_path / release, release)


def digest(**changed: Any) -> bytes:
    content = {
        "role": "user",
        "content": "text",
        "timestamp": 1.0,
        "tool_call_id": None,
        "tool_calls": None,
        "tool_name": None,
    }
    return content_digest(**{**content, **changed})


DIFFERENT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"content": "1"}, {"content": 1}),
    ({"content": 1}, {"content": 1.0}),
    ({"content": 1}, {"content": True}),
    ({"content": None}, {"content": ""}),
    ({"content": None}, {"content": "null"}),
    ({"content": [None]}, {"content": [float("nan")]}),
    ({"content": [float("inf")]}, {"content": [float("-inf")]}),
    ({"content": float("nan")}, {"content": None}),
    ({"content": b"abc"}, {"content": "abc"}),
    ({"content": b"abc"}, {"content": "YWJj"}),
    ({"content": b"abc"}, {"content": "b'abc'"}),
    ({"content": "\ud800"}, {"content": "\ufffd"}),
    ({"content": "\ud800"}, {"content": "\\ud800"}),
    ({"content": ["a", "b"]}, {"content": ["b", "a"]}),
    ({"content": ["a,b"]}, {"content": ["a", "b"]}),
    ({"content": [["\ud800"], "a"]}, {"content": [["\ud800", "a"]]}),
    ({"timestamp": 1}, {"timestamp": 1.0}),
    ({"timestamp": "1.0"}, {"timestamp": 1.0}),
    ({"timestamp": 0.1 + 0.2}, {"timestamp": 0.3}),
    ({"tool_calls": None}, {"tool_calls": []}),
    ({"tool_calls": [{"id": "a"}]}, {"tool_calls": [{"id": "b"}]}),
    ({"tool_call_id": "x"}, {"tool_name": "x"}),
    ({"role": "user"}, {"role": "assistant"}),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_content_has_different_digests(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert digest(**one) != digest(**other)


@pytest.mark.parametrize("odd", ["plain", None, float("nan"), "\ud800"])
def test_the_order_of_keys_is_not_content(odd: Any) -> None:
    assert digest(content={"a": 1, "b": odd}) == digest(content={"b": odd, "a": 1})


def test_content_nested_without_end_has_a_digest() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert digest(content=deep) != digest(content=[deep])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def exactly(value: Any) -> Any:
    """A value that equals another only in both type and value, whatever the order of keys."""
    if isinstance(value, dict):
        return "dict", sorted((name, repr(exactly(inner))) for name, inner in value.items())
    return ("list", [exactly(inner) for inner in value]) if isinstance(value, list) else repr(value)


@given(JSON, JSON)
def test_digests_are_equal_exactly_when_content_is(one: Any, other: Any) -> None:
    assert (digest(content=one) == digest(content=other)) is (exactly(one) == exactly(other))


@pytest.mark.parametrize("release", ["0.19.0", "0.20.1", "0.22.2"])
def test_flags_ids_and_counters_are_not_content(rows: MakeRows, release: str) -> None:
    made = rows(release).message("s", "a", at=1.0).message("s", "b", at=2.0)
    made.message("t", "a", at=1.0, finish_reason="stop", token_count=5, **ARCHIVED).message("t", "b", at=2.0)
    with made.opened() as store:
        assert session_digest(store, "s", View.ACTIVE) == session_digest(store, "t", View.DISPLAY)
        assert session_digest(store, "s", View.ACTIVE) != session_digest(store, "t", View.ACTIVE)


def test_the_order_of_messages_is_content(rows: MakeRows) -> None:
    with rows("0.19.0").message("s", "a").message("s", "b").opened() as store:
        found = list(messages(store, "s"))
    assert view_digest(found) != view_digest(reversed(found))
    assert view_digest([]) != view_digest(found[:1])
    assert message_digest(found[0]) != message_digest(found[1])


def test_an_export_that_kept_everything_has_the_digest_of_its_rows(rows: MakeRows) -> None:
    calls = [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]
    made = rows("0.19.0").message("s", [{"type": "text", "text": "ü"}], at=1.25, role="assistant")
    made.run(
        "UPDATE messages SET tool_calls = ?",
        bindings=('[{"function": {"arguments": "{}", "name": "f"}, "id": "c"}]',),
    )
    with made.opened() as store:
        (message,) = messages(store, "s")
    exported = content_digest("assistant", [{"text": "ü", "type": "text"}], 1.25, None, calls, None)
    assert message_digest(message) == exported


def whole(path: Path) -> str:
    with open_for_audit(path) as store:
        return store_digest(store)


CHANGES = [
    "UPDATE messages SET content = 'B' WHERE id = 1",
    "UPDATE messages SET content = NULL WHERE id = 1",
    "UPDATE messages SET content = x'61' WHERE id = 1",
    "UPDATE messages SET content = '' WHERE id = 2",
    "UPDATE messages SET tool_name = '' WHERE id = 1",
    "UPDATE messages SET timestamp = 'soon' WHERE id = 1",
    "UPDATE messages SET id = 7 WHERE id = 1",
    "UPDATE sessions SET title = 'b'",
    "DELETE FROM messages WHERE id = 1",
    "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'a', 1.0)",
    "INSERT INTO state_meta (key, value) VALUES ('k', 'v')",
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("release", ["0.13.0", "0.22.2"])
def test_any_change_to_any_row_shows_in_the_digest_of_the_store(
    rows: MakeRows, release: str, change: str
) -> None:
    made = rows(release).session("s").message("s", "a").message("s", None)
    before = whole(made.path)
    made.run(change)
    assert whole(made.path) != before


@pytest.mark.parametrize("release", ERA_RELEASES)
def test_the_way_a_store_lies_in_its_file_is_not_content(rows: MakeRows, release: str) -> None:
    made = rows(release).session("s").session("t").message("s", "a").message("t", "b")
    before = whole(made.path)
    made.run("UPDATE sqlite_sequence SET seq = 99")
    made.run("CREATE TABLE spare AS SELECT * FROM sessions ORDER BY id DESC")
    made.run("DELETE FROM sessions")
    made.run("INSERT INTO sessions SELECT * FROM spare")
    made.run("DROP TABLE spare")
    made.run("VACUUM")
    assert whole(made.path) == before


def plain_store(path: Path, columns: str, cell: str, encoding: str = "UTF-8") -> Path:
    connection = apsw.Connection(str(path))
    connection.pragma("encoding", encoding)
    connection.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT)")
    connection.execute(f"CREATE TABLE messages ({columns})")
    connection.execute(f"INSERT INTO messages (id, session_id, content) VALUES (1, 's', {cell})")
    connection.close()
    return path


#: Half a unit is dropped by SQLite itself.
ODD_IN_UTF_16 = ("CAST(x'ff' AS TEXT)", "CAST(x'fe' AS TEXT)")


def test_the_order_of_columns_is_not_content(tmp_path: Path) -> None:
    one = plain_store(tmp_path / "one.db", "id INTEGER PRIMARY KEY, session_id TEXT, content", "'a'")
    other = plain_store(tmp_path / "other.db", "content, session_id TEXT, id INTEGER PRIMARY KEY", "'a'")
    assert whole(one) == whole(other)


CELLS = [
    "NULL",
    "0",
    "0.0",
    "'0'",
    "x'30'",
    "'30'",
    "CAST(x'ff' AS TEXT)",
    "CAST(x'fe' AS TEXT)",
    "CAST(x'00d8' AS TEXT)",
    "CAST(x'01d8' AS TEXT)",
    "x'ff'",
    "'FF'",
    "'\\xff'",
    "''",
    "x''",
]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
def test_cells_of_another_type_or_value_are_other_content(tmp_path: Path, encoding: str) -> None:
    columns = "id INTEGER PRIMARY KEY, session_id TEXT, content"
    cells = CELLS if encoding == "UTF-8" else [cell for cell in CELLS if cell not in ODD_IN_UTF_16]
    paths = [plain_store(tmp_path / f"{n}.db", columns, cell, encoding) for n, cell in enumerate(cells)]
    assert len({whole(path) for path in paths}) == len(cells)


def test_rows_around_text_that_is_not_valid_count_once_each(tmp_path: Path) -> None:
    columns = "id INTEGER PRIMARY KEY, session_id TEXT, content"
    path = plain_store(tmp_path / "state.db", columns, "'a'")
    fill = "INSERT INTO messages (session_id, content) VALUES (?, ?)"
    with closing(apsw.Connection(str(path))) as plain:
        plain.execute("INSERT INTO messages (session_id, content) VALUES ('t', CAST(x'61ff' AS TEXT))")
        plain.executemany(fill, [("u", "b"), ("t", "c")])
    with open_for_audit(path) as store:
        before = content(store)
    assert before.sessions.keys() == {"s", "t", "u"}
    for session, row in (("s", 1), ("t", 2), ("u", 3), ("t", 4)):
        with closing(apsw.Connection(str(path))) as plain:
            plain.execute("UPDATE messages SET content = content || 'x' WHERE id = ?", (row,))
        with open_for_audit(path) as store:
            after = content(store)
        assert before.changed(after) == ({session}, set())
        assert after.digest == whole(path) != before.digest
        before = after
