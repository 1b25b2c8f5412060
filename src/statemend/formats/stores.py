"""Other stores: snapshots, backups, quarantined and retired copies of a ``state.db``.

One is opened as safely as the audited store, never leaving a trace, and shows whole rows. A store inside an
archive is named ``ARCHIVE!MEMBER`` and is unpacked into a private folder for as long as it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from statemend.errors import StatemendError, StoreHeld, StoreUnreadable, Undetermined
from statemend.formats import archives, clock, files
from statemend.formats.archive_member import ArchiveFault
from statemend.formats.artifact import Artifact, Kind, Record, Section
from statemend.formats.jsonl import record_of
from statemend.store import history
from statemend.store.connection import Store, open_for_audit
from statemend.store.schema import STORE_TABLES

#: The kinds of which this module shows the messages.
SHOWN: Final = frozenset({Kind.STORE})
MAGIC = b"SQLite format 3\0"
#: SQLite keeps a log and a journal in files of these names beside a database.
SIDECARS = ("-wal", "-shm", "-journal")

#: Answered from an index, whatever the messages weigh.
_MEASURES = "COUNT(*), MAX(id), SUM(id & 4294967295)"
_EXTENTS = f"""
SELECT session_id, {_MEASURES}
FROM messages
WHERE typeof(session_id) = 'text'
GROUP BY session_id
ORDER BY session_id
"""
_UP_TO = f"SELECT {_MEASURES} FROM messages WHERE session_id = ? AND id <= ?"
_SESSION = "SELECT title, started_at, parent_session_id, message_count FROM sessions WHERE id = ?"
_NEEDED = ("session_id", "role", "content")
#: The table of what an API server keeps, in a database that is read like a store.
RESPONSES = "responses"
_EXPECTED = STORE_TABLES | {RESPONSES}
#: Several may be open at a time.
_CACHE_KIB = 4 * 1024


class Extent(NamedTuple):
    """Which rows a store has of a session: two that are equal are of the same row ids. ``last`` is the
    highest of them, ``total`` their sum as far as it fits."""

    rows: int
    last: int | None
    total: int | None


def recognise(head: bytes) -> Kind | None:
    """``Kind.STORE`` for any SQLite database: whose it is shows when it is opened."""
    return Kind.STORE if head.startswith(MAGIC) else None


def read(path: Path) -> Artifact:
    """Every session that the messages of the store name, one section each. A database of another program is
    unclassified.

    Raises ``Undetermined`` when the system cannot read it, or a process holds it.
    """
    scan = files.Scan(archives.split(path)[0]).drain()
    artifact = Artifact(str(path), Kind.STORE, scan.size, scan.modified_at, scan.sha256)
    try:
        with opened(path) as store:
            if not is_hermes(store):
                return msgspec.structs.replace(artifact, kind=Kind.UNCLASSIFIED)
            sections = tuple(section_of(store, session_id) for session_id, _ in extents(store))
            damage = None if store.unchanged() else "the file changed while it was read"
            return msgspec.structs.replace(artifact, sections=sections, damage=damage)
    except (StoreUnreadable, ArchiveFault) as error:
        return msgspec.structs.replace(artifact, damage=without_path(error, path))


def records(path: Path, section: Section) -> Iterator[Record]:
    """Every row of one session in the order of the row ids, whatever its state; ``row`` has all its columns.

    Raises ``Undetermined`` where the store cannot be read.
    """
    with opened(path) as store:
        yield from records_of(store, section.session_id)


def records_of(store: Store, session_id: str) -> Iterator[Record]:
    """The same, of a store that is open."""
    for position, row in enumerate(history.records(store, session_id, history.View.RAW)):
        role = row.get("role")
        named = row if isinstance(role, str) else {**row, "role": repr(role)}
        yield msgspec.structs.replace(record_of(named, position), row=row)


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    """The store at ``path``, which may lie in an archive, open for reading; or what an API server keeps.

    Raises ``StoreUnreadable`` for a broken one, ``Undetermined`` when a process holds it or its archive may
    not be unpacked.
    """
    with ExitStack() as stack:
        file = stack.enter_context(archives.extracted(path))
        try:
            store = stack.enter_context(open_for_audit(file, cache_kib=_CACHE_KIB, expected=_EXPECTED))
        except StoreHeld as error:
            raise Undetermined(f"{path}: {without_path(error, file)}") from error
        except StoreUnreadable as error:
            raise StoreUnreadable(f"{path}: {without_path(error, file)}") from error
        store.path = str(path)
        yield store


def is_hermes(store: Store) -> bool:
    """Whether the database is a store of Hermes: it has messages that belong to sessions."""
    return all(store.has_column("messages", column) for column in _NEEDED)


def extents(store: Store) -> Iterator[tuple[str, Extent]]:
    """The sessions that messages name, in the order of their ids, and which rows each has."""
    for session_id, *measures in store.rows(_EXTENTS):
        yield session_id, Extent(*measures)


def extent_up_to(store: Store, session_id: str, last: int | None) -> Extent:
    """Which rows a session has up to the row id ``last``."""
    return Extent(*(store.one(_UP_TO, (session_id, last)) or (0, None, None)))


def section_of(store: Store, session_id: str) -> Section:
    """One session of an open store. Raises ``StoreUnreadable``."""
    title, started_at, parent, count = store.one(_SESSION, (session_id,)) or (None,) * 4
    found = next(history.census(store, session_id), None)
    hidden = found.archived + found.rewound if found else 0
    return Section(
        session_id=session_id,
        offset=0,
        length=0,
        title=title if isinstance(title, str) else None,
        started_at=clock.finite(started_at),
        parent_id=parent if isinstance(parent, str) else None,
        source_count=count if isinstance(count, int) else None,
        held=found.live + found.unset + hidden if found else 0,
        inactive=hidden,
        first_at=found.first_at if found else None,
        last_at=found.last_at if found else None,
    )


def without_path(error: StatemendError, path: Path) -> str:
    """What an error says of a store, without the path that it begins with."""
    return str(error).removeprefix(f"{path}: ")
