"""The choices file ``statemend/choices/v1``: what an operator decided about the choices of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from statemend.errors import UsageError
from statemend.playbook import source
from statemend.playbook.model import Answer
from statemend.repair.plan import Choice, Plan

SCHEMA: Final = "statemend/choices/v1"


class Choices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A choices file."""

    schema: Literal["statemend/choices/v1"]
    choices: tuple[Answer, ...] = ()


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with the answers written into it. ``unanswered`` are the choices that no answer is about,
    ``skipped`` those that are left out on purpose."""

    plan: Plan
    unanswered: tuple[Choice, ...] = ()
    skipped: tuple[Choice, ...] = ()


def load(path: Path) -> tuple[Answer, ...]:
    """The answers of a choices file. Raises ``UsageError`` for a file that is none."""
    given = source.read(path)
    try:
        return msgspec.convert(given.data, Choices).choices
    except msgspec.ValidationError as error:
        raise given.error(given.place("$"), str(error)) from error


def match(plan: Plan, answers: Sequence[Answer]) -> Matched:
    """Write ``answers`` into ``plan``. Raises ``UsageError`` for an answer that fits nothing in it."""
    decided: list[Choice] = []
    unanswered: list[Choice] = []
    skipped: list[Choice] = []
    for choice in plan.choices:
        answer = next((one for one in answers if one.choice in (choice.id, choice.finding)), None)
        if answer is None:
            if choice.chosen is None:
                unanswered.append(choice)
            decided.append(choice)
        elif answer.skip:
            skipped.append(choice)
            decided.append(msgspec.structs.replace(choice, chosen=None))
        elif answer.option in [option.id for option in choice.options]:
            decided.append(msgspec.structs.replace(choice, chosen=answer.option))
        else:
            raise UsageError(f"{choice.id} has no option {answer.option!r}")
    return Matched(
        plan=msgspec.structs.replace(plan, choices=tuple(decided)),
        unanswered=tuple(unanswered),
        skipped=tuple(skipped),
    )


def template(plan: Plan) -> str:
    """A choices file to fill in: each open choice of ``plan``, with its options as comments."""
    lines = [f"schema: {SCHEMA}", "choices:"]
    for choice in plan.choices:
        lines += [f"  - choice: {choice.id}", "    option: null"]
        lines += [f"    # {option.id}" for option in choice.options]
    return "\n".join(lines) + "\n"
