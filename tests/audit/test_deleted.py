"""What exports of deleted sessions tell of where a compression ended one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.audit.builder import START, HomeBuilder

from statemend.audit.context import Context
from statemend.audit.deleted import End, compression_ends

Build = Callable[..., HomeBuilder]
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nA plan."
END = START - 40


def exported(home: HomeBuilder, name: str, *sessions: dict[str, Any]) -> None:
    """A JSONL export of sessions that ended at ``END`` by a compression, unless told otherwise."""
    usual = {"source": "cli", "started_at": START - 900, "ended_at": END, "end_reason": "compression"}
    lines = [json.dumps({"messages": [], **usual, **session}) + "\n" for session in sessions]
    home.file(f"session-exports/{name}.jsonl", "".join(lines))


def page(home: HomeBuilder, name: str, title: str, ended_at: str = "2026-09-21T14:12:40Z") -> None:
    """A Markdown export, which does not tell why its session ended."""
    home.file(
        f"session-exports/{name}.md",
        f'---\nsession_id: "{name}"\ntitle: "{title}"\nsource: "cli"\ncreated_at: "2026-09-21T13:00:00Z"\n'
        f'updated_at: ""\nended_at: "{ended_at}"\nmodel: "m"\nmessage_count: 1\nformat: "md"\n'
        'exported_at: "2026-11-30T09:16:10Z"\nexporter: "hermes sessions export (md/qmd) v1"\n---\n\n'
        f"# {title}\n\nSession ID: `{name}`\n\nSource: `cli`\n\n## Messages\n\n"
        "### User — 2026-09-21T13:00:01.250000Z\n\nHello.\n\n"
        "## Export verification\n\n- Messages exported: 1\n",
    )


def ends(home: HomeBuilder) -> list[End]:
    found: list[End] = []

    def note(context: Context, _: object) -> None:
        found.extend(compression_ends(context))

    home.audit("STO001", observe=note)
    return found


def test_ends_are_known_from_the_store_and_from_what_was_exported_of_deleted_sessions(build: Build) -> None:
    home = build("0.22.2")
    home.chat("here", ended_at=START + 7, end_reason="compression")
    home.chat("kept", ended_at=START + 8, end_reason="cli_close")
    home.chat("odd", ended_at="soon", end_reason="compression")
    home.chat("first", ended_at=START + 9, end_reason="compression")
    home.chat("second", started_at=START + 9, parent_session_id="first")
    exported(
        home,
        "a",
        {"id": "kept"},
        {"id": "gone", "title": "Plan"},
        {"id": "closed", "end_reason": "cli_close"},
        {"id": "open", "ended_at": None},
    )
    page(home, "paper", "Taxes")
    page(home, "unended", "Garden", ended_at="")

    assert ends(home) == [
        End(START + 7),
        End(START + 9, continued=True),
        End(END, "Plan", True),
        End(END, "Taxes", False),
    ]


@pytest.mark.parametrize(
    ("title", "silent"),
    [("Plan", True), ("Plan #4", True), ("", True), ("Garden", False)],
)
def test_an_end_that_may_have_another_reason_counts_where_the_titles_fit(
    build: Build, title: str, silent: bool
) -> None:
    home = build("0.22.2")
    page(home, "before", title)
    compacted(home, "Plan #2")
    assert bool(home.findings("EXP002")) is not silent


@pytest.mark.parametrize("title", ["Plan #2", None])
def test_an_end_by_compression_counts_whatever_the_titles_are(build: Build, title: str | None) -> None:
    home = build("0.22.2")
    exported(home, "before", {"id": "before", "title": "Garden"})
    compacted(home, title)
    assert home.findings("EXP002") == []


def compacted(home: HomeBuilder, title: str | None) -> None:
    """A partial export of a deleted session that is older than its summary."""
    rows = [("user", SUMMARY, 900), ("assistant", "the kept answer", 900), ("user", "and then?", 960)]
    messages = [
        {"id": 9 + n, "role": role, "content": text, "timestamp": START + at, "active": 1, "compacted": 0}
        for n, (role, text, at) in enumerate(rows)
    ]
    session = {"id": "gone", "started_at": START, "ended_at": START + 9000, "end_reason": "cli_close"}
    exported(home, "gone", {**session, "title": title, "messages": messages})
