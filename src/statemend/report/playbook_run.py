"""What a run of a playbook yields: one result for each step, and the run as ``run.json`` keeps it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

SCHEMA: Final = "statemend/playbook-run/v1"


class StepState(StrEnum):
    """How a step ended."""

    PASSED = "passed"
    FAILED = "failed"
    REFUSED = "refused"  # it could be done, and is not, to keep data safe
    SKIPPED = "skipped"  # a step that it needs did not pass
    WAITING = "waiting"  # for an answer of the operator
    PLANNED = "planned"  # a dry run: it would run


#: A step that needs one in such a state may run.
PASSING: Final = frozenset({StepState.PASSED, StepState.PLANNED})

Fact = str | int | float | bool | None


class StepFile(msgspec.Struct, frozen=True):
    """A file that a step made: its path within the run's folder, and what is in it."""

    path: str
    sha256: str
    size: int


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one step ended. ``summary`` is one sentence, ``facts`` what was measured, ``files`` everything that
    the step left. ``folder`` is the step's own, within the run's. Times are epoch seconds."""

    id: str
    kind: str
    title: str | None = None
    state: StepState
    exit_code: int
    summary: str
    facts: dict[str, Fact] = {}
    folder: str = ""
    files: tuple[StepFile, ...] = ()
    started_at: float
    finished_at: float


class RunState(StrEnum):
    """Where a run stands."""

    RUNNING = "running"  # or broken off
    WAITING = "waiting"
    FINISHED = "finished"


class PlaybookRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a playbook on one home. ``key`` tells runs of the same playbook, home and inputs;
    ``folder`` is empty for a dry run. ``exit_code`` is the worst of the steps'."""

    schema: Literal["statemend/playbook-run/v1"] = SCHEMA
    folder: str
    playbook: str
    title: str
    home: str
    key: str
    inputs: dict[str, Any]
    state: RunState
    exit_code: int
    steps: tuple[StepResult, ...] = ()
    notes: tuple[str, ...] = ()
    started_at: float
    finished_at: float | None = None
