"""The fenced blocks of a page, and the commands in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "playbooks" / "README.md")

#: ``<!-- file: NAME -->`` above a block: it is that file. ``<!-- not run: WHY -->``: its commands are only
#: held against the command line.
_MARK = re.compile(r"<!-- (?:file: (?P<file>\S+)|not run: (?P<not_run>.+)) -->")
_INLINE = re.compile(r"(?<!`)`(statemend [^`\n]+)`(?!`)")


class Block(msgspec.Struct, frozen=True):
    """One fenced block: its language, its text, and the line it begins in, from 1."""

    language: str
    text: str
    line: int
    file: str | None = None
    not_run: str | None = None


def name(page: Path) -> str:
    """A page as a test names it."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    mark: re.Match[str] | None = None
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "html_block":
            mark = _MARK.fullmatch(token.content.strip())
        elif token.type == "fence":
            assert token.map is not None
            told = mark.groupdict() if mark else {}
            yield Block(token.info.strip(), token.content, token.map[0] + 2, **told)
            mark = None
        elif token.nesting >= 0:
            mark = None


def inline(page: Path) -> Iterator[str]:
    """The commands that stand in the text of a page."""
    fences = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    yield from dict.fromkeys(_INLINE.findall(fences))
