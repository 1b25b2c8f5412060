"""What a folder holds, down to the byte, whatever it holds."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

#: Mode, size, time of change in ns, inode, and the digest of a file or the target of a link.
Facts = tuple[int, int, int, int, bytes]


def snapshot(folder: Path) -> dict[bytes, Facts]:
    """Every entry below ``folder``, and the folder itself. Pipes and devices are never opened, and a path
    may be longer than the system takes one."""
    root = os.fsencode(folder)
    return {b".": _facts(root), **dict(_below(root))}


def _below(root: bytes) -> Iterator[tuple[bytes, Facts]]:
    for folder, folders, files, descriptor in os.fwalk(root):
        for name in (*folders, *files):
            yield os.path.relpath(os.path.join(folder, name), root), _facts(name, descriptor)


def _facts(path: bytes, folder: int | None = None) -> Facts:
    status = os.stat(path, dir_fd=folder, follow_symlinks=False)
    content = b""
    if stat.S_ISREG(status.st_mode):
        with os.fdopen(os.open(path, os.O_RDONLY, dir_fd=folder), "rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
    elif stat.S_ISLNK(status.st_mode):
        content = os.readlink(path, dir_fd=folder)
    return status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino, content
