"""Opens the stores that are audited, and says of each what it is."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from statemend.audit.outcome import StoreFacts
from statemend.errors import StatemendError, StoreUnreadable, Undetermined, UsageError
from statemend.evidence.inventory import Home
from statemend.store.bundle import Bundle, inspect
from statemend.store.connection import Access, Store, StoreFault, open_for_audit

#: What SQLite keeps in memory of all stores that are open at once, and of each at least, in KiB. More makes
#: an audit slower: it goes through a store in order, and the system keeps what was read.
_CACHE_KIB, _LEAST_KIB = 4 * 1024, 1024


class Opened(NamedTuple):
    """A store of a home, as far as it could be opened. ``refusal`` says why it could not be; ``bundle`` is
    ``None`` when not even its bytes could be looked at. ``foreign`` is whether it is a sound database of
    another program."""

    home: Home
    bundle: Bundle | None = None
    store: Store | None = None
    refusal: StatemendError | None = None
    foreign: bool = False

    def require(self) -> Store:
        """The store itself. Raises what kept it from being opened."""
        if self.store is None:
            raise self.refusal or StoreUnreadable(f"{self.home.store} could not be opened")
        return self.store


def open_store(home: Home, stack: ExitStack, *, live: bool, stores: int = 1) -> Opened:
    """Open the store of ``home`` until ``stack`` is left, as one of so many ``stores`` that are open at once.
    Raises ``StoreHeld`` when a process has it open and ``live`` is false."""
    try:
        bundle = inspect(Path(home.store))
    except (Undetermined, UsageError) as error:
        return Opened(home, refusal=error)
    try:
        cache = max(_LEAST_KIB, _CACHE_KIB // stores)
        opened = open_for_audit(Path(bundle.path), live=live, cache_kib=cache)
        return Opened(home, bundle, stack.enter_context(opened))
    except StoreFault as error:
        return Opened(home, bundle, refusal=error)
    except StoreUnreadable as error:
        # What SQLite refused comes from its own error; what the schema reader refused comes from ours.
        return Opened(home, bundle, refusal=error, foreign=isinstance(error.__cause__, StoreUnreadable))


def facts_of(opened: Opened) -> StoreFacts:
    """What there is to say of a store after it was read, and whether it is still as it was before."""
    bundle, store = opened.bundle, opened.store
    header = bundle.header if bundle else None
    facts = StoreFacts(
        path=opened.home.store,
        size=bundle.main.size if bundle else 0,
        wal_size=bundle.wal.size if bundle and bundle.wal else 0,
        siblings=bundle.siblings if bundle else (),
        journal=header.journal if header else None,
        page_size=header.page_size if header else None,
        refusal=None if opened.refusal is None else str(opened.refusal),
        profile=opened.home.profile,
    )
    if store is None:
        return facts
    return msgspec.structs.replace(
        facts,
        access=store.access.value,
        schema_version=store.schema.version,
        era=store.schema.era.name,
        sqlite_version=store.sqlite_version,
        sessions=_count(store, "sessions"),
        messages=_count(store, "messages"),
        holders=store.holders,
        unchanged=unchanged(opened),
    )


def unchanged(opened: Opened) -> bool | None:
    """Whether the store is as it was before it was opened; ``None`` for one that could not be opened or that
    a process holds."""
    store = opened.store
    return None if store is None or store.access is Access.BACKUP else store.unchanged()


def _count(store: Store, table: str) -> int | None:
    """The rows of a table, ``None`` when it is not there or cannot be read."""
    if not store.table_exists(table):
        return None
    try:
        return int(store.value(f"SELECT COUNT(*) FROM {table}"))
    except StoreUnreadable:
        return None
