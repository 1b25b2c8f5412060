"""A repair plan: ordered row operations as data, with what they change, why, and from which evidence.

A plan is bound to one store and is reviewed as a file. ``safe`` steps are in by default. A ``choice`` lists
every candidate, and nothing of it happens until the operator writes the id of an option into ``chosen``. A
``destructive`` step exists only in cleanup plans.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

import msgspec

from statemend.errors import Undetermined, UsageError
from statemend.repair.cells import Cell

SCHEMA: Final = "statemend/plan/v1"


class StepClass(StrEnum):
    """How far a step may go without a decision."""

    SAFE = "safe"
    CHOICE = "choice"
    DESTRUCTIVE = "destructive"


class Kind(StrEnum):
    """What an operation does to its row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class Operation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One change of one row.

    ``key`` names the row by its primary key. ``before`` holds the columns that the operation relies on as
    they were (for an update, at least those it sets; for a delete, all), and ``before_digest`` is the digest
    of the whole row (``cells.row_digest``). ``after`` holds the columns set; for an insert, all that are not
    default. ``texts`` are columns of a new message whose text stays out of the plan: the digest of each
    (``cells.value_digest``), by which it is found again in the artifacts beside the store.
    """

    kind: Kind
    table: str
    key: dict[str, Cell] = {}
    before: dict[str, Cell] = {}
    before_digest: str | None = None
    after: dict[str, Cell] = {}
    texts: dict[str, str] | msgspec.UnsetType = msgspec.UNSET

    @property
    def withheld(self) -> dict[str, str]:
        """The columns whose text is not in the plan, with its digest."""
        return {} if self.texts is msgspec.UNSET else self.texts


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a value comes from. ``origin`` says in words what was read (``earliest message``, ``agent.log``);
    ``locator`` names the place within (a row, a line), ``digest`` is of the file where there is one. A value
    that was made up says ``made up`` and why."""

    column: str
    origin: str
    artifact: str | None = None
    locator: str | None = None
    digest: str | None = None


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One recipe's answer to one finding: all of its operations happen, or none. ``reindex`` names the search
    indexes that fit the messages only when they are built anew; that happens once, however many steps name
    them. ``sessions`` are those whose rows the step changes; every other session stays as it is. ``finding``
    is gone afterwards."""

    id: str
    recipe: str
    finding: str
    step_class: StepClass = msgspec.field(name="class")
    title: str
    why: str
    operations: tuple[Operation, ...]
    reindex: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()


class Option(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One candidate of a choice, with its evidence. ``steps`` may be empty: leave things as they are."""

    id: str
    title: str
    evidence: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A decision that evidence does not make. ``chosen`` is ``null`` until the operator writes the id of an
    option."""

    id: str
    finding: str
    question: str
    options: tuple[Option, ...]
    chosen: str | None = None


class Planned(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A finding that the plan serves."""

    id: str
    rule: str
    summary: str


class Left(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A finding that the plan does not serve, and why."""

    id: str
    rule: str
    reason: str


class StoreIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which store a plan is for. ``path`` is absolute. ``schema_digest`` is of the SQL of every table, index,
    trigger and view; ``instance`` is the id that newer releases give a store. Neither file time nor change
    counter is part of it: a plan goes stale when the rows it touches change, and not before."""

    path: str
    schema_digest: str
    instance: str | None = None


class Work(msgspec.Struct, frozen=True):
    """What steps do, in the order in which it happens: the ``rows`` of every table but messages, then each of
    ``indexes`` built anew, once, then rows of ``messages``, whose triggers need search indexes that fit."""

    rows: tuple[Operation, ...]
    indexes: tuple[str, ...]
    messages: tuple[Operation, ...]

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Every change of a row, in order."""
        return (*self.rows, *self.messages)


def work_of(steps: Iterable[Step]) -> Work:
    """The work of several steps together."""
    rows: list[Operation] = []
    messages: list[Operation] = []
    indexes: dict[str, None] = {}
    for step in steps:
        for operation in step.operations:
            (messages if operation.table == "messages" else rows).append(operation)
        indexes.update(dict.fromkeys(step.reindex))
    return Work(tuple(rows), tuple(indexes), tuple(messages))


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole plan. ``exports`` are the folders that were looked at beside the home, and ``deep`` is whether
    the whole file was checked, search indexes included: every later look at the store looks the same way."""

    schema: Literal["statemend/plan/v1"] = SCHEMA
    id: str
    made_at: str
    tool: str
    home: str
    store: StoreIdentity
    exports: tuple[str, ...] = ()
    deep: bool = False
    findings: tuple[Planned, ...] = ()
    steps: tuple[Step, ...] = ()
    choices: tuple[Choice, ...] = ()
    left: tuple[Left, ...] = ()

    def selected(self) -> tuple[Step, ...]:
        """The steps that happen: those in the plan, then those of each chosen option, in order."""
        chosen: list[Step] = []
        for choice in self.choices:
            if choice.chosen is not None:
                chosen += next(option.steps for option in choice.options if option.id == choice.chosen)
        return (*self.steps, *chosen)

    def work(self) -> Work:
        """What carrying the plan out does."""
        return work_of(self.selected())

    @property
    def digest(self) -> str:
        """sha256 (hex) of the plan as it will be carried out, choices included."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()


def dump(plan: Plan) -> bytes:
    """The plan as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


def load(path: Path) -> Plan:
    """Read a plan file. Raises ``UsageError`` for a file that is no plan, ``Undetermined`` for one that
    cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Undetermined(f"{path}: {error.strerror}; name a plan that `statemend plan` wrote") from error
    try:
        plan = msgspec.json.decode(data, type=Plan)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not a plan ({error}); make one with `statemend plan`") from error
    _check(plan, path)
    return plan


def _check(plan: Plan, path: Path) -> None:
    ids = [step.id for step in plan.steps]
    for choice in plan.choices:
        options = [option.id for option in choice.options]
        if choice.chosen is not None and choice.chosen not in options:
            raise UsageError(
                f"{path}: {choice.id} has no option {choice.chosen!r}; "
                f"write one of {', '.join(options)}, or null"
            )
        ids += [step.id for option in choice.options for step in option.steps]
    twice = {one for one in ids if ids.count(one) > 1}
    if twice:
        raise UsageError(f"{path}: the step {sorted(twice)[0]} is there twice; make the plan anew")
