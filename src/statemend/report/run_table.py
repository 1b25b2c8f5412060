"""A rehearsal, or a run and what became of it, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from statemend.repair.rehearse import Rehearsal
from statemend.repair.run import Run, State
from statemend.report import blocks, text

_GOOD = frozenset({State.APPLIED, State.UNDONE, State.NOTHING, State.NOT_APPLIED})
_MOST = 20


def of_run(run: Run, *, unanswered: int = 0) -> RenderableType:
    """A run for a ``rich`` console; nothing in it is read as markup. ``unanswered`` counts the choices that
    its plan left open."""
    return Group(
        Text(
            f"{run.state.value[:1].upper()}{run.state.value[1:]}.",
            style="bold" if run.state in _GOOD else "bold red",
        ),
        blocks.facts(
            [
                ("store", run.store),
                ("run", run.folder),
                ("snapshot", "" if run.snapshot is None else run.snapshot.path),
                ("findings mended", _mended(run)),
                ("left open", _left_open(unanswered) if run.state is State.APPLIED else ""),
                *_several("still there", run.remaining),
                *_several("new", run.new),
                *_several("trouble", run.troubles),
                *_several("note", run.notes),
            ]
        ),
        blocks.next_step(run.advice, style=""),
    )


def of_rehearsal(rehearsal: Rehearsal, plan_file: str) -> RenderableType:
    """A rehearsal for a ``rich`` console; nothing in it is read as markup."""
    import shlex

    if rehearsal.passed and rehearsal.before is None:
        advice = "the plan has no step to carry out: choose options in it, or plan again"
        return Group(Text("Nothing to do.", style="bold"), blocks.next_step(advice, style=""))
    if rehearsal.passed:
        command = f"statemend apply {shlex.quote(plan_file)}"
        return Group(
            Text("The rehearsal passed: applied to a private copy, verified, and taken back.", style="bold"),
            blocks.facts(_several("note", rehearsal.notes)),
            blocks.next_step(command),
        )
    return Group(
        Text("The rehearsal did not pass. The store was not touched.", style="bold red"),
        blocks.facts(_several("because", rehearsal.reasons)),
    )


def _left_open(choices: int) -> str:
    return (
        f"{text.count(choices, 'choice')} without an answer: `statemend plan` asks again" if choices else ""
    )


def _mended(run: Run) -> str:
    judged = run.state in (State.APPLIED, State.FAILED)
    return text.number(len(run.served) - len(run.remaining)) if judged and run.served else ""


def _several(label: str, lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines[:_MOST]):
        yield ("" if number else label, line)
    if len(lines) > _MOST:
        yield "", f"and {len(lines) - _MOST:,} more"
