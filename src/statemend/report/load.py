"""Reading a report back from its JSON form. The file comes from outside: it is bounded and checked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from statemend.errors import Undetermined, UsageError
from statemend.formats.files import opened
from statemend.report.model import SCHEMA, Report

#: Bytes. A report is read whole, so its size is bounded.
LARGEST_REPORT: Final = 128 * 1024 * 1024

_LONGEST_WORD = 200
_MARKUP = re.compile(r"[<>`|\\\[\]]")

T = TypeVar("T")


class _Head(msgspec.Struct, frozen=True):
    schema: str | None = None


def load_report(path: Path) -> Report:
    """The report that the JSON file at ``path`` holds. Raises ``UsageError`` when it cannot be read, is too
    large, is no ``statemend/report/v1``, or has markup where statemend writes plain words."""
    what = "a report; make one with `statemend scan HOME -o FILE.json`"
    data = read_bounded(path, LARGEST_REPORT, what)
    schema = schema_of(data, path, what)
    if schema != SCHEMA:
        raise UsageError(f"{path}: is {schema!r}, not {what}")
    report = decode(data, Report, path, what)
    for name, word in _words(report):
        if len(word) > _LONGEST_WORD or not word.isprintable() or _MARKUP.search(word):
            raise UsageError(f"{path}: not {what} ({name} is {word[:_LONGEST_WORD]!r})")
    return report


def _words(report: Report) -> Iterator[tuple[str, str]]:
    """What statemend itself words, so that every output may show it as it is: names, kinds and times."""
    yield from (("tool", word) for word in msgspec.structs.astuple(report.tool))
    yield "generated_at", report.generated_at
    for rule in report.rules:
        yield from (("a rule", word) for word in (rule.id, rule.slug))
    for finding in report.findings:
        yield from (("a finding", word) for word in (finding.id, finding.rule))
    for artifact in report.artifacts:
        yield from (("an artifact", word) for word in (artifact.kind, artifact.sha256))
    for event in report.timeline:
        yield from (("an event", word) for word in (event.at, event.clock, event.until) if word is not None)
    for check in report.checklist:
        yield from (("a check", word) for word in (check.id, check.title, check.question, *check.rules))


def read_bounded(path: Path, limit: int, what: str) -> bytes:
    """The bytes of a file of at most ``limit`` bytes. ``what`` says what it should be, and how to make it.
    Raises ``UsageError``."""
    try:
        with opened(path) as file:
            too_large = os.fstat(file.fileno()).st_size > limit
            data = b"" if too_large else file.read(limit + 1)
    except Undetermined as error:
        raise UsageError(f"{error}; name {what}") from error
    if too_large or len(data) > limit:  # a file of the system itself claims to be empty
        raise UsageError(f"{path}: more than {limit:,} bytes, too large for {what}")
    return data


def schema_of(data: bytes, path: Path, what: str) -> str:
    """The contract that a JSON document names. Raises ``UsageError`` for anything that names none."""
    schema = decode(data, _Head, path, what).schema
    if schema is None:
        raise UsageError(f"{path}: names no schema, so it is not {what}")
    return schema[:100]


def decode(data: bytes, kind: type[T], path: Path, what: str) -> T:
    """The JSON document as ``kind``. Raises ``UsageError``."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: not {what} ({error})") from error
