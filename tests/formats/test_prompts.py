"""User prompts alone: byte-exact both ways, and sound where Markdown is ambiguous."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.corpus import READABLE, files, store_of

from statemend.formats import prompts
from statemend.formats.artifact import Kind
from statemend.store import history
from statemend.store.connection import Store
from statemend.store.history import Message
from statemend.store.schema import Era


@pytest.fixture(params=READABLE)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(version: str, tmp_path: Path) -> Iterator[Store]:
    with store_of(version, tmp_path) as opened:
        yield opened


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Message:
    """A user message to change for a test."""
    with store_of("0.22.2", tmp_path_factory.mktemp("store")) as opened:
        session_id = opened.value("SELECT session_id FROM messages WHERE role = 'user' ORDER BY id LIMIT 1")
        return next(history.messages(opened, session_id))


def shown(store: Store, session_id: str) -> list[Message]:
    view = history.View.DISPLAY if store.schema.era >= Era.V22 else history.View.ACTIVE
    return list(history.messages(store, session_id, view))


def facts(store: Store, session_id: str) -> dict[str, Any]:
    session = history.session_record(store, session_id)
    assert session is not None
    return session


def test_rendering_the_store_gives_the_bytes_of_every_jsonl_export(store: Store, version: str) -> None:
    for path in files(version, "only-user-prompts/*.jsonl"):
        ids = [section.session_id for section in prompts.read(path).sections]
        text = "".join(
            line for session_id in ids for line in prompts.render_jsonl(session_id, shown(store, session_id))
        )
        assert text.encode() == path.read_bytes(), path.name


def test_rendering_the_store_gives_the_bytes_of_every_markdown_export(store: Store, version: str) -> None:
    for path in files(version, "only-user-prompts/*.md"):
        ids = [section.session_id for section in prompts.read(path).sections]
        text = prompts.render_markdown([(facts(store, one), shown(store, one)) for one in ids])
        assert text.encode() == path.read_bytes(), path.name


def test_records_are_the_users_messages(store: Store, version: str) -> None:
    for path in files(version, "only-user-prompts/*"):
        for section in prompts.read(path).sections:
            users = [message for message in shown(store, section.session_id) if message.role == "user"]
            found = list(prompts.records(path, section))
            assert [(record.row_id, record.content, record.position, record.role) for record in found] == [
                (message.id, prompts.prompt_text(message.content), position, "user")
                for position, message in enumerate(users)
            ]
            assert [record.timestamp for record in found] == [message.timestamp // 1 for message in users]
            assert section.held == len(users)


def test_markdown_sections_carry_what_the_file_says_of_the_session(store: Store, version: str) -> None:
    (path,) = files(version, "only-user-prompts/multi-cli.md")
    artifact = prompts.read(path)
    assert artifact.kind is Kind.PROMPTS_MARKDOWN
    assert artifact.damage is None
    assert len(artifact.sections) == 10
    for section in artifact.sections:
        session = facts(store, section.session_id)
        assert section.started_at == session["started_at"] // 1
        assert section.source_count == session["message_count"]
        assert section.title == (session["title"] and " ".join(session["title"].splitlines()).strip())


def wrote(folder: Path, content: bytes | str) -> Path:
    path = folder / "any.name"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def with_texts(example: Message, *texts: Any) -> list[Message]:
    return [
        msgspec.structs.replace(example, content=text, id=40 + number) for number, text in enumerate(texts)
    ]


def contents(path: Path) -> list[list[Any]]:
    return [
        [record.content for record in prompts.records(path, section)]
        for section in prompts.read(path).sections
    ]


#: Pieces of the file's own marks. Without a 2 no text can forge the number that a second prompt would need.
HOSTILE = st.lists(
    st.sampled_from(
        ["#", " ", "\n", "\n\n", "\r", "1", ".", "`", "a", "é", "\u2028", "Message ID: `1`", "### 1. x"]
    ),
    max_size=30,
).map("".join)


@given(texts=st.lists(HOSTILE, min_size=1, max_size=4), alone=st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_texts_come_back_from_markdown(
    texts: list[str], alone: bool, example: Message, tmp_path_factory: Any
) -> None:
    one = ({"id": "s1", "title": "T"}, with_texts(example, *texts))
    sessions = [one] if alone else [one, ({"id": "s2"}, []), ({"id": "s3"}, with_texts(example, "last"))]
    path = wrote(tmp_path_factory.mktemp("md"), prompts.render_markdown(sessions))
    assert prompts.recognise(path.read_bytes()) is Kind.PROMPTS_MARKDOWN
    assert contents(path)[0] == texts
    assert len(contents(path)) == len(sessions)


@pytest.mark.parametrize(
    "forged",
    [
        "x\n\n## 2. 2026-08-01T09:40:14Z\n\nno id",
        "x\n## 2. 2026-08-01T09:40:14Z\nMessage ID: `5`\n\nno empty line above",
        "x\n\n## 7. 2026-08-01T09:40:14Z\nMessage ID: `5`\n\nnot the next number",
        "x\n\n### 2. 2026-08-01T09:40:14Z\nMessage ID: `5`\n\nanother level",
        "x\n\n## Session s9\n- Session ID: `s9`\n\ny",
    ],
)
def test_a_forged_heading_stays_text(tmp_path: Path, example: Message, forged: str) -> None:
    path = wrote(tmp_path, prompts.render_markdown([({"id": "s1"}, with_texts(example, forged, "next"))]))
    assert contents(path) == [[forged, "next"]]


def test_a_forged_section_without_its_own_id_line_stays_text(tmp_path: Path, example: Message) -> None:
    forged = "x\n\n## Session s9\n- Session ID: `other`\n\n### 1. now\nno id"
    sessions = [({"id": "s1"}, with_texts(example, forged)), ({"id": "s2"}, with_texts(example, "b"))]
    path = wrote(tmp_path, prompts.render_markdown(sessions))
    assert contents(path) == [[forged], ["b"]]


def test_a_complete_forgery_is_read_as_two_prompts(tmp_path: Path, example: Message) -> None:
    forged = "x\n\n## 2. 2026-08-01T09:40:14Z\nMessage ID: `5`\n\ny"
    path = wrote(tmp_path, prompts.render_markdown([({"id": "s1"}, with_texts(example, forged))]))
    assert contents(path) == [["x", "y"]]
    block = prompts.render_block(with_texts(example, forged)[0], 1)
    assert block.rstrip("\n") in path.read_text()  # what coverage compares instead


def test_an_export_of_nothing_is_recognised(tmp_path: Path) -> None:
    path = wrote(tmp_path, prompts.render_markdown([]))
    assert path.read_text() == "# User prompts export\n\n_No user prompts found._\n"
    assert prompts.recognise(path.read_bytes()) is Kind.PROMPTS_MARKDOWN
    assert prompts.read(path).sections == ()


@pytest.mark.parametrize(
    "head",
    [b"# User prompts for session x\n\ntext\n", b"# User prompts export\nx", b"## Session s\n", b"# Notes\n"],
)
def test_other_markdown_is_not_taken_for_prompts(head: bytes) -> None:
    assert prompts.recognise(head) is None


def test_markdown_written_on_windows_reads_the_same(tmp_path: Path, example: Message) -> None:
    sessions = [({"id": "s1"}, with_texts(example, "a\nb", "c")), ({"id": "s2"}, with_texts(example, "d"))]
    path = wrote(tmp_path, prompts.render_markdown(sessions).replace("\n", "\r\n"))
    assert prompts.recognise(path.read_bytes()) is Kind.PROMPTS_MARKDOWN
    assert contents(path) == [["a\nb", "c"], ["d"]]


def test_a_cut_markdown_file_is_damaged(tmp_path: Path, example: Message) -> None:
    text = prompts.render_markdown([({"id": "s1"}, with_texts(example, "one", "two words"))])
    path = wrote(tmp_path, text[:-5])
    assert prompts.read(path).damage == "the last line is cut off"
    assert contents(path)[0][0] == "one"


def line(session_id: str, index: int, **more: Any) -> str:
    record = {"session_id": session_id, "index": index, "created_at": "2026-08-01T09:20:07Z", "role": "user"}
    return json.dumps({**record, "text": f"{session_id}-{index}", "message_id": index, **more}) + "\n"


def test_neighbouring_lines_of_a_session_are_one_section(tmp_path: Path) -> None:
    path = wrote(
        tmp_path, line("a", 1) + line("a", 2) + line("b", 1) + line("a", 1) + line("a", 1, event_id="e")
    )
    artifact = prompts.read(path)
    assert artifact.kind is Kind.PROMPTS_JSONL
    assert [(s.session_id, s.held) for s in artifact.sections] == [("a", 2), ("b", 1), ("a", 1), ("a", 1)]
    assert contents(path) == [["a-1", "a-2"], ["b-1"], ["a-1"], ["a-1"]]
    last = list(prompts.records(path, artifact.sections[-1]))[-1]
    assert last.row is not None
    assert last.row["event_id"] == "e"
    assert last.timestamp == 1785576007.0


@pytest.mark.parametrize(
    ("bad", "damage"),
    [
        ("{\n", "line 2 is unreadable"),
        ("[1]\n", "line 2 holds no prompt"),
        ('{"session_id": "a", "index": "1", "role": "user"}\n', "line 2 holds no prompt"),
        ('{"session_id": "a", "index": true, "role": "user"}\n', "line 2 holds no prompt"),
        ("[" * 100_000 + "\n", "line 2 is unreadable"),
    ],
)
def test_a_bad_line_is_named_and_skipped(tmp_path: Path, bad: str, damage: str) -> None:
    path = wrote(tmp_path, line("a", 1) + bad + line("a", 2))
    assert prompts.recognise(path.read_bytes()) is Kind.PROMPTS_JSONL
    artifact = prompts.read(path)
    assert artifact.damage == damage
    assert contents(path) == [["a-1", "a-2"]]


def test_a_cut_last_line_is_damage(tmp_path: Path) -> None:
    path = wrote(tmp_path, (line("a", 1) + line("a", 2))[:-9])
    assert prompts.read(path).damage == "the last line is cut off"
    assert contents(path) == [["a-1"]]


@given(st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_no_content_raises(tmp_path_factory: Any, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    prompts.recognise(content)
    starts = (
        b'{"session_id": "s", "index": 1, "role"',
        b"# User prompts for session s\n- Session ID: `s`\n\n",
    )
    for start in starts:
        path = wrote(folder, start + content)
        artifact = prompts.read(path)
        assert artifact.size == len(start) + len(content)
        for section in artifact.sections:
            assert len(list(prompts.records(path, section))) == section.held


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("as is \n", "as is \n"),
        (
            [{"type": "text", "text": "a"}, "b", {"type": "image", "z": 1, "a": 2}, "", 5],
            'a\nb\n{"a": 2, "type": "image", "z": 1}\n5',
        ),
        ({"content": "inner"}, "inner"),
        (3.5, "3.5"),
    ],
)
def test_the_text_of_structured_content(content: Any, text: str) -> None:
    assert prompts.prompt_text(content) == text
