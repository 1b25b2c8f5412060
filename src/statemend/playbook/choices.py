"""The choices file ``statemend/choices/v1``: what an operator decided about the choices of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import yaml
from msgspec import Meta

from statemend.errors import UsageError
from statemend.playbook import source
from statemend.playbook.convert import Converter, Values, near
from statemend.playbook.model import Answer
from statemend.repair.plan import Choice, Option, Plan
from statemend.report.text import clip, listed

SCHEMA: Final = "statemend/choices/v1"

_BOUNDS: Final = source.Bounds(2 * 1024 * 1024, 50_000)
_CLIPPED: Final = 200
_MOST_EVIDENCE: Final = 6


class Choices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A choices file: one answer to each choice of a plan. An answer without an option is none yet."""

    schema: Annotated[Literal["statemend/choices/v1"], Meta(description="The contract of this file.")]
    choices: Annotated[tuple[Answer, ...], Meta(description="The answers, in any order.")] = ()


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with the answers written into it. ``unanswered`` are the choices that no answer is about,
    ``skipped`` those that are left out on purpose."""

    plan: Plan
    unanswered: tuple[Choice, ...] = ()
    skipped: tuple[Choice, ...] = ()


def load(path: Path) -> tuple[Answer, ...]:
    """The answers of a choices file, YAML or JSON. Raises ``UsageError`` for a file that is none,
    ``Undetermined`` for one that cannot be read."""
    given = source.read(path, _BOUNDS)
    reader = Converter(given, Values({}))
    made = reader.struct(Choices, given.data, "$", fixed=Choices.__struct_fields__)
    for number, answer in enumerate(made.choices if made else ()):
        if answer.skip and answer.option is not None:
            reader.add(f"$.choices[{number}].skip", "skipped, and answered; say one of both")
    if reader.problems:
        line, column, text = min(reader.problems)
        raise given.error(source.Place(line, column), text)
    assert made is not None
    return made.choices


def match(plan: Plan, answers: Sequence[Answer]) -> Matched:
    """Write ``answers`` into ``plan``.

    An answer names a choice, or the finding that exactly one choice is about. What the plan has chosen
    already stays, unless an answer says otherwise. Raises ``UsageError`` for an answer that fits nothing in
    the plan, and for two that differ.
    """
    given: dict[str, Answer] = {}
    for answer in answers:
        choice = _meant(plan, answer)
        known = given.get(choice.id)
        if known and (known.option, known.skip) != (answer.option, answer.skip):
            raise UsageError(f"choice {clip(choice.id)}: two answers that differ; leave one")
        _check_option(choice, answer)
        given[choice.id] = answer
    return Matched(
        plan=msgspec.structs.replace(plan, choices=tuple(_decided(one, given) for one in plan.choices)),
        unanswered=tuple(one for one in plan.choices if _is_open(one, given.get(one.id))),
        skipped=tuple(one for one in plan.choices if one.id in given and given[one.id].skip),
    )


def _meant(plan: Plan, answer: Answer) -> Choice:
    for choice in plan.choices:
        if choice.id == answer.choice:
            return choice
    about = [choice for choice in plan.choices if choice.finding == answer.choice]
    if len(about) == 1:
        return about[0]
    named = clip(answer.choice)
    if about:
        raise UsageError(
            f"{named}: {len(about)} choices are about it; name one of {listed(clip(one.id) for one in about)}"
        )
    left = next((one for one in plan.left if one.id == answer.choice), None)
    if left is not None:
        raise UsageError(f"{named}: the plan leaves nothing to choose there: {clip(left.reason, _CLIPPED)}")
    if not plan.choices:
        raise UsageError(f"{named}: the plan has no open choice; take the answer out")
    ids = [choice.id for choice in plan.choices]
    hint = near(answer.choice, ids) if len(ids) <= 5 else ""
    raise UsageError(f"{named}: no such choice in the plan{clip(hint, _CLIPPED)}; it may be stale: plan anew")


def _check_option(choice: Choice, answer: Answer) -> None:
    options = [option.id for option in choice.options]
    if answer.skip and answer.option is not None:
        raise UsageError(f"choice {clip(choice.id)}: skipped, and answered; say one of both")
    if answer.option is not None and answer.option not in options:
        raise UsageError(
            f"choice {clip(choice.id)}: no option {clip(answer.option)!r}; "
            f"there are {listed(map(clip, options), 8)}"
        )


def _decided(choice: Choice, given: Mapping[str, Answer]) -> Choice:
    answer = given.get(choice.id)
    if answer is None or (answer.option is None and not answer.skip):
        return choice
    return msgspec.structs.replace(choice, chosen=answer.option)


def _is_open(choice: Choice, answer: Answer | None) -> bool:
    if answer is not None and (answer.skip or answer.option is not None):
        return False
    return choice.chosen is None


def template(plan: Plan) -> str:
    """A choices file to fill in: each open choice of ``plan``, with its options and their evidence as
    comments."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    yield f"# Choices that evidence does not make: plan {clip(plan.id)} for {clip(plan.home, _CLIPPED)}."
    yield "# After `option:` write the id of one option, as it stands here in quotes."
    yield "# Write `skip: true` instead to leave a choice out on purpose."
    yield f"schema: {SCHEMA}"
    waiting = [choice for choice in plan.choices if choice.chosen is None]
    yield "choices:" if waiting else "choices: []"
    for choice in waiting:
        yield ""
        yield f"  # {clip(choice.question, _CLIPPED)}"
        yield f"  # Finding {clip(choice.finding)}. The options are:"
        for option in choice.options:
            yield from _option(option)
        yield f"  - choice: {_quoted(choice.id)}"
        yield "    option: null"


def _option(option: Option) -> Iterator[str]:
    yield f"  #   {_quoted(option.id)}: {clip(option.title, _CLIPPED)}"
    for line in option.evidence[:_MOST_EVIDENCE]:
        yield f"  #       {clip(line, _CLIPPED)}"
    if option.evidence[_MOST_EVIDENCE:]:
        yield f"  #       and {len(option.evidence) - _MOST_EVIDENCE} more"


def _quoted(text: str) -> str:
    """``text`` as a quoted scalar on one line, to be copied as it stands."""
    scalar: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=float("inf"))
    return scalar.rstrip("\n")
