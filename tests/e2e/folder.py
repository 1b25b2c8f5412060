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
    """Every entry below ``folder``, and the folder itself. Pipes and devices are never opened."""
    root = os.fsencode(folder)
    return {os.path.relpath(path, root): _facts(path) for path in (root, *_below(root))}


def _below(folder: bytes) -> Iterator[bytes]:
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                yield entry.path
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _facts(path: bytes) -> Facts:
    status = os.lstat(path)
    content = b""
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
    elif stat.S_ISLNK(status.st_mode):
        content = os.readlink(path)
    return status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino, content
