"""Several Markdown exports in one file: told apart where the checksum of each holds, and read one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.formats import corpus
from tests.formats.test_markdown import write

from statemend.formats import markdown
from statemend.formats.artifact import Artifact
from statemend.formats.markdown import Document

QUOTE = 'before\n---\nsession_id: "another"\ntitle: null\n'
WAYS: dict[str, Callable[[bytes], bytes]] = {
    "as they are": lambda data: data,
    "behind byte order marks": lambda data: b"\xef\xbb\xbf" + data,
    "with the line ends of Windows": lambda data: data.replace(b"\n", b"\r\n"),
}


def shown(artifact: Artifact) -> list[list[object]]:
    """The texts of each section, as a reader without the store sees them."""
    path = Path(artifact.path)
    return [[each.content for each in markdown.records(path, section)] for section in artifact.sections]


@pytest.mark.parametrize("change", WAYS.values(), ids=WAYS)
def test_each_export_is_a_section_of_its_own(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    files = [path for path in corpus.files("0.19.0", "md/2*.md") if b"\r" not in path.read_bytes()]
    whole = tmp_path / "all.md"
    whole.write_bytes(b"".join(change(path.read_bytes()) for path in files))
    artifact = markdown.read(whole)
    assert artifact.damage is None
    assert [each.session_id for each in artifact.sections] == [
        Document.load(path).session_id for path in files
    ]
    assert [each.exported_at for each in artifact.sections] == [
        Document.load(path).exported_at for path in files
    ]
    assert shown(artifact) == [each for path in files for each in shown(markdown.read(path))]


def test_a_message_may_quote_the_beginning_of_an_export(tmp_path: Path) -> None:
    first, second = write(tmp_path / "1.md", QUOTE * 3), write(tmp_path / "2.md", "Hi.", QUOTE)
    whole = tmp_path / "all.md"
    whole.write_bytes(first.read_bytes() + second.read_bytes())
    artifact = markdown.read(whole)
    assert artifact.damage is None
    assert [(each.offset, each.length) for each in artifact.sections] == [
        (0, first.stat().st_size),
        (first.stat().st_size, second.stat().st_size),
    ]


@pytest.mark.parametrize("spoil", [b"Hi.", b"`\n"], ids=["a text", "an end"])
def test_where_one_is_not_intact_the_file_is_not_taken_apart(tmp_path: Path, spoil: bytes) -> None:
    first, second = write(tmp_path / "1.md", "Hi."), write(tmp_path / "2.md", "Yes.")
    whole = tmp_path / "all.md"
    whole.write_bytes(first.read_bytes().replace(spoil, b"#") + second.read_bytes())
    artifact = markdown.read(whole)
    assert (len(artifact.sections), artifact.damage is None) == (1, False)


def test_what_quotes_too_many_beginnings_is_not_searched_for_ever(tmp_path: Path) -> None:
    path = write(tmp_path / "1.md", QUOTE * 3000)
    path.write_bytes(path.read_bytes().replace(b"before", b"behind"))
    assert markdown.read(path).damage is not None
