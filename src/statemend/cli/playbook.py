"""``statemend playbook``: run what is written down."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from statemend.cli.output import only_help
from statemend.errors import StatemendError

if TYPE_CHECKING:
    from statemend.cli.terminal import Progress
    from statemend.repair.plan import Choice
    from statemend.report.playbook_run import StepResult

HELP = """Run what is written down: audits, repairs, exports and cleanups as one reviewed file.

`list` names the playbooks that come with statemend, `show` prints one, `check` reads one without running it,
`run` runs it. A playbook of your own is a YAML file; begin with one that is shipped.

\b
Examples:
  statemend playbook list
  statemend playbook show weekly-audit > mine.yaml
  statemend playbook check mine.yaml
  statemend playbook run mine.yaml --set home=~/.hermes
"""

RUN_HELP = """Run a playbook on a home. NAME is one that comes with statemend, or a file.

Each step runs when the steps that it needs have passed. A step that changes the store asks first, unless
--yes is said; unattended without --yes, the run waits there, and the same command goes on from there. It goes
on in the same way after a crash or Ctrl-C: steps that are finished are not repeated. --new begins anew.

Everything about a run is kept in a folder beside the home (HOME.statemend/playbooks/…), or in the one that
--run-dir names: the playbook, the inputs, findings before and after, plan, snapshot, undo record, reports and
checksums. It may hold your messages: keep it as safe as the home. `statemend bundle` packs it without them.

--dry-run reads and tells, and writes nothing. --format jsonl prints one JSON line for each step.

Exit codes, the worst of the steps wins: 0 done, 1 a check or scan failed, 2 the request itself is wrong,
3 something could not be determined, 4 refused, kept or waiting, 5 taken back, 6 committed but not as
promised.

\b
Examples:
  statemend playbook run weekly-audit --set home=~/.hermes
  statemend playbook run append-failures --set home=~/.hermes --dry-run
  statemend playbook run append-failures --set home=~/.hermes --yes
  statemend playbook run lineage-review --set home=~/.hermes --choices choices.yaml --yes
"""

LIST_HELP = """List the playbooks that come with statemend.

\b
Example:
  statemend playbook list
"""

SHOW_HELP = """Print a playbook, to read it or to make your own of it.

\b
Example:
  statemend playbook show weekly-audit > mine.yaml
"""

CHECK_HELP = """Check a playbook without running it: every mistake with its line and column.

Exit codes: 0 it can be run, 2 it cannot.

\b
Example:
  statemend playbook check mine.yaml
"""


class InterruptedPlaybookError(StatemendError):
    """A run was interrupted; what was finished is kept."""

    exit_code: ClassVar[int] = 130

    def __init__(self) -> None:
        super().__init__("interrupted; the same command goes on where it was")


class Format(StrEnum):
    """How a run is shown."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    group = typer.Typer(help=HELP, callback=only_help, invoke_without_command=True, rich_markup_mode=None)
    group.command("run", help=RUN_HELP, short_help="Run a playbook.")(run)
    group.command("list", help=LIST_HELP, short_help="List the playbooks that come along.")(list_)
    group.command("show", help=SHOW_HELP, short_help="Print a playbook.")(show)
    group.command("check", help=CHECK_HELP, short_help="Check a playbook without running it.")(check)
    app.add_typer(group, name="playbook", short_help="Run audits and repairs that are written down.")


def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A playbook that comes along, or a file.")],
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An input of the playbook. Repeatable."),
    ] = None,
    choices: Annotated[
        Path | None,
        typer.Option("--choices", metavar="FILE", readable=False, help="Answers to the plan's choices."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Say yes to every step that changes the store, and to pauses.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what it would do; write nothing.")] = False,
    run_dir: Annotated[
        Path | None, typer.Option("--run-dir", metavar="DIR", help="The folder of the run.")
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Begin anew, although a run of it was not finished.")
    ] = False,
    format_: Annotated[Format, typer.Option("--format", help="How to show the run.")] = Format.TABLE,
) -> int:
    """Run, show each step, and return the worst exit code."""
    from statemend.cli import output as out
    from statemend.cli import terminal
    from statemend.cli.profiles import say_alone
    from statemend.evidence.inventory import find_home
    from statemend.playbook import choices as choices_file
    from statemend.playbook import inputs, shipped
    from statemend.playbook.runner import run_playbook

    found = shipped.find(name)
    values = inputs.parse(given or (), found)
    answers = () if choices is None else choices_file.load(choices)
    if run_dir is not None and isinstance(named := values.get("home"), str):
        home = find_home(Path(named))
        out.check_run_folder(run_dir, Path(home.root), Path(home.store))

    def tell(result: StepResult) -> None:
        if format_ is Format.JSONL:
            from statemend.report.json import line

            out.emit(line(result))

    try:
        with terminal.progress() as progress:
            done = run_playbook(
                found,
                values,
                _Terminal(progress, yes=yes),
                answers=answers,
                run_dir=run_dir,
                new=new,
                dry_run=dry_run,
                tell=tell,
                progress=progress,
            )
    except KeyboardInterrupt as error:
        raise InterruptedPlaybookError from error
    if format_ is Format.JSON:
        from statemend.report.json import dump

        out.emit(dump(done))
    elif format_ is Format.TABLE:
        from statemend.report.playbook_table import of_run

        terminal.show(of_run(done))
    say_alone(Path(done.home))
    return done.exit_code


def list_() -> None:
    """Each name with its title."""
    from statemend.cli.output import emit
    from statemend.playbook import check as checking
    from statemend.playbook import shipped

    for name in shipped.names():
        emit(f"{name:20} {checking.check(shipped.find(name)).title}\n")


def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A playbook that comes along, or a file.")],
) -> None:
    """The text as it is."""
    from statemend.cli.output import emit
    from statemend.playbook import shipped
    from statemend.report.text import visible

    emit(visible(shipped.find(name).text, lines=True))


def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A playbook that comes along, or a file.")],
) -> int:
    """Every problem in a line of its own."""
    from statemend.cli.output import complain, emit
    from statemend.errors import UsageError
    from statemend.playbook import check as checking
    from statemend.playbook import shipped
    from statemend.report.text import visible

    found = shipped.find(name)
    problems = checking.problems(found)
    for problem in problems:
        complain(f"{found.name}:{problem.line}:{problem.column}: {problem.text}", UsageError.exit_code)
    if problems:
        return UsageError.exit_code
    playbook = checking.check(found)
    emit(visible(f"{playbook.name}: {len(playbook.steps)} steps, nothing wrong") + "\n")
    return 0


class _Terminal:
    """The operator at a terminal, or nobody."""

    def __init__(self, progress: Progress | None, *, yes: bool) -> None:
        self._progress = progress
        self._yes = yes

    def confirm(self, question: str) -> bool | None:
        if self._yes:
            return True
        if not _attended():
            return None
        from statemend.report.text import visible

        with self._asking():
            return typer.confirm(visible(question), err=True)

    def choose(self, choice: Choice) -> str | None:
        if not _attended():
            return None
        from statemend.report.text import visible

        with self._asking():
            typer.echo(visible(choice.question), err=True)
            for number, option in enumerate(choice.options, start=1):
                typer.echo(visible(f"  {number}. {option.title}"), err=True)
                for fact in option.evidence:
                    typer.echo(visible(f"     {fact}"), err=True)
            number = 0
            while not 1 <= number <= len(choice.options):
                number = typer.prompt(f"Which (1 to {len(choice.options)})", type=int, err=True)
        return choice.options[number - 1].id

    def _asking(self) -> AbstractContextManager[None]:
        return nullcontext() if self._progress is None else self._progress.paused()


def _attended() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
