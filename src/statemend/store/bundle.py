"""A store on disk, seen before SQLite touches it: the file, its sidecars, its header, its fingerprint.

Opening a damaged store can destroy evidence (SQLite deletes the ``-wal`` beside a main file that is empty),
so the bytes are judged first. Nothing here opens a database. A descriptor opened and closed on a store drops
the POSIX locks that *this* process holds on it: look at a store before opening it for writing, or after
closing it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from statemend.errors import Undetermined, UsageError
from statemend.store.header import Header, judge, sample_offsets

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
#: A ``-wal`` up to this size holds no whole frame: 32 bytes of header, 24 of frame header, the smallest page.
_WAL_WITHOUT_FRAMES = 32 + 24 + 512 - 1
#: What the names of the copies that Hermes leaves beside a store contain.
SIBLING_MARKS = (
    ".retired-wal-",
    ".malformed-backup-",
    ".zeroed-",
    ".notadb-",
    ".pre-update-emergency-",
    ".pre-clean-markers-backup-",
    ".backup-staging-",
)


class StoreFile(msgspec.Struct, frozen=True):
    """One file of the bundle. ``path`` has its symbolic links resolved, ``mode`` is its permissions."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    device: int
    mode: int


class Bundle(msgspec.Struct, frozen=True):
    """A store's files. ``fault`` says why SQLite must not open it, as a slug, with ``detail`` in words:

    ``empty`` · ``zeroed`` · ``too-short`` · ``not-sqlite`` · ``overwritten-first-page`` · ``page-count`` (the
    header promises more pages than the file has). ``siblings`` names quarantined copies and retired
    write-ahead logs.
    """

    path: str
    main: StoreFile
    wal: StoreFile | None = None
    shm: StoreFile | None = None
    journal: StoreFile | None = None
    hot_journal: bool = False
    header: Header | None = None
    fault: str | None = None
    detail: str = ""
    siblings: tuple[str, ...] = ()

    @property
    def wal_content(self) -> bool:
        """Whether the ``-wal`` is large enough to hold rows that the main file may lack."""
        return _has_frames(self.wal)

    @property
    def files(self) -> tuple[StoreFile, ...]:
        """The main file and the sidecars that exist."""
        return tuple(file for file in (self.main, self.wal, self.shm, self.journal) if file is not None)


class Fingerprint(msgspec.Struct, frozen=True):
    """What a store's content looks like from outside; two that are equal say that nothing wrote in between.

    Covers size, modification time in ns, inode, header and sampled pages of the main file, and the same of a
    ``-wal`` or ``-journal`` that is not empty. An empty sidecar holds nothing, so a reader that leaves one
    behind does not change the fingerprint; neither does ``-shm``, which only mirrors the ``-wal``.
    """

    main: tuple[int, int, int, int]
    sidecars: tuple[tuple[str, int, int, int], ...]
    digest: str


def inspect(path: Path) -> Bundle:
    """Look at the store at ``path`` without opening it as a database.

    Raises ``UsageError`` where there is no regular file, ``Undetermined`` where it cannot be read.
    """
    given = os.fspath(path)
    with _reading(given):
        real = os.path.realpath(given)
        main = _store_file(real)
    if main is None:
        raise UsageError(f"{given}: no such file; give the path of a state.db")
    with _reading(real):
        wal, shm, journal = (_sidecar(real + suffix) for suffix in ("-wal", "-shm", "-journal"))
        hot = journal is not None and _begins_with(journal.path, _JOURNAL_MAGIC)
        with open(main.path, "rb") as source:
            header, fault, detail = judge(source.fileno(), main.size)
        if wal is not None:
            _begins_with(wal.path, b"")  # an unreadable log must not pass for an absent one
    if (fault == "page-count" and (hot or _has_frames(wal))) or (fault == "overwritten-first-page" and hot):
        fault, detail = None, ""  # the sidecar holds what the main file lacks
    elif fault is not None and wal is not None and wal.size:
        detail += f"; a -wal of {wal.size} bytes lies beside it"
    return Bundle(
        path=given,
        main=main,
        wal=wal,
        shm=shm,
        journal=journal,
        hot_journal=hot,
        header=header,
        fault=fault,
        detail=detail,
        siblings=_siblings(real),
    )


def fingerprint(store: Bundle | Path) -> Fingerprint:
    """Take the fingerprint of a store as it is now. Reads at most 64 pages, whatever the size.

    Raises ``Undetermined`` when a file has gone or cannot be read.
    """
    real = store.main.path if isinstance(store, Bundle) else os.path.realpath(store)
    digest = hashlib.sha256()
    stats = []
    with _reading(real):
        for suffix in ("", "-wal", "-journal"):
            file = _store_file(real + suffix)
            if file is None and not suffix:
                raise Undetermined(f"{real}: the store is gone")
            if file is None or (suffix and not file.size):
                continue
            stats.append((suffix, file))
            with open(file.path, "rb") as source:
                for offset in sample_offsets(file.size, 4096):
                    digest.update(os.pread(source.fileno(), 4096, offset))
    (_, main), *sidecars = stats
    return Fingerprint(
        main=(main.size, main.mtime_ns, main.inode, main.device),
        sidecars=tuple((suffix, file.size, file.mtime_ns, file.inode) for suffix, file in sidecars),
        digest=digest.hexdigest(),
    )


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn what the operating system says into an error that names the path."""
    try:
        yield
    except PermissionError as error:
        what = error.filename or path
        raise Undetermined(f"{what}: may not be read by this user; run statemend as its owner") from error
    except ValueError as error:
        raise UsageError(f"{path!r}: not a possible path ({error})") from error
    except OSError as error:
        raise Undetermined(f"{error.filename or path}: cannot be read ({error.strerror or error})") from error


def _store_file(path: str) -> StoreFile | None:
    """The facts of one file, ``None`` if there is none. A pipe or a device is never opened."""
    try:
        facts = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(facts.st_mode):
        raise UsageError(f"{path}: a folder, not a store; give the state.db in it")
    if not stat.S_ISREG(facts.st_mode):
        raise UsageError(f"{path}: not a regular file, so not a store")
    return StoreFile(
        path=path,
        size=facts.st_size,
        mtime_ns=facts.st_mtime_ns,
        inode=facts.st_ino,
        device=facts.st_dev,
        mode=stat.S_IMODE(facts.st_mode),
    )


def _sidecar(path: str) -> StoreFile | None:
    """The facts of a file beside the store. What SQLite could not use there leaves its content open."""
    try:
        return _store_file(path)
    except UsageError as error:
        raise Undetermined(
            f"{path}: not a regular file, so no sidecar of a store; move it away and audit again"
        ) from error


def _has_frames(wal: StoreFile | None) -> bool:
    return wal is not None and wal.size > _WAL_WITHOUT_FRAMES


def _begins_with(path: str, magic: bytes) -> bool:
    with open(path, "rb") as source:
        return source.read(len(magic)) == magic


def _siblings(real: str) -> tuple[str, ...]:
    """Names of the copies that Hermes left beside the store; none where the folder may not be listed."""
    folder, name = os.path.split(real)
    try:
        names = os.listdir(folder)
    except OSError:
        return ()
    marks = tuple(name + mark for mark in SIBLING_MARKS)
    return tuple(sorted(entry for entry in names if entry.startswith(marks)))
