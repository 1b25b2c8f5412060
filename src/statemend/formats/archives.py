"""Archives that may hold a store: the zip files of Hermes' backups and the ``.tar.gz`` of a profile.

Nothing but the store is ever unpacked, into a file whose name is chosen here. What an archive says of sizes,
names and places is not believed: each is checked, or bounded while the bytes are read.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

from statemend.errors import Undetermined
from statemend.formats import files, tar_member, zip_member
from statemend.formats.archive_member import STORE_NAME, ArchiveFault, Member
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.store.copies import private_folder, require_space

#: It shows no messages itself: the store inside does, under a path of its own.
SHOWN: Final[frozenset[Kind]] = frozenset()
#: What separates the path of an archive from the name of what lies in it.
SEPARATOR = "!"

_MODULES = (zip_member, tar_member)
#: So many unpacked stores are kept for the next who asks.
_MOST_KEPT = 2


def recognise(head: bytes) -> Kind | None:
    """``Kind.ARCHIVE`` for a zip file or a gzipped tar."""
    return Kind.ARCHIVE if any(module.recognise(head) for module in _MODULES) else None


def read(path: Path) -> Artifact:
    """The archive itself; the store inside is an artifact of its own. Damage is why none can be read."""
    scan = files.Scan(path).drain()
    damage = None
    try:
        find(path)
    except ArchiveFault as error:
        damage = str(error)
    return Artifact(str(path), Kind.ARCHIVE, scan.size, scan.modified_at, scan.sha256, damage=damage)


def records(path: Path, section: Section) -> Iterator[None]:
    """None: an archive has no sections."""
    return iter(())


def find(path: Path) -> Member | None:
    """The store in an archive, the one nearest to the top; ``None`` where there is none.

    Raises ``ArchiveFault`` when the archive, or the store in it, may not be unpacked, ``Undetermined`` when
    the system cannot read the file.
    """
    with files.opened(path) as file:
        for module in _MODULES:
            file.seek(0)
            if module.recognise(file.read(files.HEAD_BYTES)):
                found: Member | None = module.find(file)
                return found
    return None


def member_path(path: Path, member: Member) -> Path:
    """The path under which a store in an archive is known."""
    return Path(f"{path}{SEPARATOR}{member.name}")


def split(path: Path) -> tuple[Path, str | None]:
    """The file that a path names, and the name of what lies in it if that is an archive."""
    text = os.fspath(path)
    if not os.path.lexists(path):
        for place in (place for place, sign in enumerate(text) if sign == SEPARATOR):
            if os.path.isfile(text[:place]):
                return Path(text[:place]), text[place + 1 :]
    return path, None


@contextmanager
def extracted(path: Path) -> Iterator[Path]:
    """The file to open for ``path``: itself, or the store in an archive unpacked into a private folder.

    What was unpacked last is kept for the next who asks, and removed at the end of the process. Raises
    ``Undetermined``, as ``ArchiveFault`` where the archive is at fault.
    """
    file, name = split(path)
    if name is None:
        yield path
        return
    kept = _unpacked(path, file, _state(file))  # this reference keeps the file, whoever asks meanwhile
    yield kept.file


class _Unpacked:
    """A store unpacked into a private folder, which goes when nobody refers to this any more."""

    def __init__(self, archive: Path, member: Member) -> None:
        with ExitStack() as stack:
            folder = stack.enter_context(private_folder())
            require_space(folder, member.size)
            self.file = _unpack(archive, member, folder / STORE_NAME)
            weakref.finalize(self, stack.pop_all().close)


@lru_cache(maxsize=_MOST_KEPT)
def _unpacked(path: Path, archive: Path, state: tuple[int, ...]) -> _Unpacked:
    """The store at ``path`` of an archive that is in this ``state``."""
    member = find(archive)
    if member is None or member_path(archive, member) != path:
        raise ArchiveFault("the archive does not hold this store any more")
    return _Unpacked(archive, member)


def _state(archive: Path) -> tuple[int, ...]:
    """What changes when an archive is written to."""
    try:
        status = os.stat(archive)
    except OSError as error:
        raise Undetermined(f"{archive}: could not be read: {error.strerror or error}") from error
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _unpack(archive: Path, member: Member, target: Path) -> Path:
    module = zip_member if member.packed is not None else tar_member
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as writer, files.opened(archive) as file:
        for block in module.blocks(file, member):
            try:
                writer.write(block)
                writer.flush()  # so that no error is left for the closing of the file
            except OSError as error:
                raise Undetermined(f"{target}: cannot be written ({error.strerror}); set TMPDIR") from error
    return target
