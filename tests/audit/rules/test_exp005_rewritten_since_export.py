"""EXP005 rewritten-since-export: one message, two texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.audit.builder import DATA, HomeBuilder, facts

from statemend.audit.finding import Severity, Verdict
from statemend.formats import html, prompts
from statemend.store.connection import open_for_audit
from statemend.store.history import View, messages, session_record

pytestmark = pytest.mark.built(
    "EXP005", "what a release rewrites gets new rows; only clean-markers blanks a text in place"
)

Build = Callable[..., HomeBuilder]
PLAIN = "20260801_090000_aaaaaa"


def put(home: HomeBuilder) -> None:
    source = DATA / "exports" / home.version / "jsonl" / f"single-P-{PLAIN}.jsonl"
    home.file("session-exports/p.jsonl", source.read_bytes())


@pytest.mark.fires("EXP005")
@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
def test_a_rewritten_text_is_named(build: Build, version: str) -> None:
    home = build(version, rich=True)
    put(home)
    home.sql("UPDATE messages SET content = 'quite another text' WHERE id = 2")
    (finding,) = home.findings("EXP005")
    assert (finding.verdict, finding.severity) == (Verdict.UNDECIDABLE, Severity.LOW)
    assert finding.subject.session == PLAIN
    assert finding.subject.message_ids == (2,)
    assert "another text" not in repr(finding.summary)


def test_each_file_is_compared_and_masked_messages_agree(build: Build) -> None:
    home = build("0.19.0", rich=True)
    folder = DATA / "exports/0.19.0/jsonl"
    home.file("session-exports/a.jsonl", (folder / "single-T-20260801_100000_cccccc.jsonl").read_bytes())
    masked = (folder / "redacted-T.jsonl").read_text()
    changed = masked.replace("List files", "Lose files").replace("README", "LICENSE")
    path = home.file("session-exports/b.jsonl", changed)
    (finding,) = home.findings("EXP005")
    assert finding.subject.artifact == str(path)
    told = facts(finding)
    assert told["messages with another text"] > 1
    assert told["messages that agree"] + told["messages with another text"] == told["messages of the session"]


@pytest.mark.parametrize("version", ["0.19.0", "0.22.2"])
def test_an_untouched_session_is_silent(build: Build, version: str) -> None:
    home = build(version, rich=True)
    put(home)
    assert home.findings("EXP005") == []


@pytest.mark.near_miss("EXP005")
def test_masked_secrets_are_silent(build: Build) -> None:
    home = build("0.19.0", rich=True)
    source = DATA / "exports/0.19.0/jsonl/redacted-T.jsonl"
    home.file("session-exports/t.jsonl", source.read_bytes())
    assert home.findings("EXP005") == []


WINDOWS = "one\r\ntwo\r\n\r\nthree"


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"], ids=["to those of Unix", "to those of Windows"])
@pytest.mark.parametrize("kind", ["html", "prompts"])
def test_converted_line_ends_are_no_other_text(build: Build, kind: str, ends: bytes) -> None:
    home = build("0.19.0")
    home.session("s", title="Ends")
    texts = [WINDOWS, "one\ntwo", WINDOWS + "!"]
    rows = [home.message("s", "user", text, reasoning=text) for text in texts]
    with open_for_audit(home.store) as store:
        session = session_record(store, "s") or {}
        told = list(messages(store, "s", View.RAW))
    if kind == "html":
        page = "".join(html.render([(session, told)], generated_at="2026-11-30 09:00:00"))
    else:
        page = prompts.render_markdown([(session, told)])
    path = home.file(f"session-exports/s.{'html' if kind == 'html' else 'md'}", page)
    assert home.findings("EXP005") == []
    path.write_bytes(page.encode().replace(b"\r\n", b"\n").replace(b"\n", ends))
    assert home.findings("EXP005") == []

    home.sql(f"UPDATE messages SET content = 'other' WHERE id = {rows[-1]}")
    assert [finding.subject.message_ids for finding in home.findings("EXP005")] == [(rows[-1],)]
