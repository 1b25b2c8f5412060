"""Makes the n-th write, sync, truncate, open, lock or delete fail: SQLite's, and those of a run's files.

``STATEMEND_FAULTS`` set to anything has every operation of a change fail in its turn. By default those do
that are the first, the middle and the last of their kind, on their file, within a step.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from statemend.store import connection, durable, writing

#: Whether every single operation is to fail in its turn.
ALL = bool(os.environ.get("STATEMEND_FAULTS"))
#: The VFS that this system has by default.
_BASE = apsw.vfs_names()[0]
_UNLOCK, _SET_LOCK = 2, 6  # F_UNLCK, F_SETLK on Linux

#: One operation: what it does, the name of the file, and the step that the change had reached.
Operation = tuple[str, str, str]


class Faults:
    """Counts what is done below ``folder`` and fails the ``at``-th of it, and all after it if the disk is
    ``dead``. ``at`` 0 only counts. ``reached`` tells it the step, and may arm and disarm it."""

    def __init__(self, folder: Path, at: int, *, dead: bool, reads: bool) -> None:
        self.folder = os.path.realpath(folder)
        self.at = at
        self.dead = dead
        self.reads = reads
        self.armed = True
        self.count = 0
        self.step = ""
        self.done: list[Operation] = []
        self.happened: list[str] = []
        self.give_back: Callable[[], None] = lambda: None

    def reached(self, step: str) -> None:
        """A hook for a journal: what is done from now on belongs to this step."""
        self.step = step

    def due(self, what: str, path: object) -> bool:
        """Count one operation; whether it is to fail. Shared memory needs no disk: what is done to it fails
        in its turn, and not because the disk died before."""
        if not self.armed or not str(path).startswith(self.folder):
            return False
        self.count += 1
        self.done.append((what, os.path.basename(str(path)), self.step))
        late = self.dead and self.count > self.at and not str(path).endswith("-shm")
        fails = self.at > 0 and (self.count == self.at or late)
        if fails:
            self.happened.append(f"{what} {os.path.basename(str(path))}")
        return fails

    def sqlite(self, what: str, path: object, error: type[apsw.Error]) -> None:
        """Fail as a VFS does. Until apsw has passed the error on, no system call may come back to Python."""
        if self.due(what, path):
            self.give_back()
            raise error(f"{what} failed")

    def system(self, what: str, path: object) -> None:
        """Fail as the operating system does."""
        if self.due(what, path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))


def numbers(done: Sequence[Operation], *, every: bool = ALL, ends: bool = False) -> list[int]:
    """Which of the operations of an undisturbed change are to fail, and one more that is none of them.

    Of those that are alike these are the first, one in the middle and the last; with ``ends`` not the one in
    the middle."""
    if every:
        return list(range(1, len(done) + 2))
    alike: defaultdict[Operation, list[int]] = defaultdict(list)
    for number, operation in enumerate(done, 1):
        alike[operation].append(number)
    chosen = {each[at] for each in alike.values() for at in ((0, -1) if ends else (0, len(each) // 2, -1))}
    return [*sorted(chosen), len(done) + 1]


class _File(apsw.VFSFile):
    def __init__(self, faults: Faults, name: Any, flags: list[int]) -> None:
        self._faults = faults
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        super().__init__(_BASE, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        if self._faults.reads:
            self._faults.sqlite("read", self._name, apsw.IOError)
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:
        self._faults.sqlite("write", self._name, apsw.FullError)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._faults.sqlite("sync", self._name, apsw.IOError)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self._faults.sqlite("truncate", self._name, apsw.IOError)
        super().xTruncate(size)

    def xLock(self, level: int) -> None:
        self._faults.sqlite("lock", self._name, apsw.IOError)
        super().xLock(level)


class _System(apsw.VFS):
    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        super().__init__(f"faulty-{uuid.uuid4().hex}", _BASE, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._faults.sqlite("open", path or "", apsw.CantOpenError)
        return _File(self._faults, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:
        self._faults.sqlite("delete", name, apsw.IOError)
        super().xDelete(name, sync)


def undisturbed(folder: Path, work: Callable[[Faults], object], *, ends: bool = False) -> list[int]:
    """Do the work without a fault; the ``numbers`` of the operations that are to fail."""
    with faults(folder) as counted:
        work(counted)
    return numbers(counted.done, ends=ends)


@contextmanager
def faults(folder: Path, at: int = 0, *, dead: bool = False, reads: bool = False) -> Iterator[Faults]:
    """Have the ``at``-th operation below ``folder`` fail meanwhile. Reads of stores are operations only where
    ``reads`` says so. Nobody waits for a lock that cannot be had."""
    made = Faults(folder, at, dead=dead, reads=reads)
    system = _System(made)
    with pytest.MonkeyPatch.context() as patch, _shared_memory(system, made):
        for module in (connection, writing):
            patch.setattr(module, "_BUSY_MILLISECONDS", 0)
        for name in ("create", "sync_file", "sync_folder"):
            patch.setattr(durable, name, _failing(getattr(durable, name), name, made))
        write, replace = durable._write, os.replace

        def failing_write(descriptor: int, data: bytes) -> None:
            path = _path_of(descriptor)
            if made.due("half a write", path):
                os.write(descriptor, data[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            write(descriptor, data)

        def failing_replace(source: Any, target: Any) -> None:
            made.system("rename", target)
            replace(source, target)

        patch.setattr(durable, "_write", failing_write)
        patch.setattr(os, "replace", failing_replace)
        try:
            yield made
        finally:
            system.unregister()


def _failing(real: Any, what: str, made: Faults) -> Any:
    def call(path: Path) -> None:
        made.system(what, path)
        real(path)

    return call


@contextmanager
def _shared_memory(system: apsw.VFS, made: Faults) -> Iterator[None]:
    """Have locks on the shared memory of a write-ahead log fail too, and opening it. A VFS of ours is not
    asked about them, so SQLite is given other system calls."""
    if sys.platform != "linux":
        yield
        return
    number, address = ctypes.c_int, ctypes.c_void_p
    lock_type = ctypes.CFUNCTYPE(number, number, number, address, use_errno=True)
    open_type = ctypes.CFUNCTYPE(number, ctypes.c_char_p, number, number, use_errno=True)
    originals = {name: system.xGetSystemCall(name) for name in ("fcntl", "open")}
    real_lock, real_open = lock_type(originals["fcntl"]), open_type(originals["open"])

    def refused(what: str, path: str) -> bool:
        if path.endswith("-shm") and made.due(what, path):
            ctypes.set_errno(errno.EIO)
            return True
        return False

    def lock(descriptor: int, command: int, argument: int | None) -> int:
        locks = command == _SET_LOCK and argument and ctypes.c_short.from_address(argument).value != _UNLOCK
        if locks and refused("lock", _path_of(descriptor)):
            return -1
        return int(real_lock(descriptor, command, argument))

    def opened(path: bytes, flags: int, mode: int) -> int:
        return -1 if refused("open", os.fsdecode(path)) else int(real_open(path, flags, mode))

    def give_back() -> None:
        for name, original in originals.items():
            system.xSetSystemCall(name, original)

    made.give_back = give_back
    ours = {"fcntl": lock_type(lock), "open": open_type(opened)}
    for name, call in ours.items():
        system.xSetSystemCall(name, _address(call))
    try:
        yield
    finally:
        give_back()


def _address(call: Callable[..., int]) -> int:
    found = ctypes.cast(call, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert found is not None
    return found


def _path_of(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")
