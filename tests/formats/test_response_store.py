"""``response_store.db``: the histories that an API server keeps."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.audit.builder import HomeBuilder

from statemend import formats
from statemend.evidence.coverage import assess_session
from statemend.evidence.inventory import find_home, take
from statemend.formats.artifact import Artifact, Kind
from statemend.store.connection import open_for_audit


def put(path: Path, *responses: Any, wal: bool = False) -> sqlite3.Connection:
    """Store one response for each: its data, or the text to stand in its place."""
    connection = sqlite3.connect(path)
    if wal:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS responses "
        "(response_id TEXT PRIMARY KEY, data TEXT NOT NULL, accessed_at REAL NOT NULL)"
    )
    connection.execute(
        "CREATE TABLE IF NOT EXISTS conversations (name TEXT PRIMARY KEY, response_id TEXT NOT NULL)"
    )
    (count,) = connection.execute("SELECT COUNT(*) FROM responses").fetchone()
    for number, data in enumerate(responses, start=count):
        kept = data if isinstance(data, str | bytes) else json.dumps(data)
        connection.execute("INSERT INTO responses VALUES (?, ?, 1.5)", (f"resp_{number}", kept))
    connection.commit()
    return connection


def history(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


def keep_responses(home: HomeBuilder, sessions: Mapping[str, Sequence[str]]) -> Path:
    """What the API server of a home keeps: one response for each session, with these texts in turn."""
    path = home.root / "response_store.db"
    kept = [
        {"response": {}, "conversation_history": history(*texts), "instructions": None, "session_id": sid}
        for sid, texts in sessions.items()
    ]
    put(path, *kept).close()
    return path


def found(home: HomeBuilder) -> tuple[Artifact, ...]:
    with open_for_audit(home.store) as store:
        inventory = take(find_home(home.root), store=store)
    assert inventory.stores == ()
    return inventory.artifacts


@pytest.fixture
def home(tmp_path: Path) -> HomeBuilder:
    made = HomeBuilder(tmp_path / "home", "0.19.0")
    made.chat("talk", 4)
    return made


def test_each_response_is_a_section_with_the_history_up_to_it(home: HomeBuilder) -> None:
    path = home.root / "response_store.db"
    first = {"conversation_history": history("one", "two"), "session_id": "talk"}
    second = {"conversation_history": history("one", "two", "three", "four"), "session_id": "talk"}
    connection = put(path, first, second)
    connection.execute("INSERT INTO conversations VALUES ('notes', 'resp_1')")
    connection.commit()
    connection.close()
    artifact = formats.read(path)
    assert formats.classify(path) is artifact.kind is Kind.RESPONSES
    assert [(each.session_id, each.title, each.held) for each in artifact.sections] == [
        ("talk", None, 2),
        ("talk", "notes", 4),
    ]
    assert [each.content for each in formats.records(path, artifact, artifact.sections[1])] == [
        "one",
        "two",
        "three",
        "four",
    ]
    assert found(home) == (artifact,)


def test_one_that_is_still_in_its_log_is_known_by_its_tables(home: HomeBuilder) -> None:
    path = home.root / "response_store.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    live = put(path, {"conversation_history": history("hello"), "session_id": "talk"}, wal=True)
    copies = {each: each.read_bytes() for each in path.parent.glob("response_store.db*")}
    live.close()
    for each, data in copies.items():
        each.write_bytes(data)
    assert b"CREATE TABLE responses" not in path.read_bytes()
    (artifact,) = found(home)
    assert (artifact.kind, [each.held for each in artifact.sections]) == (Kind.RESPONSES, [1])


@pytest.mark.parametrize("data", ["{", "[]", "null", '{"session_id": 3}', b"\xff\x00", "[" * 100_000])
def test_a_response_that_cannot_be_read_is_damage(home: HomeBuilder, data: str | bytes) -> None:
    path = home.root / "response_store.db"
    put(path, data, {"conversation_history": history("hello"), "session_id": "talk"}).close()
    (artifact,) = found(home)
    broken, sound = artifact.sections
    assert (broken.session_id, broken.held, broken.damage) == ("", 0, "no history that can be read")
    assert (sound.session_id, sound.held, sound.damage) == ("talk", 1, None)
    assert list(formats.records(path, artifact, broken)) == []


def test_a_history_without_a_session_is_told_by_its_texts(home: HomeBuilder) -> None:
    path = home.root / "response_store.db"
    put(path, {"conversation_history": history("turn 0 of talk", "turn 1 of talk")}).close()
    with open_for_audit(home.store) as store:
        (coverage,) = assess_session(store, take(find_home(home.root), store=store), "talk").artifacts
    assert (coverage.kind, coverage.lossy, coverage.extra) == (Kind.RESPONSES, 2, 0)


def test_a_database_of_another_program_is_none(home: HomeBuilder) -> None:
    path = home.root / "response_store.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE responses (id)")
    connection.close()
    assert found(home) == ()
    assert formats.read(path).kind is Kind.UNCLASSIFIED
