"""MSG006 undecodable-content."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

import pytest
from tests.audit.builder import EXPORTED, VERSIONS, HomeBuilder, facts

from statemend.audit.facts import MOST_LISTED
from statemend.audit.finding import Severity, Verdict

pytestmark = pytest.mark.built(
    "MSG006", "no release writes such a cell; tests/hermes/test_message_rules.py shows what it does to them"
)

Build = Callable[..., HomeBuilder]

#: The first schema, one between, and the newest.
SCHEMAS = ["0.13.0", "0.19.0", "0.22.2"]

PICTURE = [{"type": "text", "text": "What is ☔?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
STRUCTURED = "\0json:" + json.dumps(PICTURE)
CALLS = json.dumps([{"id": "call_1", "function": {"name": "sh", "arguments": "{}"}}])
CONTENT = "rows with structured content that is no JSON"
TOOL_CALLS = "rows with tool calls that are no JSON"
BYTES = "rows with bytes in place of text"
INVALID = "rows with text that is not valid in the encoding of the store"


@pytest.mark.fires("MSG006")
@pytest.mark.parametrize("version", SCHEMAS)
@pytest.mark.parametrize(
    ("column", "cell", "label", "severity"),
    [
        ("content", STRUCTURED[:-3], CONTENT, Severity.MEDIUM),
        ("content", "\0json:{", CONTENT, Severity.MEDIUM),
        ("content", b"\0json:[]", BYTES, Severity.HIGH),
        ("tool_calls", CALLS[:-1], TOOL_CALLS, Severity.MEDIUM),
        ("tool_calls", "none", TOOL_CALLS, Severity.MEDIUM),
        ("tool_calls", CALLS.encode(), BYTES, Severity.HIGH),
        ("tool_name", b"\xff\0", BYTES, Severity.HIGH),
    ],
    ids=["cut", "bare", "bytes", "cut calls", "no calls", "bytes for calls", "bytes for a name"],
)
def test_a_cell_that_hermes_cannot_decode_is_a_fault(
    build: Build, version: str, column: str, cell: object, label: str, severity: Severity
) -> None:
    home = build(version)
    home.chat("right", 2)
    home.chat("odd", 2)
    row = home.message("odd", "assistant", **{column: cell})

    (finding,) = home.findings("MSG006")

    assert (finding.subject.session, finding.subject.message_ids) == ("odd", (row,))
    assert (finding.verdict, finding.severity) == (Verdict.FAULT, severity)
    assert facts(finding) == {label: 1}


@pytest.mark.parametrize("version", ["0.13.0", "0.22.2"])
@pytest.mark.parametrize("column", ["content", "reasoning_content"])
@pytest.mark.parametrize("cell", ["61ff62", "eda080", "c3"], ids=["latin", "surrogate", "cut"])
def test_text_that_is_not_valid_is_found_by_the_deep_check(
    build: Build, version: str, column: str, cell: str
) -> None:
    home = build(version)
    home.chat("right", 2)
    home.message("right", content="Zoë 画像 \U0001f642")
    row = home.message("odd")
    home.sql(f"UPDATE messages SET {column} = CAST(x'{cell}' AS TEXT) WHERE id = {row}")

    assert home.findings("MSG006") == []
    (finding,) = home.findings("MSG006", deep=True)

    assert (finding.subject.session, finding.subject.message_ids) == ("odd", (row,))
    assert (finding.severity, facts(finding)) == (Severity.HIGH, {INVALID: 1})


def test_a_row_with_two_faults_is_named_once_and_no_text_is_shown(build: Build) -> None:
    home = build("0.19.0")
    home.session("odd")
    rows = [
        home.message("odd", content="\0json:[secret", tool_calls="[secret") for _ in range(MOST_LISTED + 3)
    ]

    (finding,) = home.findings("MSG006")

    assert finding.subject.message_ids == tuple(rows[:MOST_LISTED])
    assert facts(finding) == {CONTENT: len(rows), TOOL_CALLS: len(rows)}
    assert "secret" not in repr(finding)


@pytest.mark.near_miss("MSG006")
@pytest.mark.parametrize("version", SCHEMAS[::2])
@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("content", STRUCTURED),
        ("content", "\0json:[NaN, -Infinity]"),
        ("content", '\0json:"\\u0000json:[bad"'),
        ("content", "\0json:anything else"),
        ("content", "\0json"),
        ("content", "\0"),
        ("content", "a \0json:[bad"),
        ("content", ""),
        ("content", None),
        ("tool_calls", CALLS),
        ("tool_calls", json.dumps(CALLS)),
        ("tool_calls", '[{"x": NaN}]'),
        ("tool_calls", "[" * 2000 + "]" * 2000),
        ("tool_calls", ""),
        ("tool_calls", "null"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_hermes_reads_as_it_was_meant_is_lawful(
    build: Build, version: str, column: str, cell: object
) -> None:
    home = build(version)
    home.chat("right", 2)
    home.message("right", "assistant", **{column: cell})

    assert home.findings("MSG006", deep=True) == []


def test_a_store_in_another_encoding_is_read_alike(build: Build) -> None:
    home = build("0.19.0")
    schema = [
        row[0] for row in home.sql("SELECT sql FROM sqlite_schema WHERE name IN ('messages', 'sessions')")
    ]
    home.store.unlink()
    connection = sqlite3.connect(home.store)
    connection.execute("PRAGMA encoding = 'UTF-16le'")
    for statement in schema:
        connection.execute(statement)
    for content in (STRUCTURED, "Āāĸ", STRUCTURED[:-1]):
        connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('odd', 'user', ?, 1.0)",
            (content,),
        )
    connection.commit()
    connection.close()

    (finding,) = home.findings("MSG006", deep=True)

    assert finding.subject.message_ids == (3,)
    assert facts(finding) == {CONTENT: 1}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, empty=False).result("MSG006", deep=True).status == "clean"


@pytest.mark.parametrize("version", EXPORTED)
def test_a_used_store_of_each_release_is_clean(build: Build, version: str) -> None:
    assert build(version, rich=True).result("MSG006", deep=True).status == "clean"
