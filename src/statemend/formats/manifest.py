"""``manifest.jsonl``: what a Markdown or QMD export wrote into its folder, one line per file.

The line's ``sha256`` is over the raw bytes of the whole file. ``path`` is as it was typed at export time,
often relative to a working directory that nobody remembers. An export over an existing file adds another
line: the last one per path is the valid one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from statemend.formats import clock, lenientjson
from statemend.formats.artifact import Artifact, Kind
from statemend.formats.damage import Damage

#: Its lines are no messages of a session.
SHOWN: Final[frozenset[Kind]] = frozenset()
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class ManifestLine(msgspec.Struct, frozen=True):
    """One line. ``line`` counts from 1, ``exported_at`` is epoch seconds, ``lineage`` lists the segments of a
    logical export, oldest first; for a single session it is that session alone."""

    path: str
    session_id: str
    sha256: str
    message_count: int
    exported_at: float
    format: str
    lineage: tuple[str, ...] = ()
    line: int = 0


def recognise(head: bytes) -> Kind | None:
    """``Kind.MANIFEST`` when a complete line of ``head`` is a manifest line."""
    for line in head.splitlines():
        if b'"sha256"' in line and _parsed(line, 1) is not None:
            return Kind.MANIFEST
    return None


def read(path: Path) -> Artifact:
    """The manifest as an artifact without sections: it holds no messages."""
    scan, damage = lenientjson.lines(path), Damage()
    for line in scan:
        if line.overlong:
            damage.line(line.number, "is too long to be read", "are too long to be read")
        elif line.data.strip() and _parsed(line.data, line.number) is None:
            if line.data.endswith(b"\n"):
                damage.unreadable(line.number)
            else:
                damage.whole("the last line is cut off")
    if scan.changed:
        damage.whole("the file changed while it was read")
    return Artifact(
        path=str(path),
        kind=Kind.MANIFEST,
        size=scan.size,
        modified_at=scan.modified_at,
        sha256=scan.sha256,
        damage=damage.phrase(),
    )


def lines(path: Path) -> Iterator[ManifestLine]:
    """Every readable line in order; the others are named by ``read``."""
    for line in lenientjson.lines(path):
        parsed = _parsed(line.data, line.number)
        if parsed is not None:
            yield parsed


def valid(entries: Iterable[ManifestLine]) -> dict[str, ManifestLine]:
    """The last line per path: what each file was when it was last written."""
    return {entry.path: entry for entry in entries}


def render_line(entry: ManifestLine) -> str:
    """The line as Hermes writes it, newline included."""
    members: dict[str, Any] = {
        "exported_at": entry.exported_at,
        "format": entry.format,
        "lineage_session_ids": list(entry.lineage),
        "message_count": entry.message_count,
        "path": entry.path,
        "session_id": entry.session_id,
        "sha256": entry.sha256,
    }
    return json.dumps(members, ensure_ascii=False, sort_keys=True) + "\n"


def _parsed(data: bytes, number: int) -> ManifestLine | None:
    try:
        value = lenientjson.loads(data)
    except lenientjson.UnreadableJsonError:
        return None
    if not isinstance(value, dict):
        return None
    path, session_id, digest = value.get("path"), value.get("session_id"), value.get("sha256")
    if not (isinstance(path, str) and isinstance(session_id, str) and isinstance(digest, str)):
        return None
    count, lineage, shape = value.get("message_count"), value.get("lineage_session_ids"), value.get("format")
    exported_at = clock.finite(value.get("exported_at"))
    if type(count) is not int or exported_at is None or _SHA256.match(digest) is None:
        return None
    return ManifestLine(
        path=path,
        session_id=session_id,
        sha256=digest,
        message_count=count,
        exported_at=exported_at,
        format=shape if isinstance(shape, str) else "",
        lineage=tuple(i for i in lineage if isinstance(i, str)) if isinstance(lineage, list) else (),
        line=number,
    )
