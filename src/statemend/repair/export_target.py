"""Where an export goes: a folder outside the audited home, names that are no paths, files that appear whole.

A file is written under a temporary name, flushed to the disk, and then given its name in one step that fails
when the name is taken: a crash leaves a temporary file or a whole one, and two runs never share a file. What
a crash left is not removed by a later run, for the store may have lost since what is in it.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from statemend.errors import Refused, StatemendError, Undetermined, UsageError
from statemend.evidence.inventory import Home
from statemend.evidence.partial import partial_name
from statemend.formats import files, manifest
from statemend.formats.artifact import Kind
from statemend.formats.manifest import ManifestLine

MANIFEST = "manifest.jsonl"
#: Folders of a home: what lies in them is evidence.
_EVIDENCE = ("session-exports", "sessions", "logs", "state-snapshots", "backups", "profiles")
#: An id that is a file name on every system that Hermes runs on, and no hidden one.
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+=-]{0,119}")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")
_KEPT_OF_ID = 60
_LONGEST_SLUG = 60


def file_name(session_id: str, title: object, suffix: str) -> str:
    """The name of a session's export, as Hermes gives it: the id, a word of the title, the format.

    An id that could lead elsewhere, hide, or be too long is shortened to what is harmless in it, with a
    digest of the whole id so that no two are the same.
    """
    shown = session_id
    if _PLAIN_ID.fullmatch(session_id) is None:
        harmless = _NOT_PLAIN.sub("-", session_id).strip("-_")[:_KEPT_OF_ID] or "session"
        digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
        shown = f"{harmless}-{digest[:12]}"
    title_text = title if isinstance(title, str) and title else "session"
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", title_text).strip(".-_").lower()[:_LONGEST_SLUG]
    return f"{shown}-{slug or 'session'}.{suffix}"


def prepare_folder(folder: Path, home: Home, *, whole_home: bool) -> None:
    """Make sure that ``folder`` can take exports; it is made if only its last part is missing.

    ``whole_home`` is whether a home was named rather than a store file. Raises ``Refused`` for a folder in
    the audited home (beside a store file that was named: the store's own folder, and folders of evidence in
    it), ``UsageError`` for one that cannot be used.
    """
    try:
        real, root = Path(os.path.realpath(folder)), Path(os.path.realpath(home.root))
        beside = real == Path(os.path.realpath(home.store)).parent
        inside = whole_home and real.is_relative_to(root)
        if beside or inside or any(real.is_relative_to(root / name) for name in _EVIDENCE):
            raise Refused(
                f"{folder}: lies in the audited home, where nothing is written; "
                f"choose a folder outside {home.root}"
            )
        if not os.path.lexists(folder):
            if not folder.parent.is_dir():
                raise UsageError(f"{folder}: the folder {folder.parent} does not exist; create it first")
            folder.mkdir(mode=0o700)
            _flush_folder(folder.parent)
        if not folder.is_dir():
            raise UsageError(f"{folder}: not a folder; name one to write the exports into")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UsageError(f"{folder}: this user may not write in it; choose another folder")
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise UsageError(f"{folder}: {said}; choose another folder") from error


class Draft:
    """A file that is written but has no name yet. ``sha256`` and ``size`` are of the bytes written."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.size = 0
        self._file = file
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def write(self, pieces: Iterable[bytes]) -> None:
        """Write all of it and wait until it is on the disk."""
        with self._file as file:
            for piece in pieces:
                file.write(piece)
                self._hash.update(piece)
                self.size += len(piece)
            file.flush()
            os.fsync(file.fileno())

    def publish(self, target: Path, *, replace: bool) -> None:
        """Give the file its name. Raises ``Refused`` when the name is taken and ``replace`` is false."""
        if replace:
            self.path.replace(target)
        else:
            self._claim(target)
        _flush_folder(target.parent)

    def _claim(self, target: Path) -> None:
        try:
            os.link(self.path, target, follow_symlinks=False)
        except FileExistsError as error:
            raise taken(target) from error
        except OSError:
            # A filesystem without hard links: hold the name with an empty file of our own.
            try:
                os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError as error:
                raise taken(target) from error
            try:
                self.path.replace(target)
            except OSError:
                target.unlink()
                raise
        else:
            self.path.unlink()


def taken(target: Path) -> Refused:
    """The refusal to write over a file."""
    return Refused(
        f"{target}: exists already and is kept as it is; choose another folder, move it aside, or say "
        "--force to replace an export that shows nothing more"
    )


@contextmanager
def drafted(target: Path) -> Iterator[Draft]:
    """A new draft beside ``target``, readable by this user alone. It is gone at the end unless published."""
    path = target.with_name(partial_name(target.name))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)  # whatever the umask is
            yield Draft(path, file)
    finally:
        path.unlink(missing_ok=True)


def check_manifest(folder: Path) -> None:
    """Raise ``Refused`` when the folder's manifest is not one, so that nothing is appended to it."""
    path = folder / MANIFEST
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_file():
        raise Refused(f"{path}: no regular file, so no export is listed in it; choose another folder")
    head = files.head(path)
    if head.strip() and manifest.recognise(head) is not Kind.MANIFEST:
        raise Refused(f"{path}: not a manifest of exports, so it is left alone; choose another folder")


def append_manifest(folder: Path, entry: ManifestLine) -> None:
    """Append one whole line to the folder's manifest and wait until it is on the disk.

    A last line that was cut off keeps its place: the new one starts behind a line break.
    """
    path = folder / MANIFEST
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Undetermined(f"{path}: no regular file; the export itself is written and stays")
            cut = status.st_size > 0 and os.pread(descriptor, 1, status.st_size - 1) != b"\n"
            line = manifest.render_line(entry).encode("utf-8", "backslashreplace")
            data = b"\n" + line if cut else line
            while data:
                data = data[os.write(descriptor, data) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _flush_folder(folder)
    except OSError as error:
        raise StatemendError(
            f"{path}: {error.strerror or error}; the export itself is written and stays"
        ) from error


def _flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can promise that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
