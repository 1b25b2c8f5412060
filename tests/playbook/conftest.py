"""Homes to run playbooks on, and whoever runs them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from statemend.demo.build import build
from statemend.playbook import inputs, source
from statemend.playbook.model import Answer
from statemend.playbook.runner import run_playbook
from statemend.repair.plan import Choice
from statemend.report.playbook_run import PlaybookRun, StepState


class Nobody:
    """No one is there."""

    def confirm(self, question: str) -> bool | None:
        return None

    def choose(self, choice: Choice) -> str | None:
        return None


class Yes:
    """Says yes to everything, and takes the named options."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.asked: list[str] = []
        self._options = options or {}

    def confirm(self, question: str) -> bool | None:
        self.asked.append(question)
        return True

    def choose(self, choice: Choice) -> str | None:
        return self._options.get(choice.id)


@pytest.fixture(scope="session")
def _demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("demo") / "home")


@pytest.fixture
def home(_demo: Path, tmp_path: Path) -> Path:
    """A damaged home of one's own."""
    target = tmp_path / "home"
    shutil.copytree(_demo, target, copy_function=shutil.copy2)
    return target


def run(
    text: str,
    home: Path,
    *given: str,
    operator: Any = None,
    answers: Sequence[Answer] = (),
    **options: Any,
) -> PlaybookRun:
    """Run the playbook ``text`` on a home."""
    read = source.parse(text.encode(), "test.yaml")
    values = inputs.parse([f"home={home}", *given], read)
    return run_playbook(read, values, operator or Nobody(), answers=answers, **options)


def states(done: PlaybookRun) -> dict[str, str]:
    """How each step ended."""
    return {step.id: step.state.value for step in done.steps}


def passed(done: PlaybookRun) -> bool:
    """Whether every step did."""
    return {step.state for step in done.steps} == {StepState.PASSED}
