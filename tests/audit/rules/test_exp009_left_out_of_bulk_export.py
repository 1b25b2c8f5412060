"""EXP009 left-out-of-bulk-export: open sessions that an export with a filter does not take."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder, facts

from statemend.audit.facts import moment
from statemend.audit.finding import Severity, Verdict
from statemend.formats.manifest import ManifestLine, render_line

Build = Callable[..., HomeBuilder]
AT = START + 10_000.0


def chats(home: HomeBuilder) -> HomeBuilder:
    """Four ended sessions, and one among them that was never ended."""
    for number in range(4):
        home.chat(f"s{number}", 2, started_at=START + 100.0 * number, ended_at=START + 100.0 * number + 50)
    home.chat("open", 3, started_at=START + 150)
    return home


def exported(home: HomeBuilder, *sessions: str, at: float = AT, pause: float = 0.002) -> None:
    """The manifest lines of one export of these sessions."""
    lines = [
        render_line(ManifestLine(f"{each}.md", each, "0" * 64, 2, at + pause * number, "md", (each,)))
        for number, each in enumerate(sessions)
    ]
    path = home.root / "session-exports" / "manifest.jsonl"
    before = path.read_text() if path.exists() else ""
    home.file("session-exports/manifest.jsonl", before + "".join(lines))


ALL = ("s0", "s1", "s2", "s3")


@pytest.mark.fires("EXP009")
def test_an_open_session_among_those_exported(build: Build) -> None:
    home = chats(build())
    exported(home, *ALL)
    (finding,) = home.findings("EXP009")
    assert (finding.verdict, finding.severity) == (Verdict.RISK, Severity.MEDIUM)
    assert finding.subject.session == "open"
    assert facts(finding)["sessions in it"] == 4
    assert (finding.remedy.command or "").endswith("open")


def test_one_that_ended_only_later_was_left_out_too(build: Build) -> None:
    home = chats(build())
    home.sql(f"UPDATE sessions SET ended_at = {AT + 60} WHERE id = 'open'")
    exported(home, *ALL)
    assert [finding.subject.session for finding in home.findings("EXP009")] == ["open"]


@pytest.mark.parametrize("ended_at", [None, AT + 60])
def test_what_a_file_holds_of_it_is_not_counted(build: Build, ended_at: float | None) -> None:
    home = chats(build())
    home.sql(
        "UPDATE sessions SET title = 'Plan', started_at = ?, ended_at = ? WHERE id = 'open'",
        bindings=(START, ended_at),
    )
    exported(home, *ALL[:3])
    one_file(home, "open", name="a part")
    last = home.message("open", "assistant", "and more")
    (finding,) = home.findings("EXP009")
    assert finding.subject.message_ids == (last,)
    told = facts(finding)
    assert (told["title"], told["messages in no file"]) == ("Plan", 1)
    assert told["ended at"] == ("open" if ended_at is None else moment(ended_at))


@pytest.mark.parametrize("listed", [False, True])
def test_the_newest_of_the_surest_that_left_it_out_is_named(build: Build, listed: bool) -> None:
    home = chats(build())
    home.sql(f"UPDATE sessions SET started_at = {START + 300} WHERE id = 'open'")
    home.session("odd", started_at="soon")
    home.message("odd")
    if listed:
        exported(home, *ALL)
    for at in (AT + 500, AT - 500):
        one_file(home, *ALL, at=at, name=f"made {AT - at:+.0f} s before")
    (finding,) = home.findings("EXP009")
    assert (finding.subject.artifact or "").endswith(
        "manifest.jsonl" if listed else "made -500 s before.jsonl"
    )
    assert finding.verdict is (Verdict.RISK if listed else Verdict.UNDECIDABLE)


def test_one_whose_messages_were_stored_later_may_have_been_brought_in(build: Build) -> None:
    home = chats(build())
    exported(home, *ALL)
    home.chat("later", 2, started_at=AT + 50, ended_at=AT + 90)
    home.sql(f"UPDATE messages SET timestamp = {AT + 60} WHERE session_id = 'later'")
    home.sql("UPDATE messages SET id = id + 1000 WHERE session_id = 'open'")
    (finding,) = home.findings("EXP009")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.LOW)
    assert facts(finding)["its messages were stored after that"] is True


NEAR_MISSES = {
    "it is in the export": ("", (*ALL, "open")),
    "another ended session is not in it either": ("", ("s0", "s2", "s3")),
    "too few to be a bulk export": ("DELETE FROM sessions WHERE id > 's1'", ALL[:2]),
    "of another source": ("UPDATE sessions SET source = 'telegram' WHERE id = 'open'", ALL),
    "begun after the last": (f"UPDATE sessions SET started_at = {START + 5000} WHERE id = 'open'", ALL),
    "begun before the first": (f"UPDATE sessions SET started_at = {START - 5000} WHERE id = 'open'", ALL),
    "it has no message": ("DELETE FROM messages WHERE session_id = 'open'", ALL),
}


@pytest.mark.near_miss("EXP009")
@pytest.mark.parametrize(("change", "sessions"), NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_near_misses_are_silent(build: Build, change: str, sessions: tuple[str, ...]) -> None:
    home = chats(build())
    if change:
        home.sql(change)
    exported(home, *sessions)
    assert home.findings("EXP009") == []


@pytest.mark.parametrize("pause", [0.6, 60.0], ids=["by a loop", "by hand"])
def test_sessions_exported_one_by_one_are_no_bulk_export(build: Build, pause: float) -> None:
    """Starting Hermes anew for each takes longer than that."""
    home = chats(build())
    exported(home, *ALL, pause=pause)
    assert home.findings("EXP009") == []


def test_a_session_that_took_long_does_not_part_a_bulk_export(build: Build) -> None:
    home = chats(build())
    exported(home, *ALL[:2])
    exported(home, *ALL[2:], at=AT + 1.0)
    assert [finding.subject.session for finding in home.findings("EXP009")] == ["open"]


def test_a_later_export_of_everything_settles_it(build: Build) -> None:
    home = chats(build())
    exported(home, *ALL)
    one_file(home, "open", name="later")
    assert home.findings("EXP009") == []


def one_file(
    home: HomeBuilder,
    *sessions: str,
    at: float = AT,
    name: str = "bulk",
    mark: bytes = b"",
    **columns: Any,
) -> None:
    """One JSONL file with these sessions, made at that time."""
    lines = []
    for each in sessions:
        (line,) = rows(home, "sessions", f"id = '{each}'")
        messages = rows(home, "messages", f"session_id = '{each}' ORDER BY id")
        lines.append(json.dumps({**line, **columns, "messages": messages}) + "\n")
    path = home.file(f"session-exports/{name}.jsonl", mark + "".join(lines).encode())
    os.utime(path, (at, at))


def rows(home: HomeBuilder, table: str, which: str) -> list[dict[str, Any]]:
    names = sorted(home.columns(table))
    found = home.sql(f"SELECT {', '.join(names)} FROM {table} WHERE {which}")
    return [dict(zip(names, row, strict=True)) for row in found]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
def test_one_file_with_many_sessions_may_be_a_bulk_export(build: Build, mark: bytes) -> None:
    """Exports of single sessions that were joined have the same bytes."""
    home = chats(build("0.19.0"))
    one_file(home, *ALL, mark=mark)
    (finding,) = home.findings("EXP009")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.LOW)
    assert finding.subject.session == "open"
    assert finding.subject.artifact == str(home.root / "session-exports" / "bulk.jsonl")
    assert facts(finding)["known to be one by"] == "one file"


def test_newer_releases_order_by_the_last_message_or_activity(build: Build) -> None:
    home = chats(build("0.22.2"))
    home.sql(f"UPDATE messages SET timestamp = {START + 400} WHERE session_id = 's0'")
    one_file(home, "s1", "s2", "s3", "s0")
    assert len(home.findings("EXP009")) == 1
    home.sql(f"UPDATE sessions SET last_activity_at = {START + 450} WHERE id = 's2'")
    one_file(home, "s1", "s3", "s0", "s2")
    assert len(home.findings("EXP009")) == 1
    home.sql("UPDATE sessions SET last_activity_at = NULL", "DELETE FROM messages WHERE session_id = 's2'")
    one_file(home, "s1", "s3", "s2", "s0")
    assert len(home.findings("EXP009")) == 1


JOINED: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "in no order": (("s1", "s0", "s2", "s3"), {}),
    "with one twice": ((*ALL, "s3"), {}),
    "of open ones": (ALL, {"ended_at": None}),
    "with impossible times": (ALL, {"started_at": "soon"}),
}


@pytest.mark.parametrize(("sessions", "columns"), JOINED.values(), ids=JOINED)
def test_exports_of_single_sessions_that_were_joined(
    build: Build, sessions: tuple[str, ...], columns: dict[str, Any]
) -> None:
    home = chats(build("0.19.0"))
    one_file(home, *sessions, **columns)
    assert home.findings("EXP009") == []


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
@pytest.mark.parametrize(
    ("release", "at", "lists_all"),
    [("0.19.0", AT, True), ("0.17.0", AT, False), ("0.19.0", START + 320, False), ("0.19.0", START, False)],
    ids=["it lists all", "a release that takes open ones", "one was open then", "older than its sessions"],
)
def test_one_file_of_another_making_is_silent(
    build: Build, release: str, at: float, lists_all: bool, mark: bytes
) -> None:
    home = chats(build(release))
    one_file(home, *ALL, at=at, mark=mark, **({"last_active": 1.5} if lists_all else {}))
    assert home.findings("EXP009") == []
