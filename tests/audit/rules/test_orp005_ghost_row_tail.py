"""ORP005 ghost-row-tail: a row made in passing that holds the end of a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict

Build = Callable[..., HomeBuilder]


def exported(home: HomeBuilder, session_id: str, *texts: str, start: float = START, name: str = "x") -> None:
    """A JSONL export with these messages, a second apart."""
    messages: list[dict[str, Any]] = [
        {
            "id": 100 + number,
            "session_id": session_id,
            "role": ("user", "assistant")[number % 2],
            "content": text,
            "timestamp": start + number,
            "active": 1,
            "compacted": 0,
        }
        for number, text in enumerate(texts)
    ]
    session = {"id": session_id, "source": "cli", "started_at": start, "messages": messages}
    home.file(f"session-exports/{name}.jsonl", json.dumps(session) + "\n")


def tail(home: HomeBuilder, *texts: str, source: str = "unknown", start: float = START + 3600) -> list[int]:
    home.session("ghost", source=source)
    return [
        home.message("ghost", ("user", "assistant")[number % 2], text, timestamp=start + number)
        for number, text in enumerate(texts)
    ]


@pytest.mark.fires("ORP005")
@pytest.mark.parametrize("source", ["unknown", "recovered"])
@pytest.mark.parametrize("version", ["0.13.0", "0.19.0", "0.22.2"])
def test_the_beginning_is_only_in_a_file(build: Build, version: str, source: str) -> None:
    home = build(version)
    rows = tail(home, "still there?", "I am.", source=source)
    exported(home, "ghost", "one", "two", "three", "four")
    (finding,) = home.findings("ORP005")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    assert finding.subject.session == "ghost"
    assert finding.subject.message_ids == tuple(rows)
    evidence = facts(finding)
    assert (evidence["messages before the tail"], evidence["messages of the tail"]) == (4, 2)
    assert evidence["source of the row"] == source


def test_a_file_that_reaches_into_the_tail_is_no_stranger(build: Build) -> None:
    home = build()
    tail(home, "three", "four", "five", start=START + 2)
    exported(home, "ghost", "one", "two")
    home.sql("UPDATE messages SET role = 'user' WHERE content = 'three'")
    exported(home, "ghost", "one", "two", "three")
    (finding,) = home.findings("ORP005")
    assert facts(finding)["messages that store and files share"] == 1
    assert facts(finding)["messages before the tail"] == 2


def test_lawful_sessions_and_messages_without_a_time(build: Build) -> None:
    home = build()
    home.chat("a talk", 2)
    exported(home, "a talk", "turn 0 of a talk", "turn 1 of a talk", "and more", name="talk")
    tail(home, "still there?")
    record = {"id": "ghost", "source": "cli", "messages": [{"role": "user", "content": "one"}]}
    home.file("session-exports/x.jsonl", json.dumps(record) + "\n")
    (finding,) = home.findings("ORP005")
    assert finding.summary.startswith("The first message of this conversation is not in the store")
    assert facts(finding)["first time"] == facts(finding)["last time before the tail"] == "unknown"


def test_a_ghost_without_messages_lacks_all_of_them(build: Build) -> None:
    home = build()
    home.session("ghost", source="unknown")
    exported(home, "ghost", "one", "two")
    (finding,) = home.findings("ORP005")
    assert facts(finding)["messages of the tail"] == 0


def test_a_conversation_that_overlaps_without_sharing_anything_is_undecidable(build: Build) -> None:
    home = build()
    tail(home, "three", "four", start=START + 0.5)
    exported(home, "ghost", "un", "deux", "trois")
    assert [finding.verdict for finding in home.findings("ORP005")] == [Verdict.UNDECIDABLE]


NEAR_MISSES: dict[str, Callable[[HomeBuilder], None]] = {
    "no file has more": lambda home: exported(home, "ghost", "still there?", "I am.", start=START + 3600),
    "what it has is later": lambda home: exported(home, "ghost", "later", start=START + 9000),
    "it is another session's": lambda home: exported(home, "other", "one", "two"),
    "there is no file": lambda home: None,
}


@pytest.mark.near_miss("ORP005")
@pytest.mark.parametrize("company", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_near_misses_are_silent(build: Build, company: Callable[[HomeBuilder], None]) -> None:
    home = build()
    tail(home, "still there?", "I am.")
    company(home)
    assert home.findings("ORP005") == []


def test_a_row_that_a_conversation_made_is_silent(build: Build) -> None:
    home = build()
    tail(home, "still there?", "I am.", source="cli")
    exported(home, "ghost", "one", "two")
    assert home.findings("ORP005") == []


HEALED_AT = START + 3600


def healed(
    home: HomeBuilder,
    *,
    born: float = START,
    begun: float = HEALED_AT,
    archived: tuple[int, int] = (0, 1),
    put_back: tuple[str, ...] = ("three", "four"),
) -> list[int]:
    """A compacted session of which a file has all rows, and the store what its agent had in memory; its row
    began at ``begun``, the first one at ``born``. ``archived`` are the flags of the first two; the last was
    undone."""
    flags = {"one": archived, "two": archived, "three": (1, 0), "four": (1, 0), "five": (0, 0)}
    rows = [
        {"id": 100 + number, "session_id": "talk", "role": ("user", "assistant")[number % 2]}
        | {"content": text, "timestamp": START + number, "active": active, "compacted": compacted}
        for number, (text, (active, compacted)) in enumerate(flags.items())
    ]
    record = {"id": "talk", "source": "cli", "started_at": born, "messages": rows}
    home.file("session-exports/x.jsonl", json.dumps(record) + "\n")
    home.session("talk", source="cli", started_at=begun)
    stored = [row for row in rows if row["content"] in put_back]
    return [
        *(home.message("talk", row["role"], row["content"], timestamp=row["timestamp"]) for row in stored),
        home.message("talk", "user", "still there?", timestamp=HEALED_AT + 1),
    ]


@pytest.mark.fires("ORP005")
@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
def test_what_was_archived_when_the_row_was_made_again_is_only_in_a_file(build: Build, version: str) -> None:
    home = build(version)
    rows = healed(home)
    (finding,) = home.findings("ORP005")
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, Severity.HIGH)
    assert (finding.subject.session, finding.subject.message_ids) == ("talk", tuple(rows))
    evidence = facts(finding)
    assert (evidence["archived messages that only files have"], evidence["messages of the store"]) == (2, 3)
    assert evidence["messages that store and files share"] == 2


def archived_rows_are_there(home: HomeBuilder) -> None:
    healed(home, put_back=("one", "two", "three", "four"))
    home.sql("UPDATE messages SET active = 0, compacted = 1 WHERE content IN ('one', 'two')")


def only_an_older_export_has_them(home: HomeBuilder) -> None:
    """Nothing tells whether they were archived since, or undone."""
    healed(home, archived=(1, 0))


def a_stored_text_was_rewritten(home: HomeBuilder) -> None:
    healed(home, archived=(1, 0), put_back=("one", "two", "three", "four"))
    home.sql("UPDATE messages SET content = 'other' WHERE content = 'one'")


def an_archived_text_was_rewritten_since(home: HomeBuilder) -> None:
    archived_rows_are_there(home)
    home.sql("UPDATE messages SET content = '' WHERE content IN ('one', 'two')")


HEALED_NEAR_MISSES: dict[str, Callable[[HomeBuilder], object]] = {
    "the row is as old as the file says": lambda home: healed(home, born=HEALED_AT),
    "the row is older than the file says": lambda home: healed(home, born=HEALED_AT + 60),
    "its turns were undone": lambda home: healed(home, archived=(0, 0)),
    "an older export has them live": only_an_older_export_has_them,
    "one of its texts was rewritten": a_stored_text_was_rewritten,
    "its archived texts were rewritten": an_archived_text_was_rewritten_since,
    "the store has the archived rows": archived_rows_are_there,
    "the id was given to another talk": lambda home: healed(home, put_back=()),
}


@pytest.mark.fires("ORP005")
def test_a_snapshot_from_before_the_deletion_proves_as_much(build: Build) -> None:
    home = build()
    healed(home, begun=START, put_back=("one", "two", "three", "four"))
    home.sql("UPDATE messages SET active = 0, compacted = 1 WHERE content IN ('one', 'two')")
    (home.root / "session-exports" / "x.jsonl").unlink()
    home.file("state-snapshots/20260801-130000/state.db", home.store.read_bytes())
    home.sql("DELETE FROM messages WHERE content IN ('one', 'two')")
    home.sql("UPDATE messages SET id = id + 100")
    home.sql("UPDATE sessions SET started_at = ?", bindings=(HEALED_AT,))
    (finding,) = home.findings("ORP005")
    assert facts(finding)["archived messages that only files have"] == 2


@pytest.mark.near_miss("ORP005")
@pytest.mark.parametrize("company", HEALED_NEAR_MISSES.values(), ids=HEALED_NEAR_MISSES)
def test_near_misses_of_a_row_made_again_are_silent(
    build: Build, company: Callable[[HomeBuilder], object]
) -> None:
    home = build()
    company(home)
    assert home.findings("ORP005") == []


@pytest.mark.near_miss("ORP005")
def test_another_talk_under_the_id_whose_first_words_came_before_its_row_is_silent(build: Build) -> None:
    home = build()
    healed(home, put_back=())
    home.message("talk", "user", "hello again", timestamp=HEALED_AT - 3)
    assert home.findings("ORP005") == []
