"""A run of a playbook at a terminal."""

from __future__ import annotations

import pytest

from statemend.report import blocks, playbook_table
from statemend.report.playbook_run import PlaybookRun, RunState, StepResult, StepState

FOLDER = "/srv/hermes.statemend/playbooks/20261130T110312Z-lineage-review"
ASKED = f"6 choices without an answer: fill in a copy of {FOLDER}/steps/04-choose/choices.yaml"


def run(*steps: StepResult, state: RunState = RunState.FINISHED) -> PlaybookRun:
    return PlaybookRun(
        folder=FOLDER,
        playbook="lineage-review",
        title="Ambiguous lineage",
        home="/srv/hermes",
        key="k",
        inputs={},
        state=state,
        exit_code=max(step.exit_code for step in steps),
        steps=steps,
        started_at=0.0,
    )


def step(state: StepState, summary: str, code: int = 0) -> StepResult:
    return StepResult(
        id="hidden-continuations",
        kind="choose",
        title="Decide",
        state=state,
        exit_code=code,
        summary=summary,
        started_at=0.0,
        finished_at=1.0,
    )


@pytest.mark.parametrize("width", [40, 80, 100])
def test_what_a_run_waits_for_is_told_in_one_line_with_the_path_whole(width: int) -> None:
    told = run(step(StepState.PASSED, "4 steps"), step(StepState.WAITING, ASKED, 4), state=RunState.WAITING)
    lines = blocks.plain(playbook_table.of_run(told), width).splitlines()
    assert f"It waits: {ASKED}" in lines
    assert lines[-1] == f"Everything about it: {FOLDER}"
    assert sum("fill in a copy" in line for line in lines) == 1, "said once"
    assert any("? waiting" in line for line in lines)


@pytest.mark.parametrize("width", [40, 80, 100])
def test_every_step_says_its_whole_sentence(width: int) -> None:
    sentence = "no row, as expected, of sessions that an upgrade would hide"
    shown = blocks.plain(playbook_table.of_run(run(step(StepState.FAILED, sentence, 1))), width)
    assert all(word in shown.split() for word in sentence.split())
    assert "✗ failed" in shown
    assert "Not every step passed." in shown
