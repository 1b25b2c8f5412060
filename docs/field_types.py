"""What a field of a typed file takes, in words."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec
from msgspec import inspect


def fields(kind: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    """The fields of a type."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return described.fields


def words(kind: inspect.Type) -> str:
    """A type in words: `list of text`, `number, 0 to 600`."""
    match kind:
        case inspect.Metadata():
            return words(kind.type)
        case inspect.UnionType():
            return " or ".join(words(one) for one in kind.types if not isinstance(one, inspect.NoneType))
        case inspect.VarTupleType() | inspect.ListType():
            return f"list of {words(kind.item_type)}"
        case inspect.DictType():
            return "map"
        case inspect.EnumType():
            return " | ".join(f"`{one.value}`" for one in kind.cls)
        case inspect.LiteralType():
            return " | ".join(f"`{one}`" for one in kind.values)
        case inspect.StrType():
            return "name" if kind.pattern else "text" + _bounded("up to {:,} characters", kind.max_length)
        case inspect.IntType():
            return "whole number" + _range(kind)
        case inspect.FloatType():
            return "number" + _range(kind)
        case inspect.BoolType():
            return "`true` | `false`"
        case inspect.StructType():
            return f"{kind.cls.__name__.lower()}"
    return "any value"


def meaning(kind: inspect.Type) -> str:
    """What is said of a field where it is declared."""
    if not isinstance(kind, inspect.Metadata):
        return ""
    said = (kind.extra_json_schema or {}).get("description")
    return said if isinstance(said, str) else meaning(kind.type)


def default(field: inspect.Field) -> str:
    """What a field is when nothing is written."""
    if field.required:
        return "required"
    value: Any = field.default
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, tuple):
        value = ", ".join(getattr(one, "value", str(one)) for one in value)
    if value in (None, "", msgspec.NODEFAULT, msgspec.UNSET):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _bounded(form: str, limit: int | None) -> str:
    return "" if limit is None else ", " + form.format(limit)


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    bounds = (
        ("more than", kind.gt),
        ("at least", kind.ge),
        ("less than", kind.lt),
        ("at most", kind.le),
    )
    return "".join(f", {words} {limit:,}" for words, limit in bounds if limit is not None)
