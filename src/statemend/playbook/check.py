"""Whether a playbook can run at all: everything that can be known before its first step."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from statemend.playbook.convert import Converter, Problem, Values, near
from statemend.playbook.flow import faults
from statemend.playbook.model import LAST, Input, InputType, Playbook, Scan, Step
from statemend.playbook.source import Place, Source
from statemend.playbook.variables import RUN, has_template

__all__ = ["LONGEST_INPUT", "Problem", "absolute", "check", "problems", "resolve"]

#: Characters of one value of an input.
LONGEST_INPUT: Final = 4096

#: Fields that decide what runs, and in which order: they hold no template.
FIXED: Final = frozenset({"do", "expect", "id", "name", "needs", "of", "plan", "scan", "schema", "sql"})
_INPUT_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
#: Names that mean something in a template.
_RESERVED: Final = frozenset(
    {"and", "else", "false", "if", "in", "is", "none", "not", "or", "run", "self", "true"}
)
_SAMPLES: Mapping[InputType, Any] = {
    InputType.TEXT: "text",
    InputType.INTEGER: 1,
    InputType.NUMBER: 1.0,
    InputType.BOOLEAN: False,
    InputType.PATH: "/path",
    InputType.PATHS: ["/path"],
}
_TYPES: Mapping[InputType, Any] = {
    InputType.TEXT: str,
    InputType.INTEGER: int,
    InputType.NUMBER: float,
    InputType.BOOLEAN: bool,
    InputType.PATH: str,
    InputType.PATHS: list[str],
}
_KINDS: Mapping[str, type[Step]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Step)}
#: Fields that hold a path, or several.
_PATHS: Final = frozenset({"artifacts", "baseline", "exports", "into"})
_MOST_STEPS: Final = 100
_CLIPPED = 60
_HOME: Final = next(field.default for field in msgspec.structs.fields(Playbook) if field.name == "home")


def problems(source: Source) -> tuple[Problem, ...]:
    """Everything that is wrong with a playbook, in the order of the file."""
    return _read(source, None)[1]


def check(source: Source) -> Playbook:
    """The playbook, with sample values where inputs without a default belong.

    Raises ``UsageError`` for the first problem; it says how many more there are.
    """
    return _whole(source, *_read(source, None))


def resolve(source: Source, inputs: Mapping[str, object], run: Mapping[str, str]) -> Playbook:
    """The playbook as it runs: every template filled with ``inputs`` and with what is known of the run
    (``name``, ``folder``, ``started``), and every path in a step made absolute. Raises ``UsageError`` as
    ``check`` does."""
    playbook = _whole(source, *_read(source, Values({**inputs, "run": dict(run)})))
    scans = {step.name for step in playbook.steps if isinstance(step, Scan)}
    steps = tuple(_anchored(source, number, step, scans) for number, step in enumerate(playbook.steps))
    return msgspec.structs.replace(playbook, steps=steps)


def absolute(text: str) -> str:
    """A path as somebody wrote it: ``~`` is the user's home, and what is not absolute begins where the
    program runs. Raises ``ValueError`` for an empty one, and for a user that is not there."""
    if not text:
        raise ValueError("takes a path, and this is empty")
    try:
        return os.path.abspath(Path(text).expanduser())
    except RuntimeError as error:
        raise ValueError(f"{text[:_CLIPPED]!r}: no such user") from error


def _anchored(source: Source, number: int, step: Step, scans: Collection[str]) -> Step:
    """The step with its paths as they are from anywhere: a run may be gone on with in another folder."""
    made: dict[str, Any] = {}
    for name in _PATHS & set(step.__struct_fields__):
        given = getattr(step, name)
        try:
            if isinstance(given, tuple):
                made[name] = tuple(map(absolute, given))
            elif given is not None and not (name == "baseline" and given in (LAST, *scans)):
                made[name] = absolute(given)
        except ValueError as error:
            raise source.error(source.place(f"$.steps[{number}].{name}"), f"`{name}` {error}") from error
    return msgspec.structs.replace(step, **made)


def _whole(source: Source, playbook: Playbook | None, found: tuple[Problem, ...]) -> Playbook:
    if found:
        line, column, text = found[0]
        more = f" (and {len(found) - 1:,} more)" if found[1:] else ""
        raise source.error(Place(line, column), f"{text}{more}")
    assert playbook is not None
    return playbook


def _read(source: Source, values: Values | None) -> tuple[Playbook | None, tuple[Problem, ...]]:
    """The playbook with ``values``, or with samples; it is there when there is no problem."""
    if not isinstance(source.data, dict):
        return None, (Problem(1, 1, "no playbook: expected a mapping that begins with `schema`"),)
    plain = Converter(source, Values({}))
    inputs = _inputs(plain, source.data.get("inputs"))
    reader = Converter(source, values or _samples(inputs, source.data))
    made = reader.fields(Playbook, source.data, "$", fixed=FIXED, elsewhere=("inputs", "steps"))
    if "run" in reader.uses(source.data.get("home")):
        reader.add("$.home", "the home is found before a run begins; name it by an input")
    if "home" not in source.data:
        made["home"] = reader.value(str, _HOME, "$", fixed=False)
    steps = _steps(reader, source.data)
    if not (plain.problems or reader.problems):
        for number, path, text in faults(
            steps, inputs, _unsettled(source.data["steps"]) if values is None else ()
        ):
            reader.add(f"$.steps[{number}]{path}", text)
    found = tuple(sorted({*plain.problems, *reader.problems}))
    return None if found else Playbook(**made, inputs=inputs, steps=tuple(steps)), found


def _inputs(reader: Converter, data: object) -> dict[str, Input]:
    if data is None:
        return {}
    if not isinstance(data, dict):
        reader.add("$.inputs", "expected a mapping of names to inputs")
        return {}
    made: dict[str, Input] = {}
    for name, given in data.items():
        path = f"$.inputs.{name}"
        if not _INPUT_NAME.fullmatch(name):
            reader.add(path, "an input's name is made of lower-case letters, digits and `_`", key=True)
        elif name in _RESERVED:
            reader.add(path, f"{name!r} means something else in a template; choose another name", key=True)
        elif one := reader.struct(Input, given, path, fixed=Input.__struct_fields__):
            made[name] = one
            _check_default(reader, one, path)
    return made


def _check_default(reader: Converter, one: Input, path: str) -> None:
    if one.values and one.type is not InputType.TEXT:
        reader.add(f"{path}.values", "only an input of type text has `values`")
    if one.default is msgspec.UNSET or one.default is None:
        return
    try:
        msgspec.convert(one.default, _TYPES[one.type])
    except msgspec.ValidationError:
        reader.add(f"{path}.default", f"the default is no {one.type.value}")
        return
    texts = one.default if isinstance(one.default, list) else [one.default]
    if any(isinstance(text, str) and len(text) > LONGEST_INPUT for text in texts):
        reader.add(f"{path}.default", f"the default is longer than {LONGEST_INPUT:,} characters")
    if one.values and one.default not in one.values:
        reader.add(f"{path}.default", f"the default is none of {', '.join(one.values)}")


def _samples(inputs: Mapping[str, Input], data: Mapping[str, Any]) -> Values:
    filled: dict[str, Any] = {}
    unknown: set[str] = set()
    for name, one in inputs.items():
        if one.default is not msgspec.UNSET and one.default is not None:
            filled[name] = one.default
        elif one.values:
            filled[name] = one.values[0]
        else:
            filled[name] = _SAMPLES[one.type]
            unknown.add(name)
    # A name that is declared, though wrongly, is not also unknown wherever it is used.
    declared = data.get("inputs")
    for name in declared if isinstance(declared, dict) else ():
        if name not in filled:
            filled[name] = "text"
            unknown.add(name)
    run = dict.fromkeys(RUN, "run")
    return Values({**filled, "run": run}, frozenset(unknown))


def _steps(reader: Converter, data: Mapping[str, Any]) -> list[Step]:
    given = data.get("steps")
    if not isinstance(given, list) or not given or len(given) > _MOST_STEPS:
        if "steps" in data:
            reader.add("$.steps", f"expected a list of 1 to {_MOST_STEPS} steps")
        else:
            reader.add("$", "`steps` is missing; add it")
        return []
    made: list[Step] = []
    for number, one in enumerate(given):
        path = f"$.steps[{number}]"
        word = one.get("do") if isinstance(one, dict) else None
        if word is None:
            reader.add(path, "a step begins with `do` and what to do")
        elif not isinstance(word, str) or word not in _KINDS:
            reader.add(f"{path}.do", f"no step {str(word)[:60]!r}{near(str(word), _KINDS)}")
        elif step := reader.struct(_KINDS[word], one, path, fixed=FIXED):
            made.append(step)
    return made


def _unsettled(steps: list[Any]) -> frozenset[int]:
    """The steps of which a template decides what they select."""
    selecting = ("at_risk", "older_than", "sessions")
    return frozenset(
        number
        for number, step in enumerate(steps)
        if any(isinstance(step.get(name), str) and has_template(step[name]) for name in selecting)
    )
