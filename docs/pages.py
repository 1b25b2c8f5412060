"""The generated pages: a template in ``templates/``, and the parts that are filled into it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
GENERATED = "<!-- Made by `make docs`: edit docs/templates or the code that it is made from. -->\n"

_PART = re.compile(r"<!-- ([a-z ]+) -->")
_ROLE = re.compile(r"``([^`]+)``")
#: An underscore within a word is none.
_MARKUP = re.compile(r"[*<>\[\]]|(?<!\w)_|_(?!\w)")


def fill(template: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """The template of that name with each ``<!-- part -->`` replaced. Raises ``KeyError`` for a part that
    nothing makes, ``ValueError`` for one that stands nowhere."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    if unused := parts.keys() - set(_PART.findall(text)):
        raise ValueError(f"{template} has no place for {', '.join(sorted(unused))}")
    return GENERATED + _PART.sub(lambda found: parts[found[1]]().strip("\n"), text)


def prose(text: str) -> str:
    """Text of a docstring: a paragraph a line, and nothing in it taken for markup but ``code``."""
    paragraphs = (" ".join(part.split()) for part in text.strip().split("\n\n"))
    return "\n\n".join(_plain(part) for part in paragraphs if part)


def code(words: Iterable[str]) -> str:
    """Words as they are written, by comma."""
    return ", ".join(f"`{word}`" for word in words)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, and an empty one after it."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in row) + " |"
    yield ""


def _plain(text: str) -> str:
    parts = re.split(r"(`[^`]+`)", _ROLE.sub(r"`\1`", text))
    return "".join(part if part.startswith("`") else _MARKUP.sub(r"\\\g<0>", part) for part in parts)
