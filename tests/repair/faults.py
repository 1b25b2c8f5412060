"""Makes the n-th write, sync, truncate, open, lock or delete fail: SQLite's, and those of a run's files."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from statemend.store import durable

#: The VFS that this system has by default.
_BASE = apsw.vfs_names()[0]


class Faults:
    """Counts what is done below ``folder`` and fails the ``at``-th of it, and all after it if the disk is
    ``dead``. ``at`` 0 only counts."""

    def __init__(self, folder: Path, at: int, *, dead: bool) -> None:
        self.folder = os.path.realpath(folder)
        self.at = at
        self.dead = dead
        self.count = 0
        self.happened: list[str] = []

    def due(self, what: str, path: object) -> bool:
        """Count one operation; whether it is to fail."""
        if not str(path).startswith(self.folder):
            return False
        self.count += 1
        fails = self.at > 0 and (self.count == self.at or (self.dead and self.count > self.at))
        if fails:
            self.happened.append(f"{what} {os.path.basename(str(path))}")
        return fails

    def system(self, what: str, path: object) -> None:
        """Fail as the operating system does."""
        if self.due(what, path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))


class _File(apsw.VFSFile):
    def __init__(self, faults: Faults, name: Any, flags: list[int]) -> None:
        self._faults = faults
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        super().__init__(_BASE, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        if self._faults.due("write", self._name):
            raise apsw.FullError("no room")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        if self._faults.due("sync", self._name):
            raise apsw.IOError("sync failed")
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        if self._faults.due("truncate", self._name):
            raise apsw.IOError("truncate failed")
        super().xTruncate(size)

    def xLock(self, level: int) -> None:
        if self._faults.due("lock", self._name):
            raise apsw.IOError("lock failed")
        super().xLock(level)


class _System(apsw.VFS):
    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        super().__init__(f"faulty-{uuid.uuid4().hex}", _BASE, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if self._faults.due("open", path or ""):
            raise apsw.CantOpenError("open failed")
        return _File(self._faults, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:
        if self._faults.due("delete", name):
            raise apsw.IOError("delete failed")
        super().xDelete(name, sync)


@contextmanager
def faults(folder: Path, at: int, *, dead: bool = False) -> Iterator[Faults]:
    """Have the ``at``-th operation below ``folder`` fail meanwhile."""
    made = Faults(folder, at, dead=dead)
    system = _System(made)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("create", "sync_file", "sync_folder"):
            patch.setattr(durable, name, _failing(getattr(durable, name), name, made))
        write = durable._write

        def failing_write(descriptor: int, data: bytes) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            if made.due("half a write", path):
                os.write(descriptor, data[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            write(descriptor, data)

        patch.setattr(durable, "_write", failing_write)
        try:
            yield made
        finally:
            system.unregister()


def _failing(real: Any, what: str, made: Faults) -> Any:
    def call(path: Path) -> None:
        made.system(what, path)
        real(path)

    return call
