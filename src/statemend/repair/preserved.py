"""Whether a file preserves a session whole, so that its rows may be deleted.

Nothing but a JSONL export of every row, of this session alone, does: it is read back and held against every
stored column of every row, and then as an audit would compare it. A file for people, a filtered or masked one
or one of several sessions never does, whatever it holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from statemend import formats
from statemend.errors import Refused, StatemendError, Undetermined
from statemend.evidence.walk import Skipped, status_of, walk
from statemend.formats.artifact import Artifact, Kind
from statemend.repair.cleanup_plan import Preserved
from statemend.repair.export_check import prove
from statemend.store.bundle import Bundle
from statemend.store.connection import Store
from statemend.store.history import View, session_record

_OF_SESSION = "SELECT id FROM main.messages WHERE session_id = ? ORDER BY id"


class Shelf:
    """The files that may preserve sessions, by the sessions that they name. ``skipped`` are those that could
    not be read."""

    def __init__(self, artifacts: Iterable[Artifact], skipped: Sequence[Skipped]) -> None:
        self.skipped = tuple(skipped)
        self._by_session: dict[str, list[Artifact]] = {}
        for artifact in artifacts:
            named = {name for section in artifact.sections for name in (section.session_id, *section.lineage)}
            for session_id in named:
                self._by_session.setdefault(session_id, []).append(artifact)

    def find(self, store: Store, session_id: str) -> Preserved:
        """The file that preserves the session whole. Raises ``Refused`` with the reason where none does."""
        candidates = self._by_session.get(session_id, [])
        if not candidates:
            unread = [each for each in self.skipped if each.unread]
            besides = f" ({unread[0].path} {unread[0].reason})" if unread else ""
            raise Refused(
                f"no file names it{besides}: write one with `statemend export … {session_id} -o DIR`"
            )
        reasons = []
        for artifact in candidates:
            if artifact.kind is not Kind.JSONL:
                reasons.append(f"{artifact.path} is {artifact.kind.value}, which never holds every column")
                continue
            found = Preserved(path=artifact.path, sha256=artifact.sha256)
            missing = not_whole(store, session_id, found)
            if not missing:
                return found
            reasons.append(f"{artifact.path}: {'; '.join(missing)}")
        raise Refused(f"no file holds every row of it: {' / '.join(reasons)}")


def collect(paths: Sequence[Path], bundle: Bundle) -> Shelf:
    """Read every file in the folders and files ``paths``. Raises ``UsageError`` for a path that is not
    there."""
    for path in paths:
        status_of(path, "a folder or a file with exports")
    skipped: list[Skipped] = []
    artifacts: list[Artifact] = []
    for found in walk(paths, paths):
        if isinstance(found, Skipped):
            skipped.append(found)
            continue
        if is_part_of_store(found.path, bundle):
            continue
        try:
            artifacts.append(formats.read(found.path))
        except Undetermined as error:
            skipped.append(Skipped(str(found.path), f"could not be read: {error}", unread=True))
    return Shelf(artifacts, skipped)


def is_part_of_store(path: Path, bundle: Bundle) -> bool:
    """Whether a path leads to a file of the store. Opening and closing one of those would release the locks
    that SQLite holds on it in this process."""
    real = os.path.realpath(bundle.main.path)
    if os.path.realpath(path) in {real + suffix for suffix in ("", "-wal", "-shm", "-journal")}:
        return True
    try:
        status = os.stat(path)
    except OSError:
        return False
    return any((status.st_dev, status.st_ino) == (file.device, file.inode) for file in bundle.files)


def not_whole(store: Store, session_id: str, preserved: Preserved) -> tuple[str, ...]:
    """Why the file does not hold every row of the session as the store has it now; nothing when it does.

    The canonical columns that a store lacks must be there as views (``cleanup_rows.with_views``).
    """
    path = Path(preserved.path)
    if not path.is_file() or is_part_of_store(path, store.bundle):
        return ("it is not there",)
    record = session_record(store, session_id)
    if record is None:
        return ("the session has no row",)
    row_ids = [row_id for (row_id,) in store.rows(_OF_SESSION, (session_id,))]
    try:
        proof = prove(
            store,
            record,
            path,
            sha256=preserved.sha256,
            kind=Kind.JSONL,
            view=View.RAW,
            row_ids=row_ids,
        )
    except StatemendError as error:
        return (str(error),)
    if proof.complete and proof.lossy:
        return (f"it holds {proof.lossy:,} messages without all of their columns",)
    return proof.reasons


def have_on_disk(preserved: Preserved) -> None:
    """Have the file on the disk with its name, whoever wrote it: soon it is the only copy. Raises
    ``OSError``."""
    for path in (preserved.path, os.path.dirname(preserved.path)):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
