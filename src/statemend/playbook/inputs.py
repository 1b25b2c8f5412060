"""The inputs of a playbook, as they are given on the command line."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from statemend.errors import UsageError
from statemend.playbook.check import LONGEST_INPUT, absolute, check
from statemend.playbook.convert import near
from statemend.playbook.model import Input, InputType
from statemend.playbook.source import Source

_CLIPPED = 60
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?", re.ASCII)
_INT64 = range(-(1 << 63), 1 << 63)


def parse(given: Sequence[str], source: Source) -> dict[str, object]:
    """The typed inputs of the playbook ``source`` from ``name=value`` texts, defaults included.

    A path is made absolute, ``~`` is the user's home, and ``paths`` are given several times, or in one text
    separated as in ``PATH``. Raises ``UsageError`` for an unknown, missing or wrong input, and for a playbook
    with problems.
    """
    known = check(source).inputs
    texts: dict[str, list[str]] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text[:_CLIPPED]!r}: write name=value")
        if name not in known:
            raise UsageError(f"--set {name[:_CLIPPED]!r}: {source.name} has no such input{near(name, known)}")
        if name in texts and known[name].type is not InputType.PATHS:
            raise UsageError(f"--set {name}: given twice; only an input of type paths is")
        texts.setdefault(name, []).append(value)
    _require(known, texts, source)
    return {name: _value(name, one, texts.get(name)) for name, one in known.items()}


def _require(known: Mapping[str, Input], texts: Mapping[str, object], source: Source) -> None:
    missing = [name for name, one in known.items() if one.default is msgspec.UNSET and name not in texts]
    if missing:
        listed = ", ".join(f"{name} ({known[name].help})" for name in missing)
        sets = " ".join(f"--set {name}=…" for name in missing)
        raise UsageError(f"{source.name}: needs {listed}; say {sets}")


def _value(name: str, one: Input, texts: Sequence[str] | None) -> object:
    try:
        if texts is None:
            return _default(one)
        for text in texts:
            _check_text(text)
        value = _READERS[one.type](texts)
        if one.values and value not in one.values:
            raise ValueError(f"takes one of {', '.join(one.values)}")
    except ValueError as error:
        raise UsageError(f"--set {name}: {error} ({one.help})") from error
    return value


def _default(one: Input) -> object:
    if one.default is None:
        return None
    if one.type is InputType.PATH:
        return absolute(one.default)
    if one.type is InputType.PATHS:
        return [absolute(path) for path in one.default]
    return float(one.default) if one.type is InputType.NUMBER else one.default


def _check_text(text: str) -> None:
    if len(text) > LONGEST_INPUT:
        raise ValueError(f"longer than {LONGEST_INPUT:,} characters")
    if "\0" in text:
        raise ValueError("a NUL character is in it")


def _text(texts: Sequence[str]) -> str:
    (text,) = texts
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("takes text, and this is not valid UTF-8") from error
    return text


def _integer(texts: Sequence[str]) -> int:
    (text,) = texts
    if not _INTEGER.fullmatch(text) or int(text) not in _INT64:
        raise ValueError(f"takes a whole number, not {text[:_CLIPPED]!r}")
    return int(text)


def _number(texts: Sequence[str]) -> float:
    (text,) = texts
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError(f"takes a number, not {text[:_CLIPPED]!r}")
    return float(text)


def _boolean(texts: Sequence[str]) -> bool:
    (text,) = texts
    if text not in ("true", "false"):
        raise ValueError(f"takes true or false, not {text[:_CLIPPED]!r}")
    return text == "true"


def _path(texts: Sequence[str]) -> str:
    (text,) = texts
    return absolute(text)


def _paths(texts: Sequence[str]) -> list[str]:
    return [absolute(part) for text in texts for part in text.split(os.pathsep)]


_READERS: Mapping[InputType, Callable[[Sequence[str]], Any]] = {
    InputType.TEXT: _text,
    InputType.INTEGER: _integer,
    InputType.NUMBER: _number,
    InputType.BOOLEAN: _boolean,
    InputType.PATH: _path,
    InputType.PATHS: _paths,
}
