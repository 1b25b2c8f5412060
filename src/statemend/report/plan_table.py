"""A repair plan for a terminal: what it does, what it asks, what it leaves, and how to go on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from statemend.repair.plan import Choice, Left, Plan, Step
from statemend.report import blocks, text

#: So many of each are shown; the plan file has them all.
MOST_STEPS = 40
MOST_CHOICES = 20
MOST_LEFT = 40
_MOST_EVIDENCE = 5

_ID = re.compile(r'^      "id": (".*"),$')
_CHOSEN = re.compile(r'^      "chosen": ')


def renderable(plan: Plan, *, file: str | None, lines: Mapping[str, int]) -> RenderableType:
    """The plan for a ``rich`` console; nothing in it is read as markup. ``file`` is where it was written,
    ``lines`` are the lines in it where each choice is answered (``answer_lines``)."""
    return Group(*_parts(plan, file, lines))


def answer_lines(written: str) -> dict[str, int]:
    """For each choice, by id, the line of the written plan that holds its ``chosen``, counted from 1."""
    found: dict[str, int] = {}
    current: str | None = None
    for number, line in enumerate(written.splitlines(), start=1):
        if named := _ID.match(line):
            current = named[1]
        elif current is not None and _CHOSEN.match(line):
            found[current] = number
    return found


def verdict(plan: Plan) -> str:
    """The plan in one sentence."""
    if not (plan.steps or plan.choices or plan.left):
        return "Nothing was found: there is nothing to do."
    if not (plan.steps or plan.choices):
        return f"Nothing can be mended by a plan; {text.count(len(plan.left), 'finding')} left as they are."
    parts = []
    if plan.steps:
        parts.append(f"{text.count(len(plan.steps), 'step')} ready")
    if plan.choices:
        parts.append(f"{text.count(len(plan.choices), 'choice')} for you to make")
    if plan.left:
        parts.append(f"{text.count(len(plan.left), 'finding')} left as they are")
    return f"{', '.join(parts)}."


def _parts(plan: Plan, file: str | None, lines: Mapping[str, int]) -> Iterator[RenderableType]:
    yield Text(text.clip(f"statemend plan {plan.id} for {plan.store.path}", 300), style="dim")
    yield Text(verdict(plan), style="bold")
    yield from _listed("Steps", [_step(step) for step in plan.steps], MOST_STEPS)
    for index in plan.work().indexes:
        yield Text(text.clip(f"  Then the search index {index} is built anew, once.", 200))
    yield from _listed(
        "Choices",
        [_choice(choice, file, lines.get(_quoted(choice.id))) for choice in plan.choices],
        MOST_CHOICES,
    )
    yield from _listed("Left as they are", [_left(left) for left in plan.left], MOST_LEFT)
    yield from _next(plan, file)


def _listed(heading: str, entries: list[RenderableType], most: int) -> Iterator[RenderableType]:
    if not entries:
        return
    yield Text()
    yield Text(heading, style="bold")
    for entry in entries[:most]:
        yield Padding(entry, (0, 0, 0, 2))
    if len(entries) > most:
        yield Text(f"  {len(entries) - most:,} more: see the plan itself", style="dim")


def _step(step: Step) -> RenderableType:
    columns = ", ".join(source.column.removeprefix("sessions.") for source in step.sources)
    lines: list[RenderableType] = [
        Text(text.clip(step.title, 200)),
        _indented(f"{step.finding} · {step.recipe} · {step.why}", 1),
    ]
    if columns:
        lines.append(_indented(f"each with its source: {columns}", 1))
    return Group(*lines)


def _choice(choice: Choice, file: str | None, line: int | None) -> RenderableType:
    parts: list[RenderableType] = [
        Text(text.clip(choice.question, 300)),
        _indented(choice.id, 1),
    ]
    for option in choice.options:
        parts.append(_indented(f"{option.id}: {option.title}", 1, style=""))
        parts += [_indented(line, 2) for line in option.evidence[:_MOST_EVIDENCE]]
        if len(option.evidence) > _MOST_EVIDENCE:
            parts.append(_indented(f"and {len(option.evidence) - _MOST_EVIDENCE:,} more", 2))
    parts.append(_indented(_how_to_choose(choice, file, line), 1, style="bold"))
    return Group(*parts)


def _indented(line: str, depth: int, *, style: str = "dim") -> Padding:
    return Padding(Text(text.clip(line, 600), style=style), (0, 0, 0, 2 * depth))


def _how_to_choose(choice: Choice, file: str | None, line: int | None) -> str:
    example = f'"chosen": {_quoted(choice.options[0].id)}'
    if choice.chosen is not None:
        return f"Chosen: {choice.chosen}"
    if file is None or line is None:
        return f'To choose: write the plan with -o, and {example} for "chosen": null there'
    return f"To choose: in {file}, line {line}, put the id of an option for null, as {example}"


def _left(left: Left) -> RenderableType:
    return Text(text.clip(f"{left.id}: {left.reason}", 400))


def _next(plan: Plan, file: str | None) -> Iterator[RenderableType]:
    if not (plan.steps or plan.choices):
        return
    yield Text()
    if file is None:
        yield blocks.next_step("write the plan into a file with -o")
    else:
        import shlex

        first = "" if plan.selected() else f"answer a choice in {file}, then "
        yield blocks.next_step(f"{first}statemend rehearse {shlex.quote(file)}")


def _quoted(name: str) -> str:
    from statemend.report.json import dump

    return dump(name).strip()
