"""HTML pages: message blocks byte-exact against real pages, text verbatim, cut pages honest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.corpus import EXPORTS, READABLE, files, store_of

from statemend.formats import html, html_blocks
from statemend.formats.artifact import Kind, Record
from statemend.formats.html import Page
from statemend.store import history
from statemend.store.connection import Store
from statemend.store.history import Message
from statemend.store.schema import Era

PAGES = {"0.18.2": Page.V18, "0.19.0": Page.V19, "0.20.1": Page.V20, "0.22.2": Page.V20}
HEAD = 64 * 1024


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


def exported(store: Store, session_id: str) -> list[Message]:
    view = history.View.DISPLAY if store.schema.era >= Era.V22 else history.View.ACTIVE
    return list(history.messages(store, session_id, view))


def original_pages(version: str) -> list[Path]:
    return [path for path in files(version, "html/*.html") if "redact" not in path.name]


def blocks_of(path: Path, offset: int, length: int) -> list[str]:
    """The message blocks of one section, cut out of the page without the reader under test."""
    text = path.read_bytes()[offset : offset + length].decode()
    main = text.partition("<main>")[2].rpartition("</main>")[0].strip(" \n")
    return re.split(r'\n(?=<div class="message message-)', main) if main else []


def test_every_message_block_is_written_byte_for_byte(store: Store, version: str) -> None:
    compared = 0
    for path in original_pages(version):
        for section in html.read(path).sections:
            messages = exported(store, section.session_id)
            rendered = list(html.render_messages(messages, page=PAGES[version]))
            assert [block.strip("\n") for block in rendered] == blocks_of(
                path, section.offset, section.length
            )
            compared += len(rendered)
    assert compared > 80


def test_every_session_view_is_written_byte_for_byte(store: Store, version: str) -> None:
    for path in original_pages(version):
        page = path.read_bytes().decode()
        sections = html.read(path).sections
        for section in sections:
            session = history.session_record(store, section.session_id)
            assert session is not None
            view = html.render_session(
                session,
                exported(store, section.session_id),
                alone=len(sections) == 1,
                page=PAGES[version],
            )
            assert "".join(view) in page, (path.name, section.session_id)


def test_records_carry_the_text_of_every_message_verbatim(store: Store, version: str) -> None:
    for path in original_pages(version):
        for section in html.read(path).sections:
            messages = [m for m in exported(store, section.session_id) if m.role != html.HIDDEN_ROLE]
            found = list(html.records(path, section))
            assert section.held == len(found) == len(messages)
            for record, message in zip(found, messages, strict=True):
                assert record.role == message.role
                assert record.content == (str(html.message_text(message.content or "")) or None)
                assert record.reasoning == (message.reasoning or message.reasoning_content)
                assert [call["function"] for call in record.tool_calls or []] == [
                    {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
                    for call in message.tool_calls or []
                ]
                assert record.clock is not None
                assert record.timestamp is None


def test_read_names_the_sessions_of_a_page(store: Store, version: str) -> None:
    (path,) = files(version, "html/all.html")
    artifact = html.read(path)
    assert artifact.kind is Kind.HTML
    assert artifact.damage is None
    assert len(artifact.sections) == 14
    for section in artifact.sections:
        session = history.session_record(store, section.session_id)
        assert session is not None
        assert section.title == session["title"]
        assert section.clock is not None
        assert section.started_at is None
        assert path.read_bytes()[section.offset :].lstrip().startswith(b'<div class="session-view')


def test_a_redacted_page_still_counts_its_messages(version: str) -> None:
    (masked,), (plain,) = files(version, "html/redact-T.html"), files(version, "html/single-T-*.html")
    (section,), (original,) = html.read(masked).sections, html.read(plain).sections
    assert (section.held, section.session_id) == (original.held, original.session_id)


def wrote(folder: Path, content: bytes | str) -> Path:
    path = folder / "any.name"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))
    return path


def page_of(*sessions: tuple[dict[str, Any], list[Message]], **more: Any) -> str:
    return "".join(html.render(sessions, generated_at="2026-09-01 10:00:00", **more))


def records_of(path: Path) -> list[list[Record]]:
    return [list(html.records(path, section)) for section in html.read(path).sections]


def test_a_page_of_our_own_reads_back(tmp_path: Path, example: Message) -> None:
    calls = [{"id": "c1", "function": {"name": "<run>", "arguments": '{"a": "&lt;\'"}'}}, {"odd": 1}, 5]
    messages = [
        msgspec.structs.replace(example, role="system", content="be <kind>"),
        msgspec.structs.replace(example, role="session_meta", content="hidden"),
        msgspec.structs.replace(
            example, role="assistant", content=None, tool_calls=calls, reasoning="why & how"
        ),
        msgspec.structs.replace(example, role="tool", content="\n</code></pre>\r\n", timestamp=None),
        msgspec.structs.replace(example, role="assistant", content={"a": [1]}),
    ]
    sessions = [
        ({"id": 's"1', "title": "<A>\n&", "model": None, "started_at": 0}, messages),
        ({"id": "s2"}, []),
    ]
    path = wrote(tmp_path, page_of(*sessions))
    assert html.recognise(path.read_bytes()[:HEAD]) is Kind.HTML
    artifact = html.read(path)
    assert artifact.damage is None
    assert [(s.session_id, s.title, s.clock, s.held) for s in artifact.sections] == [
        ('s"1', "<A>\n&", None, 4),
        ("s2", None, None, 0),
    ]
    system, assistant, tool, structured = records_of(path)[0]
    assert (system.role, system.content) == ("system", "be <kind>")
    assert assistant.content is None
    assert assistant.reasoning == "why & how"
    assert [call["function"]["name"] for call in assistant.tool_calls or []] == [
        "<run>",
        "unknown",
        "unknown",
    ]
    assert (assistant.tool_calls or [])[0]["function"]["arguments"] == '{"a": "&lt;\'"}'
    assert (tool.content, tool.clock) == ("\n</code></pre>\r\n", None)
    assert structured.content == "{'a': [1]}"
    assert [record.position for record in records_of(path)[0]] == [0, 1, 2, 3]


def test_a_page_of_our_own_asks_for_nothing_and_runs_nothing(example: Message) -> None:
    page = page_of(({"id": "s", "title": '<script src="https://x">'}, [example]))
    assert "<script" not in page
    assert not re.search(r"""(?:src|href)=["'](?!#)""", page)
    assert "default-src 'none'" in page


def test_the_clock_is_the_wall_time_of_the_zone(example: Message) -> None:
    message = msgspec.structs.replace(example, timestamp=1785576007.9)
    zone = timezone(timedelta(hours=5, minutes=30))
    assert '<div class="timestamp">2026-08-01 09:20:07</div>' in html.render_message(message, 0)
    assert '<div class="timestamp">2026-08-01 14:50:07</div>' in html.render_message(message, 0, zone=zone)


@pytest.mark.parametrize("timestamp", [None, 0, 0.0, "noon", float("nan"), 1e300, -5.0])
def test_a_time_that_is_none_is_shown_as_such(example: Message, timestamp: Any) -> None:
    block = html.render_message(msgspec.structs.replace(example, timestamp=timestamp), 0)
    assert '<div class="timestamp">N/A</div>' in block


@given(content=st.text(), reasoning=st.text(), role=st.sampled_from(["user", "tool", "assistant", "a<b"]))
@settings(max_examples=150, deadline=None)
def test_any_text_comes_back(
    content: str, reasoning: str, role: str, example: Message, tmp_path_factory: Any
) -> None:
    message = msgspec.structs.replace(example, role=role, content=content, reasoning=reasoning)
    path = wrote(tmp_path_factory.mktemp("any"), page_of(({"id": "s"}, [message, message])))
    first, second = records_of(path)[0]
    assert (first.role, first.content or "", first.reasoning or "") == (role, content, reasoning)
    assert second.content == first.content


def test_a_page_written_on_windows_reads_the_same(tmp_path: Path) -> None:
    (original,) = files("0.20.1", "html/single-W-*.html")
    path = wrote(tmp_path, original.read_bytes().replace(b"\n", b"\r\n"))
    assert html.recognise(path.read_bytes()[:HEAD]) is Kind.HTML
    assert html.read(path).damage is None
    assert records_of(path) == records_of(original)


def saved_by_a_browser(page: str) -> str:
    """The same tree as a browser writes it: shapes with end tags, bare quotes, the script's classes."""
    page = re.sub(r"<(path|circle|rect|polyline|line)([^>]*)/>", r"<\1\2></\1>", page)
    page = (
        page.replace(' active" style=', ' active fade-in" style=')
        .replace("&quot;", '"')
        .replace("&#39;", "'")
    )
    return page.replace("</body>\n</html>", "\n\n</body></html>").replace(
        "<!DOCTYPE html>\n", "<!DOCTYPE html>"
    )


@pytest.mark.parametrize("name", ["all", "single-T-*", "single-MM-*"])
def test_a_page_that_a_browser_saved_again_reads_the_same(tmp_path: Path, name: str) -> None:
    (original,) = files("0.22.2", f"html/{name}.html")
    path = wrote(tmp_path, saved_by_a_browser(original.read_bytes().decode()))
    assert html.recognise(path.read_bytes()[:HEAD]) is Kind.HTML
    assert html.read(path).damage is None
    for found, expected in zip(records_of(path), records_of(original), strict=True):
        assert found == [
            msgspec.structs.replace(record, content=folded(record.content)) for record in expected
        ]


def folded(text: Any) -> Any:
    """A text as a general HTML parser hands it on."""
    return None if text is None else re.sub(r"\r\n?", "\n", text)


@given(cut=st.integers(min_value=0))
@settings(max_examples=60, deadline=None)
def test_a_cut_page_is_damaged_and_never_shows_half_a_message(cut: int, tmp_path_factory: Any) -> None:
    (original,) = files("0.22.2", "html/single-T-*.html")
    data = original.read_bytes()
    (expected,) = records_of(original)
    first_view = data.index(b'<div class="session-view')
    size = first_view + cut % (len(data.rstrip()) - first_view - 1)
    path = wrote(tmp_path_factory.mktemp("cut"), data[:size])
    artifact = html.read(path)
    assert artifact.damage == "the page ends before </html>"
    for section, found in zip(artifact.sections, records_of(path), strict=True):
        assert found == expected[: len(found)]
        assert section.held == len(found)
        assert (section.damage is None) == (b"</main>" in data[:size])


def test_a_view_that_another_view_interrupts_is_damaged(tmp_path: Path, example: Message) -> None:
    page = page_of(({"id": "a"}, [example]), ({"id": "b"}, [example]))
    path = wrote(tmp_path, page.replace("            </main>\n", "", 1))
    assert [section.damage for section in html.read(path).sections] == ["cut off", None]


def test_a_page_without_sessions_is_a_page(tmp_path: Path) -> None:
    path = wrote(tmp_path, "<html><body><h1>No sessions to export.</h1></body></html>")
    assert html.recognise(path.read_bytes()) is Kind.HTML
    assert html.read(path).sections == ()
    assert html.read(path).damage is None


@pytest.mark.parametrize(
    "head",
    [b"<!DOCTYPE html>\n<html><body>hello</body></html>", b"<html></html>", b"view-x", b"\xff\xfe<!DOCTYPE"],
)
def test_other_pages_are_not_taken_for_exports(head: bytes) -> None:
    assert html.recognise(head) is None


LINES = st.sampled_from([b"a", b' <div class="message message-', b"</div></div>", b"</div></div> \r", b" "])


@given(st.lists(st.lists(LINES, max_size=3).map(b"".join), max_size=12), st.integers(1, 5))
@settings(max_examples=200, deadline=None)
def test_blocks_are_found_however_the_lines_are_gathered(lines: list[bytes], together: int) -> None:
    expected: list[bytes] = []
    gathered: list[bytes] = []
    ended = [line + b"\n" for line in lines]
    for line in ended:
        gathered = [line] if html_blocks.opens(line) else [*gathered, line] if gathered else []
        if gathered and html_blocks.is_whole(line):
            expected.append(b"".join(gathered))
            gathered = []
    pieces = [b"".join(ended[start : start + together]) for start in range(0, len(ended), together)]
    assert list(html_blocks.blocks(pieces)) == expected


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_no_content_raises(tmp_path_factory: Any, content: bytes) -> None:
    html.recognise(content)
    data = (EXPORTS / "0.18.2" / "html" / "single-E-20260801_160000_666666.html").read_bytes()
    block = b'<div class="message message-user active">' + content + b"</div></div>\n"
    path = wrote(
        tmp_path_factory.mktemp("any"), data.replace(b"            </main>", block + b"            </main>")
    )
    for section in html.read(path).sections:
        assert len(list(html.records(path, section))) == section.held


def test_a_hostile_block_costs_no_more_than_its_size(tmp_path: Path, example: Message) -> None:
    head = html.render_message(example, 0).partition('<div class="timestamp">')[0]
    block = '<div class="message message-user active">' + head * 3000 + "</div></div>"
    page = page_of(({"id": "s"}, [example])).replace("            </main>", f"\n{block}\n            </main>")
    (first, second), *_ = records_of(wrote(tmp_path, page))
    assert first.content == example.content
    assert second.clock is None


def test_titles_that_never_end_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    view = b'<div class="session-view" id="view-s1">\n' + b"<h1>" * 16_000 + b"\n"
    path.write_bytes(b'<!DOCTYPE html>\n<div class="layout layout-multi">\n' + view * 60)
    assert [each.title for each in html.read(path).sections] == [None] * 60
