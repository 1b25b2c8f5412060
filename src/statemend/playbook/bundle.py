"""Packs a run for a post-mortem: what was done and found, without the text of messages unless asked for.

A file goes in only when it is known not to hold such text, or after it was taken out; everything else is
named with its size, its digest and the reason, so that it can be asked for.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, Literal

import msgspec

import statemend
from statemend.errors import Refused, Undetermined, UsageError
from statemend.playbook.folder import PlaybookFolder, digest
from statemend.playbook.withheld import Why, judge
from statemend.repair.run import RunFolder
from statemend.report.json import dump
from statemend.store import durable

SCHEMA: Final = "statemend/bundle/v1"
#: The name of the list, within the bundle.
LIST: Final = "BUNDLE.json"
#: Bytes of a file that are looked at to tell what it is.
_HEAD: Final = 1 << 20
#: Bytes. A file that is changed on its way is read whole.
_LARGEST_REDACTED: Final = 512 << 20


class Packed(msgspec.Struct, frozen=True):
    """One file of the bundle. ``original`` is the sha256 of the file in the run where it was changed on the
    way."""

    path: str
    size: int
    sha256: str
    original: str | None = None


class LeftOut(msgspec.Struct, frozen=True):
    """One file of the run that is not in the bundle, and why."""

    path: str
    size: int
    sha256: str
    reason: str


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """What was packed. ``run`` is the folder's name; ``with_content`` says that nothing was left out or
    changed. ``path`` and ``sha256`` are of the file itself, and empty in the list within it."""

    schema: Literal["statemend/bundle/v1"] = SCHEMA
    tool: str
    run: str
    made_at: str
    with_content: bool
    files: tuple[Packed, ...]
    left_out: tuple[LeftOut, ...]
    path: str = ""
    sha256: str = ""
    size: int = 0


def pack(folder: Path, target: Path, *, with_content: bool = False, now: float | None = None) -> Bundle:
    """Pack the folder of a run, of a playbook, a repair or a cleanup, into the new file ``target``
    (``.tar.gz``, readable by this user alone). ``now`` is epoch seconds.

    Raises ``UsageError`` where there is no run, ``Refused`` when ``target`` is there already,
    ``Undetermined`` when something cannot be read or written; then there is no ``target``.
    """
    _check_run(folder)
    try:
        durable.create(target)
    except FileExistsError as error:
        raise Refused(f"{target}: is there already; choose another name") from error
    except OSError as error:
        raise UsageError(f"{target}: {error.strerror}; choose another name") from error
    try:
        bundle = _pack(folder, target, with_content, time.time() if now is None else now)
        durable.sync_file(target)
        durable.sync_folder(target.parent)
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError):
            where = os.fsdecode(error.filename or os.fspath(target))
            raise Undetermined(f"{where}: {error.strerror}; nothing was packed") from error
        raise
    return msgspec.structs.replace(
        bundle, path=str(target), sha256=digest(target), size=target.stat().st_size
    )


def _check_run(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; name the folder of a run")
    if PlaybookFolder(folder).run_file.is_file() or RunFolder(folder).plan.is_file():
        return
    raise UsageError(f"{folder}: not the folder of a run; name one that statemend made")


def _pack(folder: Path, target: Path, with_content: bool, now: float) -> Bundle:
    packed: list[Packed] = []
    left_out: list[LeftOut] = []
    with (
        open(target, "r+b") as file,
        tarfile.open(fileobj=file, mode="w:gz", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, name in _files(folder, target):
            verdict = None if with_content else judge(PurePosixPath(name), _first(path))
            if isinstance(verdict, Why):
                left_out.append(LeftOut(name, path.stat().st_size, digest(path), verdict.value))
            elif verdict is None:
                _add_file(tar, path, f"{folder.name}/{name}")
                packed.append(Packed(name, path.stat().st_size, digest(path)))
            else:
                try:
                    data = verdict(_whole(path))
                except (msgspec.DecodeError, RecursionError):  # a crash cut it short, or it is no such file
                    left_out.append(LeftOut(name, path.stat().st_size, digest(path), Why.BROKEN.value))
                    continue
                _add_data(tar, data, f"{folder.name}/{name}", path.stat().st_mtime)
                packed.append(Packed(name, len(data), hashlib.sha256(data).hexdigest(), digest(path)))
        bundle = Bundle(
            tool=f"statemend {statemend.__version__}",
            run=folder.name,
            made_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
            with_content=with_content,
            files=tuple(packed),
            left_out=tuple(left_out),
        )
        _add_data(tar, dump(bundle).encode(), f"{folder.name}/{LIST}", now)
    return bundle


def _files(folder: Path, target: Path) -> Iterator[tuple[Path, str]]:
    """The regular files of a run, in order. A link is none, and neither is the bundle itself."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.samefile(target):
            yield path, path.relative_to(folder).as_posix()


def _first(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(_HEAD)


def _whole(path: Path) -> bytes:
    if path.stat().st_size > _LARGEST_REDACTED:
        raise Undetermined(f"{path}: too large to take the texts out of it; nothing was packed")
    return path.read_bytes()


def _add_file(tar: tarfile.TarFile, path: Path, name: str) -> None:
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        tar.addfile(_entry(name, status.st_size, status.st_mtime), file)


def _add_data(tar: tarfile.TarFile, data: bytes, name: str, at: float) -> None:
    tar.addfile(_entry(name, len(data), at), io.BytesIO(data))


def _entry(name: str, size: int, at: float) -> tarfile.TarInfo:
    """A member that says nothing of the user or the machine."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = size, int(at), 0o600
    return entry
