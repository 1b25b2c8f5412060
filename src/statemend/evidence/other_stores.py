"""Other stores beside the audited one: which of its sessions, and which rows of them, they still have.

A home may keep twenty of a gigabyte each. So only lists of sessions are read here, answered from indexes,
and of those only what the audited store lacks is kept, once for each set of rows. A *deep* look keeps all,
and unpacks and copies whatever that takes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

import msgspec

from statemend.errors import StatemendError, StoreUnreadable
from statemend.evidence.walk import Found, Skipped
from statemend.formats import archives, files, response_store, stores
from statemend.formats.archive_member import STORE_NAME, ArchiveFault
from statemend.formats.artifact import Artifact, Kind, Section
from statemend.formats.stores import Extent
from statemend.store.bundle import SIBLING_MARKS, inspect
from statemend.store.connection import Store
from statemend.store.index_texts import count_leftovers

Progress = Callable[[str], None]

#: Where a home keeps other stores, beside those that lie next to its own.
FOLDERS = ("state-snapshots", "backups")
#: How the names begin of what Hermes and people leave next to a store.
_STEM = "state"
_RESPONSES = "response_store.db"
_ARCHIVES = (".zip", ".tar.gz", ".tgz")
_RETIRED = ".retired-wal-"
#: Copies that Hermes deletes by itself when it has made some more.
_PASSING_FILES = ("pre-update-", "pre-migration-")
_PASSING_SIBLINGS = (".malformed-backup-", ".pre-update-emergency-")

#: So many bytes are unpacked and copied without being asked for more, and no larger file is hashed.
_UNASKED = 256 * 1024**2
_HASHED = 16 * 1024**2
_ASK = "it is looked at with --deep"


def is_passing(root: Path, path: str) -> bool:
    """Whether a store is one of those that Hermes deletes in their turn: evidence to restore from as long as
    it is there, and no preservation. ``root`` is the home's folder."""
    parts = _below(root, path)
    if not parts or parts[0] == FOLDERS[0]:
        return bool(parts)
    if parts[0] == FOLDERS[1]:
        return parts[-1].startswith(_PASSING_FILES)
    return len(parts) == 1 and parts[0].startswith(tuple(STORE_NAME + mark for mark in _PASSING_SIBLINGS))


def is_own(root: Path, path: str) -> bool:
    """Whether a store lies where a home keeps copies of its own, and not somewhere else in it: there it may
    be another profile's, or another machine's."""
    return is_in_folder(root, path) or any(
        each.startswith(f"{STORE_NAME}.") for each in _below(root, path)[:1]
    )


def is_in_folder(root: Path, path: str) -> bool:
    """Whether a store lies in one of ``FOLDERS``, which no clone of a profile gets without the store."""
    return any(each in FOLDERS for each in _below(root, path)[:1])


def _below(root: Path, path: str) -> tuple[str, ...]:
    """The way from the home's folder to a store, or to the archive that it lies in; empty outside."""
    real = os.path.realpath(archives.split(Path(path))[0])
    try:
        return Path(real).relative_to(os.path.realpath(root)).parts
    except ValueError:
        return ()


def places(root: Path) -> list[Path]:
    """The folders of a home, and the files next to its store, in which other stores may lie."""
    found = [root / name for name in FOLDERS if os.path.lexists(root / name)]
    try:
        with os.scandir(root) as entries:
            named = sorted(entry.name for entry in entries if _may_be_copy(entry))
    except OSError:
        return found
    return [*found, *(root / name for name in named)]


def _may_be_copy(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if name in {STORE_NAME, *(STORE_NAME + suffix for suffix in stores.SIDECARS)}:
        return False
    if entry.is_dir(follow_symlinks=False):
        return name.startswith(STORE_NAME + _RETIRED)
    return name.startswith(_STEM) or name == _RESPONSES or name.endswith(_ARCHIVES)


def is_sidecar(path: Path) -> bool:
    """Whether a file is the log or the journal of a database next to it."""
    suffix = next((suffix for suffix in stores.SIDECARS if path.name.endswith(suffix)), None)
    return suffix is not None and os.path.isfile(os.fspath(path).removesuffix(suffix))


def ruined(path: Path) -> Skipped | None:
    """What is wrong with a file that was put aside as a store and is none any more."""
    if not path.name.startswith(tuple(STORE_NAME + mark for mark in SIBLING_MARKS)):
        return None
    fault = inspect(path)
    return Skipped(str(path), f"put aside as a store, and none: {fault.detail} ({fault.fault})")


def look(
    candidates: Iterable[Found], store: Store | None, *, deep: bool, progress: Progress | None = None
) -> tuple[list[Artifact], list[Skipped]]:
    """The stores among ``candidates``, databases and archives, newest first, and what was not looked at. What
    an API server keeps is among them: it is a database, and shows sessions as files do.

    The sections of each are the sessions of which it has rows that ``store``, the audited one, lacks.
    """
    looker = _Looker(store, deep=deep)
    found: list[Artifact] = []
    skipped: list[Skipped] = []
    newest = sorted(candidates, key=lambda each: (each.modified_at, str(each.path)), reverse=True)
    for number, candidate in enumerate(newest, start=1):
        if progress is not None:
            progress(f"looking at {number} of {len(newest)} other stores")
        for result in looker.look(candidate):
            if isinstance(result, Skipped):
                skipped.append(result)
            else:
                found.append(result)
    return found, skipped


class _Looker:
    """Looks at one store after the other; remembers what newer ones have, and what was spent."""

    def __init__(self, audited: Store | None, *, deep: bool) -> None:
        self._audited = audited
        self._deep = deep
        self._listed: dict[str, list[Extent]] = {}
        self._left = _UNASKED

    def look(self, found: Found) -> Iterator[Artifact | Skipped]:
        path = str(found.path)
        artifact = Artifact(path, Kind.STORE, found.size, found.modified_at, "")
        try:
            if files.head(found.path).startswith(stores.MAGIC):
                yield from self._database(artifact, found.path, _log_size(found.path))
            else:
                yield from self._archive(artifact, found.path)
        except ArchiveFault as error:
            if error.broken:
                kind = Kind.ARCHIVE if artifact.path == path else artifact.kind
                yield msgspec.structs.replace(artifact, kind=kind, damage=str(error))
            else:
                yield Skipped(path, str(error), unread=True)
        except StatemendError as error:
            yield Skipped(path, stores.without_path(error, found.path), unread=True)

    def _archive(self, artifact: Artifact, path: Path) -> Iterator[Artifact | Skipped]:
        if not path.name.endswith(_ARCHIVES[0]) and not self._affords(artifact.size):
            yield Skipped(artifact.path, f"an archive of {artifact.size:,} bytes without a directory; {_ASK}")
            return
        member = archives.find(path)
        if member is None:
            yield Skipped(artifact.path, f"an archive without a {STORE_NAME}")
            return
        inner = archives.member_path(path, member)
        yield from self._database(msgspec.structs.replace(artifact, path=str(inner)), inner, member.size)

    def _database(self, artifact: Artifact, path: Path, copied: int) -> Iterator[Artifact | Skipped]:
        """``copied`` is how many bytes must be written to a private place before it can be read."""
        if copied and not self._affords(copied):
            yield Skipped(artifact.path, f"a store that takes a copy of {copied:,} bytes to read; {_ASK}")
            return
        if self._deep or artifact.size <= _HASHED:
            artifact = msgspec.structs.replace(
                artifact, sha256=files.Scan(archives.split(path)[0]).drain().sha256
            )
        older = 0
        try:
            with stores.opened(path) as store:
                if response_store.is_one(store):
                    yield _responses(artifact, store)
                    return
                if not stores.is_hermes(store):
                    yield Skipped(artifact.path, "a database, not an export")
                    return
                sections: list[Section] = []
                for session_id, extent in stores.extents(store):
                    if not self._lacks(session_id, extent):
                        continue
                    listed = self._listed.setdefault(session_id, [])
                    if not self._deep and extent in listed:
                        older += 1
                        continue
                    listed.append(extent)
                    sections.append(stores.section_of(store, session_id))
                if self._deep and (texts := count_leftovers(store)):
                    sections.append(_of_index(texts))
                damage = None if store.unchanged() else "the file changed while it was read"
        except StoreUnreadable as error:
            yield msgspec.structs.replace(artifact, damage=stores.without_path(error, path))
            return
        yield msgspec.structs.replace(artifact, sections=tuple(sections), damage=damage)
        if older:
            sessions = "1 session is" if older == 1 else f"{older:,} sessions are"
            yield Skipped(artifact.path, f"{sessions} listed from a newer store with the same rows; {_ASK}")

    @cached_property
    def _known(self) -> Mapping[str, Extent]:
        """The rows of each session of the audited store; none where it cannot be read. Most homes have no
        other store that they are held against."""
        try:
            return dict(stores.extents(self._audited)) if self._audited is not None else {}
        except StoreUnreadable:
            return {}

    def _lacks(self, session_id: str, theirs: Extent) -> bool:
        """Whether the audited store lacks a row of these, told by the ids alone: it may well have the message
        under another, and the comparison by content then says so."""
        ours = self._known.get(session_id)
        if ours is None or self._audited is None:
            return True
        return ours != theirs and stores.extent_up_to(self._audited, session_id, theirs.last) != theirs

    def _affords(self, size: int) -> bool:
        """Whether so many bytes may still be read or written without being asked for; they are then spent."""
        if not self._deep:
            if size > self._left:
                return False
            self._left -= size
        return True


def _responses(artifact: Artifact, store: Store) -> Artifact:
    sections = tuple(response_store.sections(store))
    return msgspec.structs.replace(artifact, kind=Kind.RESPONSES, sections=sections)


def _of_index(texts: int) -> Section:
    """What the search index kept of messages that are gone: nobody's until an artifact names their rows."""
    kept = "1 message" if texts == 1 else f"{texts:,} messages"
    note = f"texts of {kept} whose rows are gone, in the search index: without role, time and session"
    return Section("", 0, 0, held=texts, damage=note)


def _log_size(path: Path) -> int:
    """The bytes to copy of a database that cannot be read as it lies: all, where a log or a journal has
    something to add to it."""
    bundle = inspect(path)
    if not (bundle.wal_content or bundle.hot_journal):
        return 0
    return bundle.main.size + (bundle.wal.size if bundle.wal else 0)
