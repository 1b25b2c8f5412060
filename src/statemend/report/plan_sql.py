"""A repair plan as SQL, for a person to review."""

from __future__ import annotations

from collections.abc import Iterator

from statemend.repair.plan import Plan
from statemend.repair.statements import script


def render(plan: Plan) -> str:
    """The statements of the plan as it stands; those of options that are not chosen as comments."""
    return "".join(_lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    yield f"-- statemend plan {plan.id}, to be read; `statemend apply` carries it out, with its checks\n"
    yield script(plan.selected())
    for choice in plan.choices:
        for option in choice.options:
            if option.id == choice.chosen or not option.steps:
                continue
            yield _comment(f"only if {choice.id} is answered with {option.id}:")
            yield _comment(script(option.steps))


def _comment(text: str) -> str:
    return "".join(f"-- {line}\n" for line in text.splitlines())
