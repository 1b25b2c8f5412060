"""A playbook as data: the contract ``statemend/playbook/v1``.

The text of a playbook becomes these values in two steps: first every template in it is filled with the
inputs, then the result is converted, strictly. What a field means is said here once; the schema and the
reference in ``docs/`` are made from it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from statemend.audit.outcome import FailOn
from statemend.repair.export_result import Format
from statemend.store.history import View

SCHEMA: Final = "statemend/playbook/v1"
#: The template of the home where a playbook has none.
HOME: Final = "{{ home }}"
#: The baseline that is no file: the report of the last finished run.
LAST: Final = "last"

Identifier = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][a-z0-9_-]{0,39}\Z",
        description="Lower-case letters, digits, `-` and `_`, beginning with a letter.",
    ),
]
Line = Annotated[str, Meta(min_length=1, max_length=200)]
Prose = Annotated[str, Meta(min_length=1, max_length=4000)]
Days = Annotated[float, Meta(ge=0, le=36500)]


class InputType(StrEnum):
    """What kind of value an input takes."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    PATH = "path"
    PATHS = "paths"


class Input(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One value that whoever runs the playbook gives with `--set name=value`. It is required unless it has a
    default. `values` lists the only ones that are accepted."""

    type: Annotated[InputType, Meta(description="What kind of value it takes.")]
    help: Annotated[Line, Meta(description="One line for whoever has to give the value.")]
    default: Annotated[
        Any,
        Meta(
            description="The value if none is given. Without it the input is required; `null` is a value too."
        ),
    ] = msgspec.UNSET
    values: Annotated[
        tuple[str, ...], Meta(description="The only values that are accepted, for an input of type text.")
    ] = ()


class ReportFormat(StrEnum):
    """A form in which a report is written."""

    JSON = "json"
    HTML = "html"
    MD = "md"
    SARIF = "sarif"
    JUNIT = "junit"
    JSONL = "jsonl"
    SUMMARY = "summary"


#: The forms in which a story is told.
TOLD: Final = frozenset({ReportFormat.HTML, ReportFormat.JSON, ReportFormat.MD})


class Expect(StrEnum):
    """What a check expects of its query: no row, at least one row, or this one value."""

    EMPTY = "empty"
    ROWS = "rows"
    VALUE = "value"


class _Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="do"):
    """What every step has.

    ``id`` names the step, by default as its kind. ``needs`` are the steps that must have passed before it
    runs: by default the one before it.
    """

    id: Annotated[
        Identifier | None,
        Meta(description="Names the step within the playbook. By default the kind of the step."),
    ] = None
    title: Annotated[Line | None, Meta(description="One line that is shown while the step runs.")] = None
    needs: Annotated[
        tuple[Identifier, ...] | None,
        Meta(
            description="The steps that must have passed before this one runs. By default the one before it."
        ),
    ] = None

    #: Whether the step changes the store.
    changes: ClassVar[bool] = False

    @property
    def kind(self) -> str:
        """The step's kind, as the playbook writes it."""
        return str(self.__struct_config__.tag)

    @property
    def name(self) -> str:
        """The step's id."""
        return self.id or self.kind


class Scan(_Step, frozen=True, kw_only=True, tag="scan"):
    """Audits the home. Passes unless a finding has a verdict of `fail_on` or worse. Of a home with profiles
    that is its own store, as in every other step; a profile is worked on by naming its folder as the home.

    `exports` are folders with exports beside the home; those that this run wrote are looked at too.
    `baseline` names a report to compare with: an earlier scan of this run, a file, or `last`, the report of
    the last finished run of this playbook on this home (none yet is no failure). With one, only findings that
    are new can make it fail."""

    rules: Annotated[tuple[str, ...], Meta(description="Ids of the rules to run. By default all.")] = ()
    ignore: Annotated[
        tuple[str, ...],
        Meta(description="Rules to leave out, by id, name or family. The report shows them as ignored."),
    ] = ()
    exports: Annotated[tuple[str, ...], Meta(description="Folders with exports beside the home.")] = ()
    deep: Annotated[bool, Meta(description="Whether to check the whole file and the search indexes too.")] = (
        False
    )
    live: Annotated[bool, Meta(description="Whether to audit a copy if the store is in use.")] = False
    fail_on: Annotated[FailOn, Meta(description="The least bad verdict that makes the scan fail.")] = (
        FailOn.NEVER
    )
    baseline: Annotated[
        str | None, Meta(description="A report to compare with: a step, a file, or `last`.")
    ] = None


class Check(_Step, frozen=True, kw_only=True, tag="check"):
    """Asks the store one question, in SQL. Passes if the answer is as expected.

    `sql` is one SELECT. It sees the canonical tables of every release, and three tables of the scan before
    it: `findings`, `artifacts`, `coverage`. The inputs are bound as `:name`. It is stopped after `seconds`,
    and after `rows` rows."""

    sql: Annotated[Prose, Meta(description="One SELECT. An input is bound as `:name`.")]
    expect: Annotated[Expect, Meta(description="What the answer must be.")]
    value: Annotated[
        int | float | str | None, Meta(description="The one value that is expected, with `expect: value`.")
    ] = None
    message: Annotated[Line, Meta(description="What is said when the answer is not as expected.")]
    seconds: Annotated[
        Annotated[float, Meta(gt=0, le=600)], Meta(description="How long the question may take.")
    ] = 10.0
    rows: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)], Meta(description="How many rows are read at most.")
    ] = 1000


class Plan(_Step, frozen=True, kw_only=True, tag="plan"):
    """Plans the repair of what can be repaired. Nothing is changed. Passes also when there is nothing to
    do."""

    recipes: Annotated[
        tuple[str, ...], Meta(description="Names of the recipes to plan with. By default all.")
    ] = ()
    exports: Annotated[tuple[str, ...], Meta(description="Folders with exports beside the home.")] = ()
    restore: Annotated[
        tuple[str, ...], Meta(description="Ids of sessions that were deleted and are asked for again.")
    ] = ()
    deep: Annotated[bool, Meta(description="Whether to check the whole file and the search indexes too.")] = (
        False
    )


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One answer: the id of a choice, or of the finding it is about, and the id of an option. `skip` leaves
    the choice out on purpose."""

    choice: Annotated[Line, Meta(description="The id of a choice, or of the finding it is about.")]
    option: Annotated[Line | None, Meta(description="The id of the option to take.")] = None
    skip: Annotated[bool, Meta(description="Whether to leave the choice out on purpose.")] = False
    why: Annotated[Line | None, Meta(description="The reason, kept with the run.")] = None


class Choose(_Step, frozen=True, kw_only=True, tag="choose"):
    """Answers the choices that a plan leaves open: from `answers`, from the file that `--choices` names, or
    at a terminal. Passes when every choice has an answer; refused otherwise, never a default."""

    plan: Annotated[
        Identifier | None, Meta(description="The plan with the choices. By default the last one.")
    ] = None
    answers: Annotated[tuple[Answer, ...], Meta(description="Answers that are known beforehand.")] = ()


class Rehearse(_Step, frozen=True, kw_only=True, tag="rehearse"):
    """Carries the plan out on a private copy, audits it and undoes it there. Passes when all of it holds."""

    plan: Annotated[Identifier | None, Meta(description="The plan to rehearse. By default the last one.")] = (
        None
    )


class Apply(_Step, frozen=True, kw_only=True, tag="apply"):
    """Carries the plan out on the store. Needs `--yes`, or a yes at the terminal."""

    changes: ClassVar[bool] = True

    plan: Annotated[Identifier | None, Meta(description="The plan to apply. By default the last one.")] = None


class Verify(_Step, frozen=True, kw_only=True, tag="verify"):
    """Proves what a step did: an apply against the store's rows and a new audit, an export row by row against
    the store. `of` names the steps; by default every apply and export before it that is not yet verified."""

    of: Annotated[
        tuple[Identifier, ...] | None,
        Meta(
            description="Applies and exports to verify. By default each before it that is not yet verified."
        ),
    ] = None


class Export(_Step, frozen=True, kw_only=True, tag="export"):
    """Writes sessions again, whole, by proven exporters. Nothing in the store is changed.

    Exactly one of `sessions`, `at_risk` (archived turns that no file holds) and `older_than` (days since the
    session ended) selects them. Passes also when there is none. `into` is a folder, by default one in the
    run's."""

    sessions: Annotated[tuple[str, ...], Meta(description="Ids of the sessions to write.")] = ()
    at_risk: Annotated[
        bool, Meta(description="Whether to write the sessions with archived turns that no file holds.")
    ] = False
    older_than: Annotated[
        Days | None, Meta(description="Write the sessions that ended at least so many days ago.")
    ] = None
    exports: Annotated[tuple[str, ...], Meta(description="Folders with exports beside the home.")] = ()
    format: Annotated[Format, Meta(description="The format of the files.")] = Format.JSONL
    view: Annotated[
        View | None, Meta(description="Which messages to write. By default `raw` for jsonl, else `display`.")
    ] = None
    into: Annotated[
        str | None, Meta(description="The folder to write into. By default one in the run's own.")
    ] = None


class Snapshot(_Step, frozen=True, kw_only=True, tag="snapshot"):
    """Copies the store, verified, into the run's folder."""


class Report(_Step, frozen=True, kw_only=True, tag="report"):
    """Writes a report of a scan, or (`story`) of everything the run did and found, in order.

    `scan` names the scan; by default the last one. `only: changes` leaves out what the baseline of the scan
    already had."""

    scan: Annotated[Identifier | None, Meta(description="The scan to report. By default the last one.")] = (
        None
    )
    formats: Annotated[
        tuple[ReportFormat, ...], Meta(description="The forms in which the report is written.")
    ] = (ReportFormat.HTML,)
    only: Annotated[
        Literal["all", "changes"],
        Meta(description="Whether to leave out what the baseline of the scan already had."),
    ] = "all"
    story: Annotated[
        bool, Meta(description="Whether to tell everything that the run did and found, in order.")
    ] = False


class Cleanup(_Step, frozen=True, kw_only=True, tag="cleanup"):
    """Deletes sessions that a file preserves whole, in one fenced transaction. Cannot be reached without a
    passing `verify` of this very run. Needs `--yes`, or a yes at the terminal.

    Exactly one of `sessions` and `older_than` selects them. `artifacts` are folders with exports; by default
    those that this run wrote."""

    changes: ClassVar[bool] = True

    sessions: Annotated[tuple[str, ...], Meta(description="Ids of the sessions to delete.")] = ()
    older_than: Annotated[
        Days | None, Meta(description="Delete the sessions that ended at least so many days ago.")
    ] = None
    artifacts: Annotated[
        tuple[str, ...],
        Meta(
            description="Folders with the exports that preserve them. By default those that this run wrote."
        ),
    ] = ()


class Bundle(_Step, frozen=True, kw_only=True, tag="bundle"):
    """Packs everything that the run has made so far into one file, without the text of messages unless
    `with_content` says so. What is left out is listed in it."""

    with_content: Annotated[bool, Meta(description="Whether the text of messages goes in too.")] = False


class Pause(_Step, frozen=True, kw_only=True, tag="pause"):
    """Shows `message` and waits for a yes at the terminal. With `--yes` it goes on; unattended without it,
    the run stops here and goes on from here the next time."""

    message: Annotated[Prose, Meta(description="What is shown before it waits.")]


Step = (
    Scan
    | Check
    | Plan
    | Choose
    | Rehearse
    | Apply
    | Verify
    | Export
    | Snapshot
    | Report
    | Cleanup
    | Bundle
    | Pause
)


class Playbook(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One playbook. `home` is a template too; by default the input of that name."""

    schema: Annotated[
        Literal["statemend/playbook/v1"], Meta(description="The contract that the file follows.")
    ]
    name: Annotated[Identifier, Meta(description="The name by which it is run and its folders are called.")]
    title: Annotated[Line, Meta(description="What it does, in one line.")]
    purpose: Annotated[Prose, Meta(description="When to run it, and what it is good for.")]
    home: Annotated[str, Meta(description="The home to work on. By default the input `home`.")] = HOME
    inputs: Annotated[
        dict[Identifier, Input], Meta(description="The values that whoever runs it gives, by name.")
    ] = {}
    steps: Annotated[
        Annotated[tuple[Step, ...], Meta(min_length=1, max_length=100)],
        Meta(description="What is done, in order."),
    ]
