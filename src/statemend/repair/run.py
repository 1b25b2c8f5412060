"""A run: one plan carried out once, with the folder that tells everything about it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

import msgspec

from statemend.errors import Refused, Undetermined, UsageError
from statemend.repair import bounds
from statemend.repair.journal import Hook, Journal
from statemend.repair.plan import Plan, dump
from statemend.store import durable
from statemend.store.snapshot import Snapshot

SCHEMA: Final = "statemend/run/v1"
#: The folder, beside the home, that runs of playbooks go into.
PLAYBOOKS: Final = "playbooks"


class State(StrEnum):
    """What holds of a run, told from the rows of the store."""

    NOTHING = "nothing to do"
    NOT_APPLIED = "not applied"
    BEFORE_COMMIT = "interrupted before commit (store is old)"
    AFTER_COMMIT = "interrupted after commit"
    APPLIED = "applied and verified"
    FAILED = "applied, verification failed"
    UNDONE = "undone"
    CHANGED = "applied, and changed since"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run as ``run.json`` keeps it.

    ``advice`` says what to do next. ``digest_before`` and ``digest_after`` are of the whole store.
    ``served`` are the findings that the plan serves, ``remaining`` those of them that are still there,
    ``new`` the findings that were not there before, ``troubles`` why else it is not verified, ``notes`` what
    else there is to know. Times are epoch seconds; ``locked_seconds`` is how long the change kept other
    writers of the store waiting. ``folder`` is empty for what needed no run.
    """

    schema: Literal["statemend/run/v1"] = SCHEMA
    folder: str
    plan_id: str
    plan_digest: str
    state: State
    advice: str
    store: str
    snapshot: Snapshot | None = None
    digest_before: str | None = None
    digest_after: str | None = None
    served: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    started_at: float
    finished_at: float | None = None
    locked_seconds: float | None = None


@contextmanager
def making(path: Path) -> Iterator[None]:
    """Within the block the folder of a new run is made. Raises ``Refused`` where something is there already,
    ``Undetermined`` where it cannot be made."""
    try:
        durable.make_folders(path.parent)
        yield
    except OSError as error:
        if isinstance(error, FileExistsError) and os.path.lexists(path):
            raise Refused(f"{path}: is there already; name a folder that is not, for this run") from error
        raise Undetermined(
            f"{path}: the run's folder cannot be made ({error.strerror}); name another with --run-dir"
        ) from error


class RunFolder:
    """The files of a run. Every one is written once, for this user alone, but for ``run.json`` and the
    journal."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan = path / "plan.json"
        self.snapshot = path / "snapshot.db"
        self.changeset = path / "undo.changeset"
        self.undo = path / "undo.json"
        self.journal = path / "journal.jsonl"
        self.before = path / "before.json"
        self.after = path / "after.json"
        self.run = path / "run.json"

    @classmethod
    def create(cls, path: Path, plan: Plan) -> RunFolder:
        """Make the folder of a new run, with its plan. Raises ``Refused`` where something is there already,
        ``Undetermined`` where it cannot be made."""
        folder = cls(path)
        with making(path):
            path.mkdir(mode=0o700)
            durable.sync_folder(path.parent)
            durable.replace(folder.plan, dump(plan))
        return folder

    def log(self, steps: Hook | None = None) -> Journal:
        """The journal, for appending."""
        return Journal(self.journal, steps)

    def load_plan(self) -> Plan:
        """The plan of the run. Raises ``UsageError`` when this is not the folder of a run."""
        with _reading(self.path):
            is_run = self.plan.is_file()
        if not is_run:
            raise UsageError(f"{self.path}: not the folder of a run; name one that `statemend apply` made")
        return bounds.read(self.plan)

    def load(self) -> Run | None:
        """What ``run.json`` says, ``None`` when the run did not come so far or it cannot be understood."""
        try:
            return msgspec.json.decode(self.run.read_bytes(), type=Run)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        except OSError as error:
            raise Undetermined(f"{self.run}: cannot be read ({error.strerror})") from error

    def save(self, run: Run) -> Run:
        """Write ``run.json``. Raises ``Undetermined`` when it cannot be written."""
        self.keep(self.run, msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n")
        return run

    def keep(self, path: Path, data: bytes) -> None:
        """Write one of the files of the run, in place of the one there. Raises ``Undetermined`` when it
        cannot be written."""
        try:
            durable.replace(path, data)
        except OSError as error:
            raise Undetermined(f"{path}: cannot be written ({error.strerror})") from error


def default_base(plan: Plan) -> Path:
    """Where the runs of a plan's store go: beside its home, since a home may be deleted or copied whole."""
    home = Path(os.path.abspath(plan.store.path)).parent
    return home.with_name(home.name + ".statemend")


def default_folder(plan: Plan, now: float) -> Path:
    """The folder of a run that begins now (epoch seconds). The id of a plan from outside may be anything."""
    named = "".join(filter(str.isalnum, plan.id))[:8]
    return default_base(plan) / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}-{named}"


def known_folders(plan: Plan) -> list[Path]:
    """The folders beside the home that may hold runs on the plan's store, those of playbooks included, the
    latest first."""
    base = default_base(plan)
    with _reading(base):
        found = [(path.name, path) for path in _folders(base) if path.name != PLAYBOOKS]
        for playbook in _folders(base / PLAYBOOKS):
            found += [(playbook.name, path) for path in playbook.glob("steps/*/run")]
    return [path for _, path in sorted(found, reverse=True)]


def _folders(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if path.is_dir()] if place.is_dir() else []


def earlier(plan: Plan, places: Sequence[Path]) -> Iterator[RunFolder]:
    """The runs of this very plan that are known: those at ``places``, then the others, latest first. A plan
    that lies in a folder alone is no run."""
    for place in (*places, *known_folders(plan)):
        folder = RunFolder(place)
        with _reading(place):
            begun = folder.journal.is_file() or folder.undo.is_file()
            same = begun and folder.plan.is_file() and folder.plan.read_bytes() == dump(plan)
        if same:
            yield folder


@contextmanager
def _reading(place: Path) -> Iterator[None]:
    """A run that cannot be read may be one that was carried out."""
    try:
        yield
    except OSError as error:
        raise Undetermined(
            f"{error.filename or place}: cannot be read ({error.strerror}), so what was done to the store is "
            "not known; run statemend as the user who did it"
        ) from error
