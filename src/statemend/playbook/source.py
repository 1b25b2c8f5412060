"""The YAML that a playbook or a choices file may be: a small part of the language, read with bounds.

Such a file comes from anywhere. It is one document of mappings, lists and scalars, without anchors, aliases,
tags, merge keys or directives, and no larger than a person could review. Plain scalars mean what they mean in
JSON; everything else is text. The events of the parser are counted before any value is built, so neither
depth nor repetition can exhaust anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from statemend.errors import Undetermined, UsageError
from statemend.formats.files import opened

DEEPEST: Final = 20

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS: Mapping[str, Any] = {"": None, "null": None, "true": True, "false": False}
_INT64 = range(-(1 << 63), 1 << 63)
_LONGEST_NUMBER = 40
_LONGEST_KEY = 100
_CLIPPED = 40


class Bounds(NamedTuple):
    """How large a file may be, in bytes, and how many values it may hold."""

    bytes: int
    values: int


PLAYBOOK: Final = Bounds(256 * 1024, 5000)


class Place(NamedTuple):
    """Where something stands in a file, counted from 1."""

    line: int
    column: int


class Source(msgspec.Struct, frozen=True):
    """A file as it was read. ``name`` is how errors call it, ``text`` and ``data`` what it says. ``places``
    tells where the value at a path like ``$.steps[2].sql`` begins, ``keys`` where its key does."""

    name: str
    text: str
    data: Any
    places: dict[str, Place]
    keys: dict[str, Place]

    def place(self, path: str) -> Place:
        """Where the value at ``path`` begins, or the nearest one around it."""
        while path not in self.places and path != "$":
            path = path[: max(path.rfind("."), path.rfind("["), 1)]
        return self.places.get(path, Place(1, 1))

    def within(self, path: str, line: int, what: str) -> Place:
        """Where ``what`` stands in the given line (from 1) of the text at ``path``. Only a literal block
        keeps its lines; of any other text it is the beginning."""
        place, lines = self.place(path), self.text.splitlines()
        if lines[place.line - 1][place.column - 1 : place.column] != "|":
            return place
        number = min(place.line + line, len(lines))
        return Place(number, max(lines[number - 1].find(what) + 1, 1))

    def error(self, place: Place, text: str) -> UsageError:
        """The one-line error for what is wrong at ``place``."""
        return UsageError(f"{self.name}:{place.line}:{place.column}: {text}")


def read(path: Path, bounds: Bounds = PLAYBOOK) -> Source:
    """Read a file. Raises ``UsageError`` for what is no such file, or not within the bounds, ``Undetermined``
    where it cannot be read."""
    try:
        with opened(path) as file:
            text = file.read(bounds.bytes + 1)
    except Undetermined as error:
        if error.__cause__ is None:
            raise UsageError(f"{path}: not a regular file; name a YAML file") from error
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            raise UsageError(f"{path}: no such file; name a YAML file") from error
        raise
    return parse(text, str(path), bounds)


def parse(text: bytes, name: str, bounds: Bounds = PLAYBOOK) -> Source:
    """Read what a file called ``name`` holds. Raises ``UsageError``: ``NAME:LINE:COLUMN: what; next``."""
    if len(text) > bounds.bytes:
        raise UsageError(
            f"{name}: larger than {bounds.bytes >> 10:,} KiB; such a file never is, so name another"
        )
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - (text.rfind(b"\n", 0, error.start) + 1) + 1
        raise UsageError(f"{name}:{line}:{column}: not valid UTF-8; save the file as UTF-8 text") from error
    builder = _Builder(name, bounds.values)
    try:
        data = builder.document(yaml.parse(decoded, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        said = " ".join(f"{error.problem}".split())
        raise UsageError(f"{name}:{where}: not YAML: {said}") from error
    except yaml.reader.ReaderError as error:
        before = decoded[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise UsageError(
            f"{name}:{line}:{column}: the character U+{error.character:04X} may not stand in YAML; remove it"
        ) from error
    return Source(name=name, text=decoded, data=data, places=builder.places, keys=builder.keys)


class _Builder:
    """Builds plain values from events, and refuses what is out of bounds."""

    def __init__(self, name: str, most: int) -> None:
        self.places: dict[str, Place] = {}
        self.keys: dict[str, Place] = {}
        self._name = name
        self._most = most
        self._nodes = 0

    def document(self, events: Iterator[yaml.Event]) -> Any:
        """The one document that the events describe."""
        data: Any = None
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refusal(event, "a second document; one file holds one")
                if event.version or event.tags:
                    raise self._refusal(event, "a YAML directive; leave it out")
            elif isinstance(event, yaml.NodeEvent):
                data = self._value(event, events, "$", 0)
        if not documents:
            raise UsageError(f"{self._name}:1:1: the file is empty")
        return data

    def _value(self, event: yaml.Event, events: Iterator[yaml.Event], path: str, depth: int) -> Any:
        self._admit(event, depth)
        self.places[path] = _place(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(events, path, depth)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(events, path, depth)
        return self._scalar(event) if isinstance(event, yaml.ScalarEvent) else None

    def _list(self, events: Iterator[yaml.Event], path: str, depth: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(self._value(event, events, f"{path}[{len(items)}]", depth + 1))
        return items

    def _mapping(self, events: Iterator[yaml.Event], path: str, depth: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            key = self._key(event)
            if key in entries:
                raise self._refusal(event, f"the key {key[:_CLIPPED]!r} is there twice; remove one")
            self.keys[f"{path}.{key}"] = _place(event)
            entries[key] = self._value(next(events), events, f"{path}.{key}", depth + 1)
        return entries

    def _key(self, event: yaml.Event) -> str:
        self._admit(event, 0)
        if not isinstance(event, yaml.ScalarEvent):
            raise self._refusal(event, "a key that is no text; put a template in quotes")
        key = str(event.value)
        if key == "<<" and event.style is None:
            raise self._refusal(event, "a merge key; write the entries out")
        if len(key) > _LONGEST_KEY:
            raise self._refusal(event, f"a key of {len(key):,} characters; no key is that long")
        return key

    def _admit(self, event: yaml.Event, depth: int) -> None:
        self._nodes += 1
        if self._nodes > self._most:
            raise self._refusal(event, f"more than {self._most:,} values; make the file smaller")
        if depth > DEEPEST:
            raise self._refusal(event, f"nested more than {DEEPEST} deep; make it flatter")
        if isinstance(event, yaml.AliasEvent):
            raise self._refusal(event, "an alias; write the value out")
        if getattr(event, "anchor", None) is not None:
            raise self._refusal(event, "an anchor; leave it out and write values where they are needed")
        if getattr(event, "tag", None) is not None:
            raise self._refusal(event, "a tag; leave it out")

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text = str(event.value)
        if _SURROGATE.search(text):
            raise self._refusal(event, "an escape that is half a character; write the character itself")
        if event.style is not None:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if not (number := _NUMBER.fullmatch(text)):
            return text
        if number[1] is None and number[2] is None:
            if len(text) > _LONGEST_NUMBER or int(text) not in _INT64:
                raise self._refusal(event, "a whole number beyond 64 bits; put it in quotes if it is text")
            return int(text)
        value = float(text)
        if not math.isfinite(value):
            raise self._refusal(event, "a number too large; put it in quotes if it is text")
        return value

    def _refusal(self, event: yaml.Event, text: str) -> UsageError:
        place = _place(event)
        return UsageError(f"{self._name}:{place.line}:{place.column}: {text}")


def _place(event: yaml.Event) -> Place:
    mark = event.start_mark
    return Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
