"""Files of one JSON object per line, of which the reader needs every object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from statemend.formats import files, lenientjson
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.formats.damage import Damage


class Object(NamedTuple):
    """One line: its place in the file, and the object in it."""

    offset: int
    length: int
    value: dict[str, Any]


def first(head: bytes) -> dict[str, Any] | None:
    """The object in the first line of ``head`` that says anything; ``None`` where that is none, or cut."""
    start = head.removeprefix(files.BYTE_ORDER_MARK).lstrip()
    return _loaded(start.partition(b"\n")[0]) if start.startswith(b"{") else None


def read(
    path: Path,
    kind: Kind,
    fits: Callable[[dict[str, Any]], bool],
    sections_of: Callable[[Iterator[Object]], list[Section]],
) -> Artifact:
    """The file as an artifact: ``sections_of`` makes its sections of the objects that ``fits`` accepts; every
    other line is damage. Raises ``Undetermined`` when the system cannot read it."""
    scan, damage = lenientjson.lines(path), Damage()
    sections = sections_of(_objects(scan, damage, fits))
    if scan.changed:
        damage.whole("the file changed while it was read")
    return Artifact(
        path=str(path),
        kind=kind,
        size=scan.size,
        modified_at=scan.modified_at,
        sha256=scan.sha256,
        sections=tuple(sections),
        damage=damage.phrase(),
    )


def values(path: Path, section: Section) -> Iterator[dict[str, Any]]:
    """The objects of one section, line by line; what is none is left out."""
    for line in files.lines_between(path, section.offset, section.length):
        value = _loaded(line)
        if value is not None:
            yield value


def _objects(scan: files.Scan, damage: Damage, fits: Callable[[dict[str, Any]], bool]) -> Iterator[Object]:
    for line in scan:
        if line.overlong:
            damage.line(line.number, "is too long to be read", "are too long to be read")
        elif line.data.strip():
            if not lenientjson.is_utf8(line.data):
                damage.line(line.number, "is not UTF-8", "are not UTF-8")
            value = _loaded(line.data)
            if value is not None and fits(value):
                yield Object(line.offset, line.length, value)
            elif value is not None:
                damage.line(line.number, "holds something else", "hold something else")
            elif line.data.endswith(b"\n"):
                damage.unreadable(line.number)
            else:
                damage.whole("the last line is cut off")


def _loaded(line: bytes) -> dict[str, Any] | None:
    try:
        value = lenientjson.loads(line)
    except lenientjson.UnreadableJsonError:
        return None
    return value if isinstance(value, dict) else None
