"""Ids, titles and file names that want to be more than names: shown, never obeyed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from markdown_it import MarkdownIt
from tests.e2e.conftest import DATA
from tests.e2e.running import Audit, Refusal, Statemend, assert_harmless, found

#: Raw HTML and tables are on, as on the sites that show Markdown.
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
START = 1_790_000_000.0
NAMES = {
    "a path": "../../../etc/passwd",
    "an absolute path": "/etc/passwd",
    "a newline": "a\nb",
    "line ends": "\r\n.\r\n",
    "a terminal escape": "\x1b[2J\x1b]0;gone\x07",
    "an escape in one character": "\x9b2J\x90",
    "right to left": "\u202egnp.exe\u202c",
    "isolates and joiners": "\u2066\u200b\u2060\ufeff\u2069",
    "line separators": "\u2028\u2029\x85",
    "a script": "</script><script>alert(1)</script>",
    "an attribute": '" onmouseover="alert(1)',
    "an entity": "&lt;b&gt;&#0;",
    "a table row": "| a | b |\n|---|---|",
    "a heading": "# h\n\n## h",
    "a link": "[x](javascript:alert(1))",
    "an image": "![x](http://example.invalid/x.png)",
    "a fence": "```\n</details>",
    "a comment": "-->\n<!-- x",
    "a mention": "@everyone #1 <!channel>",
    "console markup": "[bold red]x[/] [link=file:///etc]y[/link]",
    "an option": "--live",
    "a shell command": "$(rm -rf ~) `id`; rm -rf / #'\"",
    "a template": "{{ 7*7 }} {% raw %} %s {0} ${HOME}",
    "nothing": "",
    "a blank": " ",
    "a NUL": "a\0b",
    "a long name": "long " * 2000,
    "accents without end": "e" + "\u0301" * 500,
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
}


def named(home: Path, name: str) -> None:
    """Give a session, a parent that is not there, and an orphaned message the name."""
    connection = apsw.Connection(str(home / "state.db"))
    connection.execute("PRAGMA foreign_keys = OFF")
    with connection:
        connection.execute(
            "INSERT INTO sessions (id, source, title, started_at, ended_at, end_reason, parent_session_id) "
            "VALUES (?, ?, ?, ?, ?, 'compression', ?)",
            (f"own {name}", name, name, START, START + 9, f"gone {name}"),
        )
        connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'hello', ?)",
            (name, START),
        )
    connection.close()


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_stays_a_name_in_every_format(
    audit: Audit, statemend: Statemend, home: Path, name: str
) -> None:
    named(home, name)
    document = audit(home, code=1)
    assert name in {finding["subject"]["session"] for finding in found(document, "ORP001")}
    assert f"own {name}" in {finding["subject"]["session"] for finding in found(document, "ORP002")}
    page = statemend("scan", home, "--format", "html").out
    assert "<script>alert" not in page
    assert 'onmouseover="alert' not in page
    assert page.count("<h1") == 1
    shown = MARKDOWN.render(statemend("scan", home, "--format", "md").out)
    assert not re.search(r"<(script|img|b|a)\b", shown.replace("<a id=", ""))
    assert shown.count("<h1") == 1


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_session_of_that_name_can_be_shown(statemend: Statemend, home: Path, name: str) -> None:
    named(home, name)
    for form in ("table", "json"):
        told = statemend("show", "--format", form, "--", home, f"own {name}")
        assert (told.code, told.err) == (0, "")
        assert_harmless(told.out)
    assert json.loads(told.out)["node"]["id"] == f"own {name}"


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_session_that_is_not_there_is_one_line(refusal: Refusal, home: Path, name: str) -> None:
    line = refusal("show", "--", home, f"none {name}", code=2)
    assert len(line) <= 1100
    assert "no session" in line


FILES = (
    b"\xff\xfe.jsonl",
    b"a\nb.jsonl",
    b"\x1b[31mred.jsonl",
    b"-rf.jsonl",
    b"<script>alert(1)<.jsonl",
    "\u202elnosj.jsonl".encode(),
    b"|x|y|.jsonl",
    b"[red]a[bold].jsonl",
    b"`id`$(id).jsonl",
    b"n" * 249 + b".jsonl",
)


@pytest.fixture
def odd_files(home: Path) -> Iterator[Path]:
    """A home whose exports have odd names, in a folder whose name is no text."""
    folder = os.path.join(os.fsencode(home / "session-exports"), b"\xfe folder")
    os.makedirs(folder)
    export = (DATA / "exports" / "0.22.2" / "jsonl" / "all.jsonl").read_bytes()
    for name in FILES:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(export)
    with open(os.path.join(folder, b"\xff.txt"), "wb") as file:
        file.write(b"no export")
    os.mkfifo(os.path.join(folder, b"\xff.pipe"))
    return home


def test_files_of_any_name_are_read_and_named(audit: Audit, odd_files: Path) -> None:
    document = audit(odd_files, code=0)
    names = {artifact["path"].rpartition("/")[2] for artifact in document["artifacts"]}
    assert names == {
        name.decode("utf-8", "surrogateescape").encode("utf-8", "backslashreplace").decode() for name in FILES
    }
    assert {skipped["reason"].split(":")[0] for skipped in document["skipped"]} == {
        "a named pipe",
        "no kind of export, transcript or log that is known here",
    }
    assert document["verdict"].startswith("No fault and no risk")


def test_a_home_of_any_name_can_be_audited(statemend: Statemend, home: Path, tmp_path: Path) -> None:
    for name in (b"\xff home", b"a\nb", b"\x1b[31m", b"#?%20&", "\u202e".encode()):
        place = os.path.join(os.fsencode(tmp_path), name)
        os.rename(home, place)
        home = Path(os.fsdecode(place))
        for form in ("json", "table", "md", "html"):
            told = statemend("scan", os.fsdecode(place), "--format", form)
            assert (told.code, told.err) == (0, "")
            assert_harmless(told.out)
