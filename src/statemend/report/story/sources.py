"""What a story is told from: reports, and the folders of repairs, cleanups, exports and playbooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from statemend.errors import StatemendError, UsageError
from statemend.repair import bounds, cleanup_plan, journal
from statemend.repair.cleanup_plan import CleanupPlan
from statemend.repair.export_result import Reexport
from statemend.repair.plan import Plan
from statemend.repair.receipt import Receipt
from statemend.repair.run import Run, RunFolder, State
from statemend.report.load import LARGEST_REPORT, decode, load_report, read_bounded
from statemend.report.model import Report
from statemend.report.playbook_run import PlaybookRun

T = TypeVar("T")

#: The states of a run that was committed, whatever came after.
CHANGED: Final = frozenset({State.APPLIED, State.FAILED, State.AFTER_COMMIT, State.CHANGED, State.UNDONE})
_WHAT = "a file of a run that statemend made"


class Decided(msgspec.Struct, frozen=True):
    """What an operator answered, as a playbook's run keeps it."""

    choice: str
    option: str | None = None
    skip: bool = False
    why: str | None = None


class Audited(msgspec.Struct, frozen=True):
    """A report, and the file it came from."""

    path: str
    report: Report


class Repaired(msgspec.Struct, frozen=True):
    """A repair: its plan, what became of it, and when each step was reached (epoch seconds)."""

    path: str
    plan: Plan
    run: Run
    steps: dict[str, float]

    @property
    def undone(self) -> bool:
        """Whether it was taken back afterwards."""
        return was_undone(self.steps)


class Cleaned(msgspec.Struct, frozen=True):
    """A cleanup. ``receipt`` is ``None`` when nothing was deleted."""

    path: str
    plan: CleanupPlan
    run: Run
    receipt: Receipt | None
    steps: dict[str, float]

    @property
    def undone(self) -> bool:
        """Whether it was taken back afterwards."""
        return was_undone(self.steps)


class Exported(msgspec.Struct, frozen=True):
    """Exports that a playbook wrote, when (epoch seconds)."""

    path: str
    done: Reexport
    at: float


class Played(msgspec.Struct, frozen=True):
    """A run of a playbook, and what was decided in it."""

    path: str
    run: PlaybookRun
    decided: tuple[Decided, ...]


Source = Audited | Repaired | Cleaned | Exported | Played


def of(sources: Iterable[Source], kind: type[T]) -> list[T]:
    """The sources of one kind, in order."""
    return [source for source in sources if isinstance(source, kind)]


def read(paths: Sequence[Path]) -> tuple[Source, ...]:
    """Everything that the files and folders ``paths`` hold, a playbook's run before its parts.

    Raises ``UsageError`` for a path that is neither a report nor a run, or cannot be understood.
    """
    return tuple(source for path in paths for source in _read(path))


def was_undone(steps: dict[str, float]) -> bool:
    """Whether the last that a journal tells of a change is that it was taken back."""
    return steps.get("undone", 0.0) > steps.get("committed", 0.0)


def _read(path: Path) -> Iterator[Source]:
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder; name a report or the folder of a run")
    if not path.is_dir():
        yield Audited(str(path), load_report(path))
        return
    folder = RunFolder(path)
    if (path / "cleanup.json").is_file():
        yield _cleaned(path, folder)
    elif folder.plan.is_file():
        yield _repaired(path, folder)
    elif folder.run.is_file():
        yield from _played(path)
    else:
        raise UsageError(f"{path}: not the folder of a run; name one that statemend made, or a report")


def _played(path: Path) -> Iterator[Source]:
    run = _load(path / "run.json", PlaybookRun)
    decided: list[Decided] = []
    parts: list[Source] = []
    for step in run.steps:
        place = path / step.folder
        if not step.folder or not place.is_dir():
            continue
        if step.kind == "choose" and (place / "decided.json").is_file():
            decided += _load(place / "decided.json", tuple[Decided, ...])
        elif step.kind == "scan" and (place / "report.json").is_file():
            parts.append(Audited(str(place / "report.json"), load_report(place / "report.json")))
        elif step.kind == "export" and (place / "export.json").is_file():
            done = _load(place / "export.json", Reexport)
            parts.append(Exported(str(place), done, step.finished_at))
        elif step.kind in ("apply", "cleanup"):
            named = step.facts.get("run")
            if isinstance(named, str) and (path / named).is_dir():
                parts += _read(path / named)
    yield Played(str(path), run, tuple(decided))
    yield from parts


def _repaired(path: Path, folder: RunFolder) -> Repaired:
    return Repaired(str(path), bounds.read(folder.plan), _run(path, folder), _steps(folder))


def _cleaned(path: Path, folder: RunFolder) -> Cleaned:
    receipt = path / "receipt.json"
    return Cleaned(
        str(path),
        cleanup_plan.load(path / "cleanup.json"),
        _run(path, folder),
        _load(receipt, Receipt) if receipt.is_file() else None,
        _steps(folder),
    )


def _run(path: Path, folder: RunFolder) -> Run:
    run = folder.load()
    if run is None:
        raise UsageError(f"{path}: the run did not come so far as to be told; see `statemend verify {path}`")
    return run


def _steps(folder: RunFolder) -> dict[str, float]:
    return {entry.step: entry.at for entry in journal.read(folder.journal)}


def _load(path: Path, kind: type[T]) -> T:
    try:
        return decode(read_bounded(path, LARGEST_REPORT, _WHAT), kind, path, _WHAT)
    except StatemendError as error:
        raise UsageError(str(error)) from error
