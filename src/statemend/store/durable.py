"""Files that are on the disk when the function returns, for this user alone, and never instead of another."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path


def make_folders(path: Path) -> None:
    """Make a folder and those above it, where they are missing, for this user alone. Raises ``OSError``."""
    for folder in reversed([one for one in (path, *path.parents) if not one.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)


def create(path: Path) -> None:
    """Create an empty file. Raises ``FileExistsError`` rather than touching one that is there."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def write_new(path: Path, data: bytes) -> None:
    """Write a file that is not there yet, and have it on the disk with its name. Raises ``OSError``."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _write(descriptor, data)
        os.fsync(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def replace(path: Path, data: bytes) -> None:
    """Write a file in place of the one there, so that at any moment one of the two is there, whole."""
    waiting = path.with_name(path.name + ".new")
    waiting.unlink(missing_ok=True)
    write_new(waiting, data)
    os.replace(waiting, path)
    sync_folder(path.parent)


def append(path: Path, data: bytes) -> None:
    """Add to the end of a file, and have it on the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        _write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fill(path: Path, chunks: Iterable[bytes]) -> None:
    """Write into a file from its beginning. ``sync_file`` has it on the disk."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        for chunk in chunks:
            _write(descriptor, chunk)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Have what was written to a file on the disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def forget(path: Path) -> None:
    """Have the next reader of a file that is on the disk read it from there, where the system can be told."""
    if not hasattr(os, "posix_fadvise"):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Have the names in a folder on the disk, where the system lets a folder be synced."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
