"""Lets one run at a time at a store, or at a home."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from statemend.errors import Refused, StoreHeld, Undetermined

_SUFFIX = ".statemend-lock"


@contextmanager
def only_run(store: str) -> Iterator[None]:
    """Hold the lock of the store at this path while it is repaired.

    The lock file lies beside the store while a run lasts, since that folder is the one that every run on it
    must be able to write. Raises ``StoreHeld`` when another run holds it.
    """
    with hold(Path(os.path.realpath(store) + _SUFFIX), "another repair of this store"):
        yield


@contextmanager
def hold(path: Path, other: str) -> Iterator[None]:
    """Hold a lock file. A crash frees it; the file that is left then does no harm.

    ``other`` says whom to name when it is held: ``StoreHeld`` is raised then.
    """
    try:
        descriptor = _acquire(path, other)
    except PermissionError as error:
        raise Refused(
            f"{path.parent}: may not be written by this user; run statemend as its owner"
        ) from error
    except OSError as error:
        raise Undetermined(f"{path}: cannot be locked ({error.strerror})") from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path, other: str) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            _lock(descriptor, path, other)
            if _still_there(descriptor, path):
                os.truncate(descriptor, 0)
                os.write(descriptor, f"{os.getpid()}\n".encode())
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, path: Path, other: str) -> None:
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise StoreHeld(f"{path}: {other} is running") from error
    else:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
            raise StoreHeld(f"{path}: {other} is running (pid {pid})") from error


def _still_there(descriptor: int, path: Path) -> bool:
    """Whether the file that was locked is the one at the path: the last run may just have removed it."""
    try:
        now = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    held = os.fstat(descriptor)
    return (now.st_dev, now.st_ino) == (held.st_dev, held.st_ino)
