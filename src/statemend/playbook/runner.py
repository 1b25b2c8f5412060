"""Runs a playbook on a home, once, so that a run that broke off goes on where it was.

A step is finished when its result is on the disk; it is not repeated then, and its files are held against
their digests. One that broke off is run again in a new folder. What the step itself does is safe to do again:
a repair that was committed is found and completed, an export is proved anew, a cleanup is continued.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from statemend.errors import Refused, StatemendError, Undetermined, UsageError
from statemend.evidence.inventory import find_home
from statemend.playbook import check, variables
from statemend.playbook.env import Env, NoAnswer, Operator, Outcome, Progress, failed
from statemend.playbook.folder import PlaybookFolder, base_of, default_folder, known_runs
from statemend.playbook.model import HOME, Answer, Playbook, Step
from statemend.playbook.source import Source
from statemend.playbook.steps import perform
from statemend.repair.journal import Hook, Journal
from statemend.repair.lock import hold
from statemend.report.playbook_run import PASSING, PlaybookRun, RunState, StepResult, StepState
from statemend.store import durable
from statemend.store.copies import private_folder

_LOCK = "playbook.lock"

Tell = Callable[[StepResult], None]


def run_playbook(
    source: Source,
    inputs: Mapping[str, object],
    operator: Operator,
    *,
    answers: Sequence[Answer] = (),
    run_dir: Path | None = None,
    new: bool = False,
    dry_run: bool = False,
    now: float | None = None,
    tell: Tell | None = None,
    progress: Progress | None = None,
    hook: Hook | None = None,
) -> PlaybookRun:
    """Run a playbook with typed ``inputs``, or go on with a run of it that broke off or waits.

    ``answers`` are those of a choices file. Everything is kept in ``run_dir``, by default a new folder beside
    the home; ``new`` begins anew whatever is there. ``dry_run`` writes nothing but temporary files: what only
    reads is done, what would change or write something is told. ``tell`` gets the result of each step when it
    is finished, ``hook`` the name of each moment that is journalled. ``now`` is epoch seconds.

    Raises ``UsageError`` for a playbook or an input that is wrong, before anything is done, ``Refused`` (and
    ``StoreHeld``) when another run on the home is going on or this one cannot be continued, ``Undetermined``
    when its record cannot be kept: the run goes on when it is asked for again. What a step meets is in its
    result.
    """
    playbook = check.check(source)
    named = _named(source, inputs)
    home = find_home(named)
    at = time.time() if now is None else now
    _check_names(os.path.realpath(home.store), os.path.abspath(run_dir or ""), *inputs.values())
    key = _key(source, home.store, inputs)
    given = dict(inputs)
    with ExitStack() as stack:
        if dry_run:
            base, found = stack.enter_context(private_folder()) / "run", None
        else:
            stack.enter_context(_only_run(Path(home.root)))
            base, found = None, None if new else _continued(Path(home.root), run_dir, key)
        begun = None if found is None else found.load()
        started = at if begun is None else begun.started_at
        shown = found.path if found else run_dir or default_folder(Path(home.root), playbook.name, at)
        resolved = check.resolve(source, inputs, _about(playbook, shown, started))
        folder = found or PlaybookFolder.create(base or shown, playbook=source.text.encode(), inputs=given)
        run = PlaybookRun(
            folder="" if dry_run else str(folder.path),
            playbook=playbook.name,
            title=playbook.title,
            home=str(home.root),
            key=key,
            inputs=given,
            state=RunState.RUNNING,
            exit_code=0,
            notes=() if begun is None else ("goes on with a run that was not finished",),
            started_at=started,
        )
        stack.enter_context(_kept_in(folder))
        folder.save(run)
        _keep_resolved(folder, resolved)
        folder.journal = Journal(folder.journal_file, hook)
        folder.journal.step("begun" if begun is None else "continued", playbook=playbook.name)
        return _Running(
            run=run,
            playbook=resolved,
            folder=folder,
            home=named,
            inputs=given,
            operator=operator,
            answers=answers,
            dry=dry_run,
            tell=tell,
            progress=progress,
            hook=hook,
        ).go()


class _Running(msgspec.Struct, kw_only=True):
    """One run in progress."""

    run: PlaybookRun
    playbook: Playbook
    folder: PlaybookFolder
    home: Path
    inputs: dict[str, Any]
    operator: Operator
    answers: Sequence[Answer]
    dry: bool
    tell: Tell | None
    progress: Progress | None
    hook: Hook | None
    results: dict[str, StepResult] = {}

    def go(self) -> PlaybookRun:
        for number, step in enumerate(self.playbook.steps):
            result = self.folder.finished(number + 1, step.name) or self._step(number, step)
            self.results[step.name] = result
            if self.tell is not None:
                self.tell(result)
            self._save(RunState.RUNNING)
            if result.state is StepState.WAITING:
                return self._end(RunState.WAITING)
        return self._end(RunState.FINISHED)

    def _step(self, number: int, step: Step) -> StepResult:
        began = time.time()
        lacking = self._lacking(number, step)
        if lacking is not None:
            return self._result(
                step, Outcome(state=StepState.SKIPPED, summary=f"{lacking} did not pass"), began
            )
        earlier = self.folder.attempts(number + 1, step.name)
        place = self.folder.new_attempt(number + 1, step.name)
        self.folder.journal.step("step begun", step=step.name, kind=step.kind)
        if self.progress is not None:
            self.progress(f"{step.name}: {step.title or step.kind}")
        env = Env(
            playbook=self.playbook,
            number=number,
            home=self.home,
            inputs=self.inputs,
            folder=self.folder,
            place=place,
            earlier=earlier,
            results=self.results,
            operator=self.operator,
            answers=self.answers,
            dry=self.dry,
            progress=self.progress,
            hook=self.hook,
        )
        outcome = _outcome(step, env)
        result = self._result(step, outcome, began)
        if outcome.state is StepState.WAITING:
            self.folder.journal.step("waiting", step=step.name)
            return msgspec.structs.replace(result, folder=place.relative_to(self.folder.path).as_posix())
        kept = self.folder.finish(place, result, besides=outcome.besides)
        self.folder.journal.step("step finished", step=step.name, state=kept.state.value)
        return kept

    def _lacking(self, number: int, step: Step) -> str | None:
        """The first step that this one needs and that did not pass."""
        needs = step.needs
        if needs is None:
            needs = (self.playbook.steps[number - 1].name,) if number else ()
        return next((need for need in needs if self.results[need].state not in PASSING), None)

    def _result(self, step: Step, outcome: Outcome, began: float) -> StepResult:
        return StepResult(
            id=step.name,
            kind=step.kind,
            title=step.title,
            state=outcome.state,
            exit_code=outcome.exit_code,
            summary=" ".join(outcome.summary.split()),
            facts=outcome.facts,
            started_at=began,
            finished_at=time.time(),
        )

    def _save(self, state: RunState) -> PlaybookRun:
        results = tuple(self.results.values())
        self.run = self.folder.save(
            msgspec.structs.replace(
                self.run,
                state=state,
                steps=results,
                exit_code=max((result.exit_code for result in results), default=0),
                finished_at=None if state is RunState.RUNNING else time.time(),
            )
        )
        return self.run

    def _end(self, state: RunState) -> PlaybookRun:
        self.folder.journal.step(state.value)
        run = self._save(state)
        self.folder.seal()
        return run


def _named(source: Source, inputs: Mapping[str, object]) -> Path:
    """The home, or the store, that the playbook is to work on."""
    path = variables.render(source.data.get("home", HOME), dict(inputs))
    try:
        return Path(check.absolute("" if path is None else str(path)))
    except ValueError as error:
        raise source.error(source.place("$.home"), f"`home` {error}") from error


def _outcome(step: Step, env: Env) -> Outcome:
    try:
        return perform(step, env)
    except NoAnswer as error:
        return Outcome(state=StepState.WAITING, exit_code=Refused.exit_code, summary=str(error))
    except StatemendError as error:
        return failed(error)
    except OSError as error:
        place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        return failed(Undetermined(f"{place}{error.strerror or error}"))


def _continued(home: Path, run_dir: Path | None, key: str) -> PlaybookFolder | None:
    """The run to go on with. Raises ``Refused`` when ``run_dir`` holds another, or a finished one."""
    if run_dir is not None:
        folder = PlaybookFolder(run_dir)
        if not os.path.lexists(run_dir) or folder.begun:
            return None
        run = folder.load()
        if run.key != key or run.state is RunState.FINISHED:
            why = "is finished" if run.key == key else "is of another playbook, home or inputs"
            raise Refused(f"{run_dir}: the run in it {why}; name a folder that is not there")
        return folder
    for folder, run in known_runs(home):
        if run.key == key:
            return None if run.state is RunState.FINISHED else folder
    return None


def _only_run(home: Path) -> Any:
    base = base_of(home)
    try:
        base.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Undetermined(
            f"{base}: cannot be made ({error.strerror}); what is known of a home is kept there"
        ) from error
    return hold(base / _LOCK, "another playbook on this home")


@contextmanager
def _kept_in(folder: PlaybookFolder) -> Iterator[None]:
    """Tell of a disk that is full or gone. What a step meets is in its result; this is the record of it."""
    try:
        yield
    except BrokenPipeError:  # whoever reads the output is gone, which says nothing of the disk
        raise
    except OSError as error:
        raise Undetermined(
            f"{folder.path}: the run's record cannot be kept ({error.strerror or error}); "
            "see to that, and the same command goes on"
        ) from error


def _check_names(*names: object) -> None:
    """A run is told as JSON, which holds no other text than valid UTF-8."""
    for name in names:
        try:
            msgspec.json.encode(name)
        except UnicodeEncodeError as error:
            raise UsageError(
                f"{name}: not valid UTF-8, so no run can hold it; give it another name"
            ) from error


def _key(source: Source, store: str, inputs: Mapping[str, object]) -> str:
    parts = (source.text, os.path.realpath(store), dict(sorted(inputs.items())))
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _about(playbook: Playbook, folder: Path, started: float) -> dict[str, str]:
    return {
        "name": playbook.name,
        "folder": str(folder),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
    }


def _keep_resolved(folder: PlaybookFolder, playbook: Playbook) -> None:
    """Keep the playbook as it will run. A run that is continued must be the same."""
    written = msgspec.json.format(msgspec.json.encode(playbook), indent=2) + b"\n"
    if not folder.resolved.exists():
        durable.replace(folder.resolved, written)
    elif folder.resolved.read_bytes() != written:
        raise Refused(
            f"{folder.resolved}: this playbook now reads otherwise than when the run began; say --new"
        )
