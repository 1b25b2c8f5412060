"""Exports of many sessions at once, as far as what they left behind tells that they were one.

A manifest lists the files of one export in quick succession, quicker than Hermes could be started for each,
and so do the files themselves where the manifest is gone. One file with many sessions is an export of its
own; when it was made is then told by the time of the file alone, and a copy may be younger. A JSONL file with
many sessions may also be exports of single ones that somebody joined: their lines are the very same. Joined
pages are told by their beginnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from statemend import formats
from statemend.evidence.inventory import Inventory
from statemend.formats import files, manifest
from statemend.formats.artifact import Artifact, Kind, Section

T = TypeVar("T")

#: What one bulk export writes follows each other within this time, in seconds, ...
_PAUSE = 5.0
#: ... and on average within this one, in which no process of Hermes has started.
_PACE = 0.5
_FEWEST = 3
_ONE_BY_ONE = frozenset({Kind.MARKDOWN, Kind.QMD, Kind.TRACE})
#: How a page begins. No text in one contains it: there it is escaped.
_PAGE = b"<!DOCTYPE html>"
#: An export of prompts may lack a session because it has none.
_TOGETHER = frozenset({Kind.JSONL, Kind.HTML})


class Bulk(NamedTuple):
    """One bulk export: its manifest, its folder or its file, when it was made (epoch seconds) at the latest,
    the sessions it wrote, and how it is known to be one."""

    path: str
    at: float
    sessions: frozenset[str]
    known_by: str
    file: Artifact | None = None

    @property
    def may_be_joined(self) -> bool:
        """Whether exports of single sessions, put into one file, would look the same."""
        return self.file is not None and self.file.kind is Kind.JSONL

    def may_be_filtered(self) -> bool:
        """Whether nothing says that it was made without a filter, or joined. Raises ``Undetermined``."""
        if self.file is None:
            return True
        path, sections = Path(self.file.path), self.file.sections
        if self.file.kind is Kind.HTML:
            pages = files.pieces_between(path, 0, self.file.size)
            return sum(piece.count(_PAGE) for piece in pages) == 1
        shown = (formats.records(path, self.file, section) for section in sections)
        first = next(chain.from_iterable(shown), None)
        # Up to 0.17 a filter takes open sessions too.
        return first is not None and "compacted" in (first.row or {}) and _chosen(path, sections)


class _Message(msgspec.Struct, gc=False):
    timestamp: float | None = None


class _Line(msgspec.Struct, gc=False):
    """What of a session's line tells how it was chosen. Only what lists all sessions has ``last_active``."""

    started_at: float
    ended_at: float
    messages: list[_Message]
    last_activity_at: float | None = None
    last_active: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    def places(self) -> tuple[float, float, float]:
        """By what releases order sessions: the start (up to 0.19), the last message, the last activity."""
        last = max((each.timestamp for each in self.messages if each.timestamp), default=self.started_at)
        return self.started_at, last, max(last, self.last_activity_at or last)


_LINE = msgspec.json.Decoder(_Line)


def _chosen(path: Path, sections: Sequence[Section]) -> bool:
    """Whether the lines of a file may be those that a filter chooses: each once, ended, and all in the
    order of some release."""
    places = []
    for section in sections:
        data = files.chunk(path, section.offset, section.length)
        try:
            line = _LINE.decode(data.removeprefix(files.BYTE_ORDER_MARK))
        except (msgspec.MsgspecError, RecursionError):
            return False
        if line.last_active is not msgspec.UNSET:
            return False
        places.append(line.places())
    once = len({section.session_id for section in sections}) == len(sections)
    return once and any(list(times) == sorted(times) for times in zip(*places, strict=True))


def bulk_exports(inventory: Inventory) -> Iterator[Bulk]:
    """Every export of three sessions or more. Raises ``Undetermined`` when a manifest cannot be read."""
    listed = set()
    for artifact in inventory.manifests:
        listed.add(Path(artifact.path).parent)
        for lines in _runs(manifest.lines(Path(artifact.path)), lambda line: line.exported_at):
            named = frozenset(line.session_id for line in lines)
            yield from _bulk(artifact.path, lines[0].exported_at, named, "its lines in the manifest")
    yield from _folders(inventory, listed)
    for artifact in inventory.artifacts:
        if artifact.kind in _TOGETHER and artifact.damage is None:
            named = frozenset(filter(None, (section.session_id for section in artifact.sections)))
            yield from _bulk(artifact.path, artifact.modified_at, named, "one file", artifact)


def _folders(inventory: Inventory, listed: set[Path]) -> Iterator[Bulk]:
    """The files that were written one right after the other into a folder without a manifest."""
    found = [
        (Path(artifact.path).parent, artifact.kind, section.exported_at, section)
        for artifact in inventory.artifacts
        if artifact.kind in _ONE_BY_ONE and Path(artifact.path).parent not in listed
        for section in artifact.sections
        if section.exported_at is not None
    ]
    found.sort(key=lambda each: each[:3])
    for (folder, _), together in groupby(found, key=lambda each: each[:2]):
        for run in _runs(together, lambda each: each[2]):
            named = frozenset(each for _, _, _, section in run for each in _sessions(section))
            yield from _bulk(str(folder), run[0][2], named, "the times in its files")


def _sessions(section: Section) -> Iterator[str]:
    yield from filter(None, {section.session_id, *section.lineage})


def _bulk(
    path: str, at: float, sessions: frozenset[str], known_by: str, file: Artifact | None = None
) -> Iterator[Bulk]:
    if len(sessions) >= _FEWEST:
        yield Bulk(path, at, sessions, known_by, file)


def _runs(items: Iterable[T], time: Callable[[T], float]) -> Iterator[list[T]]:
    """What one process wrote, one right after the other."""
    runs: list[list[T]] = []
    for item in items:
        if runs and 0 <= time(item) - time(runs[-1][-1]) <= _PAUSE:
            runs[-1].append(item)
        else:
            runs.append([item])
    for run in runs:
        if time(run[-1]) - time(run[0]) <= _PACE * (len(run) - 1):
            yield run
