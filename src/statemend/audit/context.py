"""What a rule may ask: the store, what lies beside it, and what several rules share, computed once."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import cached_property

from statemend.evidence.coverage import SessionCoverage, assess
from statemend.evidence.inventory import Home, Inventory
from statemend.store.bundle import Bundle
from statemend.store.connection import Store
from statemend.store.history import Census, census
from statemend.store.lineage import Graph

from statemend.audit.structure import Structure, examine
from statemend.errors import StoreUnreadable

Progress = Callable[[str], None]


class Context:
    """One audit in progress. Everything lazy is computed at the first use and kept.

    ``store_label`` is the store's path as a report shows it; ``now`` is epoch seconds; ``deep`` asks for the
    thorough form of a check. ``refusal`` says why the store could not be opened, or is ``None``.
    """

    def __init__(
        self,
        *,
        home: Home,
        bundle: Bundle,
        store: Store | None,
        inventory: Inventory,
        now: float,
        deep: bool = False,
        refusal: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.home = home
        self.bundle = bundle
        self.inventory = inventory
        self.now = now
        self.deep = deep
        self.refusal = refusal
        self.progress = progress
        self._store = store

    @property
    def store_label(self) -> str:
        return self.home.store

    @property
    def readable(self) -> bool:
        """Whether the store could be opened. A rule with ``needs_store=False`` asks this first."""
        return self._store is not None

    @property
    def store(self) -> Store:
        """The opened store. Raises ``StoreUnreadable`` when it could not be opened."""
        if self._store is None:
            raise StoreUnreadable(self.refusal or f"{self.store_label} could not be opened")
        return self._store

    @cached_property
    def structure(self) -> Structure:
        """Which tables and indexes are damaged on the level of pages."""
        return examine(self.store, deep=self.deep)

    @cached_property
    def graph(self) -> Graph:
        """The lineage graph of the sessions that have relatives, or should have."""
        return Graph.load(self.store)

    @cached_property
    def census(self) -> Mapping[str, Census]:
        """Row counts by state and first and last time, for every session id that messages name."""
        return {entry.session_id: entry for entry in census(self.store)}

    @cached_property
    def coverage(self) -> tuple[SessionCoverage, ...]:
        """How the artifacts beside the store cover each session they name, and each with archived rows."""
        return tuple(assess(self.store, self.inventory))

    def command(self, verb: str, *arguments: str) -> str:
        """A ``statemend`` command line about this store, quoted for a shell."""
        return shlex.join(["statemend", verb, *arguments])
