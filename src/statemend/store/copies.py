"""Private copies of a store, for when the original must not be opened as it lies."""

from __future__ import annotations

import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from statemend.errors import StoreUnreadable, Undetermined
from statemend.store.bundle import Bundle, fingerprint, inspect

_ATTEMPTS = 3
_HEADROOM = 64 * 1024 * 1024
_FICLONE = 0x40049409
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


@contextmanager
def private_folder() -> Iterator[Path]:
    """A new folder that only this user may enter, removed with its content at the end."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="statemend-", ignore_cleanup_errors=True)
    except OSError as error:
        raise Undetermined(f"no folder for temporary files can be made ({error}); set TMPDIR") from error
    with folder as name:
        yield Path(name)


def require_space(folder: Path, size: int) -> None:
    """Raise ``Undetermined`` unless ``folder`` has room for ``size`` bytes and some more."""
    free = shutil.disk_usage(folder).free
    if free < size + _HEADROOM:
        raise Undetermined(
            f"a private copy of the store needs {(size + _HEADROOM) >> 20} MiB in {folder.parent}, which has "
            f"{free >> 20} MiB free; set TMPDIR to a folder with more room"
        )


def copy_store(bundle: Bundle, folder: Path) -> Path:
    """Copy the main file, a ``-wal`` with content and a hot ``-journal`` into ``folder``; the path of the
    copy.

    The copy is of one moment: if the store changes meanwhile it is taken again, three times at most. ``-shm``
    is never copied, SQLite derives it. Raises ``StoreUnreadable`` if the store does not stand still.
    """
    target = folder / "state.db"
    for _ in range(_ATTEMPTS):
        before = fingerprint(bundle)
        now = inspect(Path(bundle.main.path))
        for stale in folder.iterdir():
            stale.unlink()
        try:
            _copy_file(now.main.path, target)
            if now.wal is not None and now.wal_content:
                _copy_file(now.wal.path, folder / "state.db-wal")
            if now.journal is not None and now.hot_journal:
                _copy_journal(now.journal.path, folder / "state.db-journal")
        except OSError as error:
            raise Undetermined(
                f"{bundle.main.path}: cannot be copied to {folder} ({error.strerror})"
            ) from error
        if fingerprint(bundle) == before:
            return target
    raise StoreUnreadable(
        f"{bundle.path}: changed each of {_ATTEMPTS} times while it was copied; stop its writer"
    )


def _copy_file(source: str, target: Path) -> None:
    """Copy one file, sharing its blocks where the file system can."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(source, "rb") as reader, open(descriptor, "wb") as writer:
        if sys.platform == "linux" and _share_blocks(reader.fileno(), writer.fileno()):
            return
        require_space(target.parent, os.fstat(reader.fileno()).st_size)
        shutil.copyfileobj(reader, writer, 1 << 20)


def _share_blocks(source: int, target: int) -> bool:
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:  # another file system, or one that cannot
        return False
    return True


def _copy_journal(source: str, target: Path) -> None:
    """Copy a hot journal without the super-journal that it may name.

    SQLite rolls a journal back only if the super-journal that it names exists, and deletes that file when no
    other journal needs it. The copy decides the first here, and never lets the second happen.
    """
    _copy_file(source, target)
    with open(target, "r+b") as journal:
        size = journal.seek(0, os.SEEK_END)
        name = _super_journal(journal.fileno(), size)
        if name is None:
            return
        journal.seek(0)
        if os.path.exists(name):
            journal.truncate(size - len(name) - 16)
        else:
            journal.truncate(0)


def _super_journal(descriptor: int, size: int) -> bytes | None:
    """The path at the end of a journal (https://sqlite.org/fileformat2.html, section 3), ``None`` if there is
    none."""
    if size < 24 or os.pread(descriptor, 8, size - 8) != _JOURNAL_MAGIC:
        return None
    length, checksum = struct.unpack(">II", os.pread(descriptor, 8, size - 16))
    if not 0 < length <= min(4096, size - 16):
        return None
    name = os.pread(descriptor, length, size - 16 - length)
    return name if sum(name) & 0xFFFFFFFF == checksum else None
