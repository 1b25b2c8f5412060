"""A run of a playbook as it is shown at a terminal."""

from __future__ import annotations

from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from statemend.report import blocks
from statemend.report.playbook_run import PlaybookRun, RunState, StepResult, StepState
from statemend.report.text import visible

#: A sign, a word and a colour for each state: none of them is needed to tell them apart.
_SHOWN: Final = {
    StepState.PASSED: ("✓", "green"),
    StepState.FAILED: ("✗", "bold red"),
    StepState.REFUSED: ("■", "bold yellow"),
    StepState.SKIPPED: ("–", "dim"),
    StepState.WAITING: ("?", "bold cyan"),
    StepState.PLANNED: ("·", "cyan"),
}


def of_run(run: PlaybookRun) -> RenderableType:
    """The steps with what came of each, and where everything lies."""
    parts: list[RenderableType] = [
        Text(visible(f"{run.title} ({run.playbook})"), style="bold"),
        Text(visible(run.home), style="dim"),
        Text(""),
        blocks.Rows([_row(number, step) for number, step in enumerate(run.steps, start=1)]),
        Text(""),
        blocks.unbroken(_conclusion(run)),
    ]
    parts += [Text(visible(note), style="dim") for note in run.notes]
    if run.folder:
        parts.append(blocks.unbroken((visible(f"Everything about it: {run.folder}"), "dim")))
    return Group(*parts)


def _row(number: int, step: StepResult) -> tuple[Text, Text, Text, Text]:
    sign, style = _SHOWN[step.state]
    told = (step.title, None if step.state is StepState.WAITING else step.summary)
    return (
        Text(f"{number:>2}", style="dim"),
        Text(visible(step.id)),
        Text(f"{sign} {step.state.value}", style=style),
        Text(visible(": ".join(filter(None, told)))),
    )


def _conclusion(run: PlaybookRun) -> str:
    if not run.folder:
        return "A dry run: nothing was written."
    if run.state is RunState.WAITING:
        asked = next((step.summary for step in run.steps if step.state is StepState.WAITING), "")
        return visible(f"It waits: {asked or 'run the same again to go on.'}")
    states = {step.state for step in run.steps}
    if states & {StepState.FAILED, StepState.REFUSED}:
        return "Not every step passed."
    return "Every step passed." if run.exit_code == 0 else "Every step passed, with something to look at."
