"""Hermes' file formats: recognised by content, read into one model, written byte for byte.

``classify``, ``read`` and ``records`` choose the module of a file's format. Each module has the same three
readers, ``SHOWN``, the kinds of which it shows the messages, and ``render`` functions for what Hermes itself
writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from statemend.formats import (
    archives,
    desktop_json,
    files,
    gateway_transcript,
    html,
    jsonl,
    logs,
    manifest,
    markdown,
    pending,
    prompts,
    request_dump,
    response_store,
    routing_file,
    save_json,
    save_markdown,
    session_snapshot,
    stores,
    trace,
    trajectory,
)
from statemend.formats.artifact import Artifact, Kind, Record, Section

#: In the order of asking: what is told by its first bytes comes before what is told by its lines.
_MODULES: tuple[Any, ...] = (
    response_store,
    stores,
    archives,
    markdown,
    html,
    prompts,
    save_markdown,
    save_json,
    jsonl,
    trace,
    trajectory,
    gateway_transcript,
    manifest,
    request_dump,
    session_snapshot,
    desktop_json,
    pending,
    routing_file,
    logs,
)


def kind_of(head: bytes) -> Kind:
    """What the first 64 KiB of a file make it."""
    return _told(head)[0]


@lru_cache(maxsize=1)
def _told(head: bytes) -> tuple[Kind, Any]:
    """The kind, and the module that reads it; none for an empty file and one that is not told. Whoever reads
    a file has asked for its kind just before."""
    for module in _MODULES if head else ():
        kind: Kind | None = module.recognise(head)
        if kind is not None:
            return kind, module
    return (Kind.UNCLASSIFIED if head else Kind.EMPTY), None


def classify(path: Path) -> Kind:
    """What a file is. Raises ``Undetermined`` when the system cannot read it."""
    return kind_of(files.head(path))


def read(path: Path, head: bytes | None = None) -> Artifact:
    """The file as an artifact, whatever it is; an unclassified or empty one has no sections. Who has read its
    ``head`` already gives it.

    Raises ``Undetermined`` when the system cannot read it, and for nothing that the file contains.
    """
    _, module = _told(files.head(path) if head is None else head)
    if module is not None:
        artifact: Artifact = module.read(path)
        return artifact
    scan = files.Scan(path).drain()
    return Artifact(
        path=str(path),
        kind=Kind.UNCLASSIFIED if scan.size else Kind.EMPTY,
        size=scan.size,
        modified_at=scan.modified_at,
        sha256=scan.sha256,
    )


def records(path: Path, artifact: Artifact, section: Section) -> Iterator[Record]:
    """The messages of one section of ``artifact``, which ``read`` made of ``path``; none for a kind that
    shows no messages."""
    for module in _MODULES:
        if artifact.kind in module.SHOWN:
            found: Iterator[Record] = module.records(path, section)
            return found
    return iter(())
