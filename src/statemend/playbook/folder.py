"""The folder of a playbook's run: everything that tells what was done, with what, and what came of it."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

import statemend
from statemend.errors import Refused, Undetermined, UsageError
from statemend.repair.journal import Journal
from statemend.repair.run import PLAYBOOKS, making
from statemend.report.playbook_run import PlaybookRun, StepFile, StepResult
from statemend.store import durable

Kept = TypeVar("Kept")

_SUMS = "SHA256SUMS"
_RESULT = "result.json"


class PlaybookFolder:
    """The files of a run. All are for this user alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.playbook = path / "playbook.yaml"
        self.inputs = path / "inputs.json"
        self.resolved = path / "resolved.json"
        self.versions = path / "versions.json"
        self.journal_file = path / "journal.jsonl"
        self.run_file = path / "run.json"
        self.sums = path / _SUMS
        self.steps = path / "steps"
        self.journal = Journal(self.journal_file)

    @classmethod
    def create(cls, path: Path, *, playbook: bytes, inputs: dict[str, Any]) -> PlaybookFolder:
        """Make the folder of a new run. Raises ``Refused`` where something is there already, ``Undetermined``
        where it cannot be made."""
        folder = cls(path)
        with making(path):
            if not folder.begun:
                path.mkdir(mode=0o700)
                durable.sync_folder(path.parent)
            folder.steps.mkdir(mode=0o700, exist_ok=True)
            durable.replace(folder.playbook, playbook)
            durable.replace(folder.inputs, _json(inputs))
            durable.replace(folder.versions, _json(versions()))
        return folder

    @property
    def begun(self) -> bool:
        """Whether a run broke off while this folder was made: nothing else is in it then."""
        made = {self.steps.name}
        for file in (self.playbook, self.inputs, self.versions, self.run_file):
            made |= {file.name, file.name + ".new"}
        made.remove(self.run_file.name)
        return self.path.is_dir() and {path.name for path in self.path.iterdir()} <= made

    def load(self) -> PlaybookRun:
        """What ``run.json`` says. Raises ``UsageError`` where there is no run, ``Undetermined`` when it
        cannot be read."""
        try:
            found = _decoded(self.run_file, PlaybookRun)
        except (msgspec.DecodeError, RecursionError) as error:
            raise UsageError(f"{self.path}: not the folder of a playbook's run") from error
        except OSError as error:
            raise Undetermined(f"{self.run_file}: cannot be read ({error.strerror})") from error
        if found is None:
            raise UsageError(f"{self.path}: not the folder of a playbook's run")
        return found

    def save(self, run: PlaybookRun) -> PlaybookRun:
        """Write ``run.json``."""
        durable.replace(self.run_file, _json(run))
        return run

    def new_attempt(self, number: int, step_id: str) -> Path:
        """A new folder for a step. An attempt that broke off keeps the folder it had, if anything is in
        it."""
        tried = self.attempts(number, step_id)
        if tried and not any(tried[0].iterdir()):
            return tried[0]
        path = self.steps / (_name(number, step_id) + (f".{_attempt(tried[0]) + 1}" if tried else ""))
        path.mkdir(mode=0o700)
        durable.sync_folder(self.steps)
        return path

    def attempts(self, number: int, step_id: str) -> list[Path]:
        """The folders that a step had so far, the latest first. What somebody else put there is none."""
        names = re.compile(re.escape(_name(number, step_id)) + r"(\.[0-9]{1,9})?", re.ASCII)
        found = [path for path in self.steps.iterdir() if names.fullmatch(path.name) and path.is_dir()]
        return sorted(found, key=_attempt, reverse=True)

    def finish(self, place: Path, result: StepResult, *, besides: Sequence[Path] = ()) -> StepResult:
        """Keep the result of a step in its folder, with the digest of every file there and in the folders
        ``besides``."""
        files = tuple(
            StepFile(path.relative_to(self.path).as_posix(), sha256, size)
            for folder in (place, *besides)
            for path, sha256, size in _digests(folder)
        )
        kept = msgspec.structs.replace(result, folder=place.relative_to(self.path).as_posix(), files=files)
        durable.replace(place / _RESULT, _json(kept))  # whole, or not there: then the step is not finished
        return kept

    def finished(self, number: int, step_id: str) -> StepResult | None:
        """The result of a step that was finished before. Raises ``Refused`` when a file of it is not what it
        was."""
        for place in self.attempts(number, step_id):
            try:
                result = _decoded(place / _RESULT, StepResult)
            except (OSError, msgspec.DecodeError, RecursionError) as error:
                raise Refused(
                    f"{place / _RESULT}: cannot be read ({error}); start anew with --new"
                ) from error
            if result is not None:
                self._check(result)
                return result
        return None

    def _check(self, result: StepResult) -> None:
        for file in result.files:
            path = self.path / file.path
            try:
                same = path.is_file() and path.stat().st_size == file.size and digest(path) == file.sha256
            except OSError:
                same = False
            if not same:
                raise Refused(f"{path}: is not what the step {result.id} left; start anew with --new")

    def seal(self) -> None:
        """Write the checksums of every file, as ``sha256sum -c`` reads them."""
        lines = [
            f"{sha256}  {path.relative_to(self.path).as_posix()}\n"
            for path, sha256, _ in _digests(self.path)
            if path != self.sums
        ]
        durable.replace(self.sums, "".join(lines).encode("utf-8", "surrogateescape"))


def base_of(home: Path) -> Path:
    """Where runs on a home go: beside it, since a home may be deleted or copied whole."""
    absolute = Path(os.path.abspath(home))
    return absolute.with_name(absolute.name + ".statemend")


def default_folder(home: Path, name: str, now: float) -> Path:
    """The folder of a run that begins now (epoch seconds)."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    place = base_of(home) / PLAYBOOKS / f"{stamp}-{name}"
    number = 1
    while os.path.lexists(place):
        number += 1
        place = place.with_name(f"{stamp}-{name}-{number}")
    return place


def known_runs(home: Path) -> Iterator[tuple[PlaybookFolder, PlaybookRun]]:
    """The runs of playbooks on a home that are known, the latest first. One that cannot be read is none."""
    base = base_of(home) / PLAYBOOKS
    found = []
    for path in base.iterdir() if base.is_dir() else ():
        folder = PlaybookFolder(path)
        try:
            found.append((folder, folder.load()))
        except (UsageError, Undetermined):
            continue
    yield from sorted(found, key=lambda each: (each[1].started_at, each[0].path.name), reverse=True)


def versions() -> dict[str, str]:
    """The versions of what the run is made with, by name."""
    return {
        "statemend": statemend.__version__,
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def digest(path: Path) -> str:
    """The sha256 (hex) of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digests(folder: Path) -> Iterator[tuple[Path, str, int]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path, digest(path), path.stat().st_size


def _decoded(path: Path, kind: type[Kept]) -> Kept | None:
    """What a file of the run holds; ``None`` where there is no such file, or it is a pipe."""
    return msgspec.json.decode(path.read_bytes(), type=kind) if path.is_file() else None


def _name(number: int, step_id: str) -> str:
    return f"{number:02}-{step_id}"


def _attempt(place: Path) -> int:
    """Which attempt of its step a folder is of, from 1."""
    return int(place.name.partition(".")[2] or 1)


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
