"""Turns what a file says into typed values, field by field, and tells of every field what is wrong with it
and where."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, NamedTuple, TypeVar, cast, get_args

import msgspec

from statemend.playbook.source import Place, Source
from statemend.playbook.variables import TemplateError, has_template, names, render
from statemend.report.text import listed

Model = TypeVar("Model", bound=msgspec.Struct)

_CLIPPED = 60
_MOST_NAMED = 12
#: How types are called by those who write YAML.
_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "a mapping",
    "str": "text",
}
_QUOTED = re.compile(r"`([^`]*)`")


class Problem(NamedTuple):
    """One thing that is wrong, and where: line and column count from 1."""

    line: int
    column: int
    text: str


class Values(msgspec.Struct, frozen=True):
    """What templates are filled with. ``open`` are the inputs whose value is not known yet: ``filled`` holds
    a sample of the right type."""

    filled: Mapping[str, Any]
    open: frozenset[str] = frozenset()


class Converter:
    """Converts parts of one source, and collects the ``problems``."""

    def __init__(self, source: Source, values: Values) -> None:
        self.problems: list[Problem] = []
        self._source = source
        self._values = values

    def add(self, path: str, text: str, *, key: bool = False) -> None:
        """Tell what is wrong with the value at ``path``, or with its ``key``."""
        place = self._source.keys.get(path) if key else None
        self._add(place or self._source.place(path), text)

    def struct(self, kind: type[Model], data: object, path: str, *, fixed: Collection[str]) -> Model | None:
        """The mapping at ``path`` as a ``kind``, or ``None`` when something is wrong with it. The ``fixed``
        fields hold no template."""
        before = len(self.problems)
        made = self.fields(kind, data, path, fixed=fixed)
        return kind(**made) if len(self.problems) == before else None

    def fields(
        self,
        kind: type[msgspec.Struct],
        data: object,
        path: str,
        *,
        fixed: Collection[str],
        elsewhere: Collection[str] = (),
    ) -> dict[str, Any]:
        """The fields of a ``kind`` that the mapping at ``path`` has. Those named in ``elsewhere``, and the
        tag, may be there and are left alone."""
        if not isinstance(data, dict):
            self.add(path, "expected a mapping")
            return {}
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        tag = kind.__struct_config__.tag_field
        for name in [name for name in data if name not in fields and name != tag]:
            self.add(f"{path}.{name}", f"unknown key {name[:_CLIPPED]!r}{near(name, fields)}", key=True)
        made: dict[str, Any] = {}
        for name, field in fields.items():
            if name in elsewhere:
                continue
            if name in data:
                default = None if field.required else field.default
                made[field.name] = self.value(
                    field.type, data[name], f"{path}.{name}", fixed=name in fixed, default=default
                )
            elif field.required:
                self.add(path, f"`{name}` is missing; add it")
        return made

    def value(self, kind: Any, data: object, path: str, *, fixed: bool, default: object = None) -> Any:
        """The value at ``path`` as a ``kind``. What depends on an open input and cannot be a ``kind`` with a
        sample becomes the ``default``, if another value could be one."""
        before = len(self.problems)
        filled = self._fill(data, path, fixed=fixed)
        if len(self.problems) > before:
            return default
        try:
            return msgspec.convert(filled, kind)
        except msgspec.ValidationError as error:
            text, _, inner = str(error).partition(" - at `$")
            if not (self.uses(data) & self._values.open and _takes_text(kind)):
                self.add(path + inner.rstrip("`").removeprefix("$"), _in_words(text, kind))
            return default

    def uses(self, data: object) -> frozenset[str]:
        """The variables that templates anywhere in ``data`` use. One that cannot be uses none."""
        if isinstance(data, dict | list):
            parts = data.values() if isinstance(data, dict) else data
            return frozenset[str]().union(*map(self.uses, parts))
        try:
            return names(data) if isinstance(data, str) else frozenset()
        except TemplateError:
            return frozenset()

    def _fill(self, data: object, path: str, *, fixed: bool) -> Any:
        if isinstance(data, dict):
            return {key: self._fill(item, f"{path}.{key}", fixed=fixed) for key, item in data.items()}
        if isinstance(data, list):
            return [self._fill(item, f"{path}[{number}]", fixed=fixed) for number, item in enumerate(data)]
        if not isinstance(data, str):
            return data
        if "\0" in data:
            self.add(path, "a NUL character; remove it")
        if not has_template(data):
            return data
        if fixed:
            name = path.rpartition(".")[2].partition("[")[0]
            self.add(path, f"`{name}` holds no template; {_instead(name)}")
            return data
        try:
            used = names(data)
            if unknown := sorted(used - self._values.filled.keys()):
                raise TemplateError(
                    f"no input {unknown[0][:_CLIPPED]!r}{near(unknown[0], self._values.filled)}"
                )
            return render(data, self._values.filled)
        except TemplateError as error:
            self._add(self._source.within(path, error.line, "{"), str(error))
            return data

    def _add(self, place: Place, text: str) -> None:
        self.problems.append(Problem(place.line, place.column, text))


def near(name: str, known: Collection[str]) -> str:
    """``; did you mean …?`` where a known name is near, else which names there are."""
    found = difflib.get_close_matches(name[:_CLIPPED], list(known), 1)
    if found:
        return f"; did you mean {found[0]!r}?"
    return f"; there are {listed(sorted(known), _MOST_NAMED)}" if known else ""


def _instead(name: str) -> str:
    return "an input is bound in SQL as :name" if name == "sql" else "write the value itself"


def _in_words(text: str, kind: Any) -> str:
    """An error of msgspec in the words of those who write YAML."""
    if text.startswith("Invalid enum value"):
        wrong = text.removeprefix("Invalid enum value").strip()
        return f"{wrong[:_CLIPPED]} is none of {', '.join(_members(kind))}"
    if "matching regex" in text:
        return "a name is made of lower-case letters, digits, `-` and `_`, and begins with a letter"
    if text.startswith("Object contains unknown field"):
        return text.replace("Object contains unknown field", "unknown key")
    if text.startswith("Object missing required field"):
        return f"{text.replace('Object missing required field ', '')} is missing; add it"
    said = _QUOTED.sub(lambda match: " or ".join(_WORDS.get(one, one) for one in match[1].split(" | ")), text)
    return said[:1].lower() + said[1:]


def _members(kind: Any) -> list[str]:
    """The values that an enumeration anywhere in a type has."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    arguments = get_args(kind)
    if arguments and all(isinstance(one, str) for one in arguments):
        return list(cast(tuple[str, ...], arguments))
    return [member for one in arguments for member in _members(one)]


def _takes_text(kind: Any) -> bool:
    """Whether some text can be a ``kind``, or a part of one."""
    described = msgspec.inspect.type_info(kind) if not isinstance(kind, msgspec.inspect.Type) else kind
    if isinstance(described, msgspec.inspect.UnionType):
        return any(map(_takes_text, described.types))
    if isinstance(described, msgspec.inspect.VarTupleType):
        return _takes_text(described.item_type)
    if isinstance(described, msgspec.inspect.Metadata):
        return _takes_text(described.type)
    text = msgspec.inspect.StrType | msgspec.inspect.EnumType | msgspec.inspect.LiteralType
    return isinstance(described, text | msgspec.inspect.StructType)
