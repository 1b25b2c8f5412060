"""Files that are one JSON object: told by the members they begin with, read whole and bounded.

What is cut off or unreadable behind its start keeps the members that are whole, and of the array of
messages the elements that are: it may be the only copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from statemend.formats import files, lenientjson
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.formats.damage import Damage

ARRAY = "messages"
#: One file is asked by several formats in a row.
_REMEMBERED = 2


@lru_cache(maxsize=_REMEMBERED)
def opening(head: bytes) -> Mapping[str, Any]:
    """The members that are whole in the object that ``head`` begins, in their order; of an array of messages
    the elements that are. Empty where ``head`` begins no object."""
    return lenientjson.complete_members(head, ARRAY)


def read(
    path: Path,
    kind: Kind,
    sections_of: Callable[[Mapping[str, Any], int, str | None], Iterable[Section]],
) -> Artifact:
    """The file as an artifact. ``sections_of`` makes its sections of the members, the size in bytes, and what
    is wrong with the object or ``None``. Raises ``Undetermined`` when the system cannot read it."""
    scan, damage = files.Scan(path).drain(), Damage()
    sections: Iterable[Section] = ()
    data = _whole(path, scan.size)
    if data is None:
        damage.whole("the file is too long to be read as one object")
    else:
        found, flaw = _parsed(data)
        if flaw is not None:
            damage.whole(f"the object is {flaw}")
        sections = sections_of(found, scan.size, flaw)
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


def members(path: Path) -> Mapping[str, Any]:
    """The members of the object in a file that ``read`` found fit to be read. Raises ``Undetermined``."""
    data = _whole(path, files.size(path))
    return {} if data is None else _parsed(data)[0]


def _whole(path: Path, size: int) -> bytes | None:
    """The bytes of a file of this size, ``None`` where that is too much to be read at once."""
    data = files.chunk(path, 0, size) if size <= files.LONGEST_LINE else None
    return None if data is None or not lenientjson.fits(data) else data


def _parsed(data: bytes) -> tuple[Mapping[str, Any], str | None]:
    flaw = None if lenientjson.is_utf8(data) else "not UTF-8"
    try:
        value = lenientjson.loads(data)
    except lenientjson.UnreadableJsonError:
        ended = data.rstrip().endswith(b"}")
        flaw = "unreadable behind its start" if ended else "cut off"
        value = lenientjson.complete_members(data, ARRAY)
    return (value, flaw) if isinstance(value, dict) else ({}, "none")


def text(value: Any) -> str | None:
    """``value`` if it is a text."""
    return value if isinstance(value, str) else None
