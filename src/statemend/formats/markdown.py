"""Markdown and QMD exports (``hermes sessions export --format md|qmd``, releases from 0.18).

Nothing in these files is escaped: a message may hold a heading, a footer or a whole fake export. What the
file says about itself is read here; which messages it holds is found by rendering the store's rows again
(``markdown_walk``). ``records`` guesses, for sessions that no store has any more.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from statemend.formats.artifact import Artifact, Kind, Section
from statemend.formats.clock import epoch_of_iso
from statemend.formats.files import opened
from statemend.formats.markdown_document import KINDS, Document
from statemend.formats.markdown_guess import records
from statemend.formats.markdown_render import EXPORTER, render, render_heading, render_message

__all__ = ["Document", "read", "recognise", "records", "render", "render_heading", "render_message"]

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.MARKDOWN, Kind.QMD})
_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?---\r?\nsession_id: ")
_ANY_OPENING = re.compile(rb"^" + _OPENING.pattern, re.MULTILINE)
#: So many beginnings that an export quotes are passed over.
_MOST_QUOTED = 8
_CLOSING = re.compile(rb"\n---\r?\n")
_FORMAT = re.compile(rb'\nformat: "(qmd|md)"')
_EXPORTER = f'\nexporter: "{EXPORTER}"'.encode()


def recognise(head: bytes) -> Kind | None:
    """Whether a file begins like a Markdown or QMD export, from its first bytes.

    A file cut inside its front matter is recognised by the fields that are left.
    """
    opening = _OPENING.match(head)
    if opening is None:
        return None
    closing = _CLOSING.search(head, opening.end())
    fields = head[: closing.start() + 1 if closing else len(head)]
    kind = _FORMAT.search(fields)
    if _EXPORTER in fields or (closing is None and b"\ntitle: " in fields):
        return KINDS[kind[1].decode()] if kind else Kind.MARKDOWN
    return None


def read(path: Path) -> Artifact:
    """What the file says about itself: one section, or one for each of several exports that were joined in
    it. Message texts are not looked at, only hashed.

    Raises ``Undetermined`` when the file cannot be read.
    """
    with opened(path) as file:
        before = os.fstat(file.fileno())
        raw = file.read()
        after = os.fstat(file.fileno())
    document = Document(raw)
    joined = list(_joined(raw)) if document.damage is not None else []
    damage = None if joined else document.damage
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        damage = "; ".join(filter(None, (damage, "the file changed while it was read")))
    return Artifact(
        path=str(path),
        kind=document.kind,
        size=len(raw),
        modified_at=before.st_mtime,
        sha256=hashlib.sha256(raw).hexdigest(),
        sections=tuple(joined) or (_section(document, 0, len(raw)),),
        damage=damage,
    )


def _joined(raw: bytes) -> Iterator[Section]:
    """The exports in a file that is nothing but several of them, one after the other, each with a checksum
    that holds; none in any other file. A message may quote the beginning of one."""
    bounds = [*(found.start() for found in _ANY_OPENING.finditer(raw)), len(raw)]
    sections: list[Section] = []
    first = 0
    while first < len(bounds) - 1:
        for last in range(first + 1, min(first + 2 + _MOST_QUOTED, len(bounds))):
            document = Document(raw[bounds[first] : bounds[last]])
            if document.damage is None:
                sections.append(_section(document, bounds[first], bounds[last] - bounds[first]))
                break
        else:
            return
        first = last
    yield from sections


def _section(document: Document, offset: int, length: int) -> Section:
    return Section(
        session_id=document.session_id,
        offset=offset,
        length=length,
        title=_text(document.fields.get("title")),
        started_at=epoch_of_iso(document.fields.get("created_at")),
        lineage=document.lineage,
        declared=document.declared,
        source_count=document.footer.source_count if document.footer else None,
        exported_at=document.exported_at,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
