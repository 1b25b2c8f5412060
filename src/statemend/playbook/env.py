"""What a step has at hand while it runs, and what it yields."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from statemend.errors import Refused, StatemendError
from statemend.playbook.folder import PlaybookFolder
from statemend.playbook.model import Answer, Choose, Export, Playbook, Scan, Step
from statemend.playbook.model import Plan as PlanStep
from statemend.repair.journal import Hook
from statemend.repair.plan import Choice
from statemend.report.playbook_run import PASSING, Fact, StepResult, StepState

Progress = Callable[[str], None]


class NoAnswer(Exception):
    """Nobody is there to answer, and nothing answers by itself."""


class Operator(Protocol):
    """Whoever runs the playbook."""

    def confirm(self, question: str) -> bool | None:
        """Whether to go on; ``None`` when nobody is there to say."""

    def choose(self, choice: Choice) -> str | None:
        """The id of the option chosen; ``None`` when nobody is there to say."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a step ended: ``summary`` is one sentence. ``besides`` are folders of earlier attempts that hold
    what the step did."""

    state: StepState = StepState.PASSED
    exit_code: int = 0
    summary: str
    facts: dict[str, Fact] = {}
    besides: tuple[Path, ...] = ()


class Env(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one run, the ``number``-th of the playbook, from 0. ``place`` is the step's own folder,
    ``earlier`` those of its attempts that broke off, the latest first; ``dry`` says that nothing outside the
    run's folder may be written."""

    playbook: Playbook
    number: int
    home: Path
    inputs: Mapping[str, object]
    folder: PlaybookFolder
    place: Path
    earlier: Sequence[Path]
    results: Mapping[str, StepResult]
    operator: Operator
    answers: Sequence[Answer]
    dry: bool
    progress: Progress | None
    hook: Hook | None

    def before(self) -> Iterator[Step]:
        """The steps before this one that passed, the latest first."""
        for step in reversed(self.playbook.steps[: self.number]):
            result = self.results.get(step.name)
            if result is not None and result.state in PASSING:
                yield step

    def place_of(self, step_id: str) -> Path:
        """The folder of a step that was finished."""
        return self.folder.path / self.results[step_id].folder

    def scan(self, wanted: str | None) -> Path:
        """The folder of the scan of this name, or of the latest, whether or not it passed: it has a report.
        Raises ``Refused`` where there is none."""
        for step in reversed(self.playbook.steps[: self.number]):
            result = self.results.get(step.name)
            if (
                isinstance(step, Scan)
                and wanted in (None, step.name)
                and result
                and "findings" in result.facts
            ):
                return self.place_of(step.name)
        raise Refused(f"the scan{f' {wanted!r}' if wanted else ''} that this step builds on has no report")

    def plan(self, wanted: str | None) -> Path:
        """The plan file of the plan step of this name, or of the latest, with the choices that were answered.
        Raises ``Refused`` where there is none."""
        plan_id = self._latest_plan(wanted)
        for step in self.before():
            if isinstance(step, Choose) and step.plan in (None, plan_id) and self._follows(step, plan_id):
                return self.place_of(step.name) / "plan.json"
        return self.place_of(plan_id) / "plan.json"

    def beside(self, exports: Sequence[str]) -> list[Path]:
        """Folders with exports: those named, and those that this run wrote."""
        return [*map(Path, exports), *self.exported()]

    def exported(self) -> Iterator[Path]:
        """The folders that this run exported into, if there is anything in them."""
        for step in self.before():
            into = self.results[step.name].facts.get("into") if isinstance(step, Export) else None
            if isinstance(into, str) and Path(into).is_dir():
                yield Path(into)

    def name_of(self, path: str | Path) -> str:
        """A path as a result names it: within the run's folder where it lies there."""
        absolute = Path(os.path.abspath(path))
        root = Path(os.path.abspath(self.folder.path))
        return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else str(absolute)

    def consent(self, question: str) -> None:
        """Go on only with a yes. Raises ``Refused`` for a no, ``NoAnswer`` when nobody is there."""
        answer = self.operator.confirm(question)
        if answer is None:
            raise NoAnswer(f"{question} Say --yes, or run it at a terminal")
        if not answer:
            raise Refused("declined; nothing was changed")

    def _latest_plan(self, wanted: str | None) -> str:
        for step in self.before():
            if isinstance(step, PlanStep) and wanted in (None, step.name):
                return step.name
        raise Refused(f"the step {wanted or 'plan'!r} that this one builds on did not pass")

    def _follows(self, step: Choose, plan_id: str) -> bool:
        """Whether a choose step that names no plan is about this one: the latest before it."""
        names = [each.name for each in self.playbook.steps]
        if step.plan is not None:
            return True
        plans = [
            each.name for each in self.playbook.steps[: names.index(step.name)] if isinstance(each, PlanStep)
        ]
        return plans[-1:] == [plan_id]


def failed(error: StatemendError) -> Outcome:
    """What a step that met this error ended as."""
    state = StepState.REFUSED if isinstance(error, Refused) else StepState.FAILED
    return Outcome(state=state, exit_code=error.exit_code, summary=str(error))
