from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats import corpus
from tests.formats.messages import SESSION, START, message

from statemend.errors import Undetermined
from statemend.formats import markdown
from statemend.formats.artifact import Kind
from statemend.formats.markdown import Document
from statemend.store.history import View, messages, session_record

PATTERNS = ("md*/2*.md", "qmd*/2*.qmd")
EXPORTS = [
    (version, path)
    for version in corpus.READABLE
    for pattern in PATTERNS
    for path in corpus.files(version, pattern)
    if "redact" not in path.parent.name
]
NAMES = [f"{version}-{path.parent.name}-{path.name[:15]}" for version, path in EXPORTS]
NOTHING: list[Any] = []


def write(path: Path, *contents: str, kind: Kind = Kind.MARKDOWN) -> Path:
    """A file as Hermes would write it, one user message per text."""
    rows = [message(number, content=content) for number, content in enumerate(contents, start=1)]
    text = markdown.render(SESSION, [("s1", rows)], kind=kind, exported_at=START + 60)
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(("version", "path"), EXPORTS, ids=NAMES)
def test_writes_every_real_export_again_byte_for_byte(version: str, path: Path, tmp_path: Path) -> None:
    document = Document.load(path)
    view = View.DISPLAY if version == "0.22.2" else View.ACTIVE
    with corpus.store_of(version, tmp_path) as store:
        session = session_record(store, document.session_id)
        assert session is not None
        segments = [(each, list(messages(store, each, view))) for each in document.segments]
    written = markdown.render(
        session,
        segments,
        kind=document.kind,
        exported_at=document.exported_at or 0.0,
        lineage=document.lineage,
    )
    assert written.encode() == path.read_bytes()


@pytest.mark.parametrize("version", corpus.READABLE)
def test_finds_no_damage_in_any_real_export(version: str) -> None:
    for pattern in (*PATTERNS, "delete-after-verified/*/2*md"):
        for path in corpus.files(version, pattern):
            artifact = markdown.read(path)
            assert artifact.damage is None, path.name
            assert artifact.kind is (Kind.QMD if path.suffix == ".qmd" else Kind.MARKDOWN)
            assert artifact.sections[0].declared is not None
            assert artifact.size == path.stat().st_size


def test_says_what_the_file_says_of_itself(tmp_path: Path) -> None:
    section = markdown.read(write(tmp_path / "a.md", "one", "two", "three")).sections[0]
    assert (section.session_id, section.title, section.started_at) == ("s1", "A title", START)
    assert (section.declared, section.source_count) == (3, 2)
    assert section.exported_at == START + 60


def test_names_every_segment_of_a_lineage() -> None:
    (path,) = corpus.files("0.19.0", "md-logical/2*.md")
    section = markdown.read(path).sections[0]
    assert section.session_id == "20260801_133000_222222"
    assert section.lineage == ("20260801_130000_111111", "20260801_133000_222222")


QUIRKS = {
    "carriage returns": "one\r\ntwo\rthree",
    "a checksum line": "- SHA256 of exported body: `" + "0" * 64 + "`",
    "the placeholder": "it says __SHA256_PLACEHOLDER__ there",
    "the placeholder in backticks": "`__SHA256_PLACEHOLDER__` and __SHA256_PLACEHOLDER__",
    "a footer": "x\n\n## Export verification\n\n- Session id: `s1`\n- Exported messages: `9`",
    "the word pending": "- SHA256 of exported body: `pending`",
}


@pytest.mark.parametrize("text", QUIRKS.values(), ids=QUIRKS)
@pytest.mark.parametrize("last", [True, False], ids=["as the last message", "in the middle"])
def test_holds_the_quirks_of_the_checksum_for_no_damage(text: str, last: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "before", text, *([] if last else ["after"]))
    assert markdown.read(path).damage is None
    data = path.read_bytes()
    path.write_bytes(data.replace(b"before", b"beforE"))
    assert markdown.read(path).damage == "checksum mismatch: the file was altered after it was written"


def test_reads_a_file_written_on_windows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "one\r\ntwo", "three\nfour")
    plain = Document.load(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    document = Document.load(path)
    assert markdown.recognise(path.read_bytes()) is Kind.MARKDOWN
    assert document.damage is None
    assert document.crlf
    assert document.block == plain.block


@pytest.mark.parametrize("tail", ["", "\n\n", "  \n"])
def test_white_space_at_the_very_end_is_no_damage(tail: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "one")
    path.write_bytes(path.read_bytes().rstrip(b"\n") + tail.encode())
    assert markdown.read(path).damage is None


def test_text_behind_the_footer_is_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "one")
    path.write_bytes(path.read_bytes() + b"a note\n")
    assert markdown.read(path).damage == "text follows the footer"


def test_a_forged_footer_count_is_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "one", "two")
    path.write_bytes(path.read_bytes().replace(b"messages: `2`", b"messages: `3`"))
    assert "checksum mismatch" in (markdown.read(path).damage or "")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_cut_file_is_damaged_wherever_it_was_cut(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.md"
    whole = write(path, "one\n\n## Export verification\n\n- Session id: `s1`", "two").read_bytes()
    end = data.draw(st.integers(whole.index(b"title") + 20, len(whole) - 2))
    path.write_bytes(whole[:end])
    assert markdown.recognise(whole[:end]) is Kind.MARKDOWN
    assert "truncated" in (markdown.read(path).damage or "")
    assert markdown.read(path).sections[0].session_id == "s1"


def test_a_footer_that_was_cut_belongs_to_no_message(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "one", "two")
    whole = Document.load(path)
    assert whole.footer is not None
    start = len(path.read_bytes()) - len(whole.data[whole.footer.start :])
    for end in range(start + 5, len(path.read_bytes()) - 2):
        path.write_bytes(whole.data[:end])
        assert Document.load(path).block == whole.block
        path.write_bytes(whole.data)


@pytest.mark.parametrize(
    "title",
    ["## Messages", "x\n\n## Messages\n\n### User", "a: b\n---\n", None, "\u2028 \x85 \x00"],
    ids=repr,
)
def test_no_title_hides_where_the_messages_begin(title: str | None, tmp_path: Path) -> None:
    session = {**SESSION, "title": title, "cwd": "/x\n\n## Messages\n\n"}
    text = markdown.render(session, [("s1", [message(1)])], kind=Kind.QMD, exported_at=START)
    document = Document(text.encode())
    assert document.damage is None
    assert document.kind is Kind.QMD
    assert document.block == b"### User \xe2\x80\x94 2026-08-01T09:00:00.500000Z\n\nhello\n"


def test_an_export_without_messages_says_so() -> None:
    document = Document(markdown.render(SESSION, [("s1", [])], kind=Kind.MARKDOWN, exported_at=1.0).encode())
    assert document.empty
    assert document.damage is None
    says_so = message(1, content="_No messages in this session._")
    text = markdown.render(SESSION, [("s1", [says_so])], kind=Kind.MARKDOWN, exported_at=1.0)
    assert not Document(text.encode()).empty


TIMES = {
    1785574800.25: "2026-08-01T09:00:00.250000Z",
    1785574800: "2026-08-01T09:00:00Z",
    "1785574800.5": "2026-08-01T09:00:00.500000Z",
    0: "1970-01-01T00:00:00Z",
    None: "",
    "": "",
    "yesterday": "yesterday",
    8.4e252: "8.4e+252",
    -1.0: "-1.0",
}


@pytest.mark.parametrize(("stored", "shown"), TIMES.items(), ids=map(str, TIMES))
def test_prints_stored_times_as_recent_releases_do(stored: Any, shown: str) -> None:
    heading = markdown.render_heading(message(1, timestamp=stored))
    assert heading == (f"### User — {shown}" if shown else "### User")


def test_prints_corrupt_times_as_older_releases_do() -> None:
    before_1970 = message(1, timestamp=-1.0)
    assert markdown.render_heading(before_1970, guarded=False) == "### User — 1969-12-31T23:59:59Z"
    assert markdown.render_heading(message(1, timestamp=8.4e252), guarded=False) == "### User — 8.4e+252"


@pytest.mark.parametrize("version", corpus.READABLE)
def test_guesses_the_messages_of_a_session_that_is_gone(version: str, tmp_path: Path) -> None:
    (path,) = corpus.files(version, "md/20260801_100000*.md")
    section = markdown.read(path).sections[0]
    guessed = list(markdown.records(path, section))
    with corpus.store_of(version, tmp_path) as store:
        rows = list(messages(store, section.session_id))
    assert [record.role for record in guessed] == [row.role for row in rows]
    assert [record.timestamp for record in guessed] == [row.timestamp for row in rows]
    assert [record.tool_calls for record in guessed] == [row.tool_calls for row in rows]
    assert [record.content or "" for record in guessed] == [(row.content or "").rstrip() for row in rows]
    assert [record.tool_name for record in guessed] == [row.tool_name for row in rows]
    assert [record.position for record in guessed] == list(range(len(rows)))


def test_guesses_one_segment_of_a_lineage() -> None:
    (path,) = corpus.files("0.19.0", "md-logical/2*.md")
    section = markdown.read(path).sections[0]
    root, tip = (list(markdown.records(path, section, each)) for each in section.lineage)
    assert [len(root), len(tip)] == [6, 5]
    assert root[0].content == "root question 1"
    assert len(list(markdown.records(path, section))) == 11


def test_guesses_nothing_in_an_empty_export() -> None:
    (path,) = corpus.files("0.22.2", "md/20260801_160000*.md")
    assert list(markdown.records(path, markdown.read(path).sections[0])) == []


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"---\n",
        b"---\ntitle: x\n---\n",
        b'---\nsession_id: "a"\ntitle: "b"\n---\n\n# b\n',
        b"# Session: x\n\n- Session ID: `a`\n",
        b'text\n---\nsession_id: "a"\nexporter: "hermes sessions export (md/qmd) v1"\n---\n',
    ],
)
def test_other_files_are_not_recognised(head: bytes) -> None:
    assert markdown.recognise(head) is None


def test_a_file_that_vanished_is_undetermined(tmp_path: Path) -> None:
    with pytest.raises(Undetermined, match="could not be read"):
        markdown.read(tmp_path / "gone.md")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_garbage_in_the_front_matter_never_fails(data: bytes) -> None:
    document = Document(b'---\nsession_id: "a"\n' + data)
    assert 0 <= document.block_start <= document.block_end <= len(document.data)
    assert document.damage


def test_a_file_that_is_still_written_is_said_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "export.md", "hello")
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    fstat = os.fstat

    def after_more_was_written(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        path.write_bytes(whole)
        return status

    monkeypatch.setattr(os, "fstat", after_more_was_written)
    changed = "the file changed while it was read"
    assert markdown.read(path).damage == changed
