"""What a rule may ask: the store, what lies beside it, and what several rules share, computed once."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from statemend.audit.company import Company, Member
from statemend.audit.known import is_known
from statemend.audit.structure import Structure, examine
from statemend.audit.suspects import suspects
from statemend.audit.zone import LocalClocks
from statemend.errors import StatemendError, StoreUnreadable
from statemend.evidence.coverage import SessionCoverage, assess
from statemend.evidence.inventory import Home, Inventory
from statemend.store.bundle import Bundle
from statemend.store.connection import Store
from statemend.store.history import Census, census
from statemend.store.lineage import Graph

if TYPE_CHECKING:
    from statemend.audit.rule import Rule

Progress = Callable[[str], None]
T = TypeVar("T")


class Context:
    """One audit in progress. What is lazy is computed at its first use and kept; so is the error if it fails.

    ``store_label`` is the store's path as a report shows it; ``now`` is epoch seconds; ``deep`` asks for the
    thorough form of a check. ``refusal`` says why the store could not be opened, or is ``None``; ``foreign``
    is whether that is because it is a sound database of another program. ``company`` are the other stores of
    the home, ``None`` where one store alone was named.
    """

    def __init__(
        self,
        *,
        home: Home,
        bundle: Bundle,
        store: Store | None,
        inventory: Inventory,
        now: float,
        company: Company | None = None,
        deep: bool = False,
        refusal: str | None = None,
        foreign: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.home = home
        self.bundle = bundle
        self.looked_beside = False
        self._inventory = inventory
        self.company = company
        self.now = now
        self.deep = deep
        self.refusal = refusal
        self.foreign = foreign
        self._progress = progress
        self._store = store
        self._kept: dict[str, Any] = {}
        self._signs: dict[str, str] = {}

    @property
    def inventory(self) -> Inventory:
        """What lies beside the store. ``looked_beside`` then is true: from here on a file that could not be
        read leaves something undetermined."""
        self.looked_beside = True
        return self._inventory

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

    def trusts(self, *tables: str) -> bool:
        """Whether the store could be opened and has these tables, undamaged."""
        if self._store is None:
            return False
        return all(self._store.table_exists(table) for table in tables) and not (
            self.structure.untrusted.keys() & set(tables)
        )

    def elsewhere(self, session_id: str) -> tuple[Member, ...]:
        """The other stores of the home that have anything of a session."""
        return self.company.holding(session_id) if self.company else ()

    def has(self, session_id: str) -> bool:
        """Whether the store, or another of its home, has anything of a session."""
        return is_known(self.store, session_id) or bool(self.elsewhere(session_id))

    @property
    def structure(self) -> Structure:
        """Which tables and indexes are damaged on the level of pages."""
        return self.once("structure", lambda: examine(self.store, deep=self.deep))

    @property
    def graph(self) -> Graph:
        """The lineage graph of the sessions that have relatives, or should have."""
        return self.once("graph", lambda: Graph.load(self.store))

    @property
    def census(self) -> Mapping[str, Census]:
        """Row counts by state and first and last time, for every session id that messages name."""
        return self.once("census", lambda: {row.session_id: row for row in census(self.store)})

    @property
    def clocks(self) -> LocalClocks:
        """How far local clocks were from UTC, as the ids of the sessions tell."""
        return self.once("clocks", lambda: LocalClocks.load(self.store))

    def expect(self, rules: Iterable[Rule]) -> None:
        """Say which rules will be run, so that one pass over the messages can serve them all."""
        self._signs = {rule.id: rule.sign for rule in rules if rule.sign is not None}

    def suspects(self, rule: Rule) -> tuple[Any, ...]:
        """The ids of the sessions that show the sign of ``rule``, of whatever type they are. Raises
        ``ValueError`` for a rule that has none."""
        if rule.sign is None:
            raise ValueError(f"{rule.id} has no sign")
        if rule.id in self._signs:
            with suppress(StoreUnreadable):  # perhaps by a cell that only another rule has to read
                return self.once("suspects", lambda: suspects(self.store, self._signs))[rule.id]
        return suspects(self.store, {rule.id: rule.sign})[rule.id]

    @property
    def coverage(self) -> tuple[SessionCoverage, ...]:
        """How the artifacts beside the store cover each session they name, and each with archived rows."""
        return self.once("coverage", lambda: tuple(assess(self.store, self.inventory, self._progress)))

    @property
    def computed_graph(self) -> Graph | None:
        """The graph, if a rule has asked for it."""
        graph: Graph | None = self._computed("graph")
        return graph

    @property
    def computed_coverage(self) -> tuple[SessionCoverage, ...]:
        """The coverage, if a rule has asked for it; otherwise empty."""
        return self._computed("coverage") or ()

    @staticmethod
    def command(verb: str, *arguments: str, output: str | None = None) -> str:
        """A ``statemend`` command line, quoted for a shell; what begins like an option is not taken for
        one. ``output`` is the file or folder that the command writes."""
        written = [] if output is None else ["-o", output]
        guard = ["--"] if any(argument.startswith("-") for argument in arguments) else []
        return shlex.join(["statemend", verb, *written, *guard, *arguments])

    def lasting_name(self, path: str) -> str:
        """A file's name for the id of a finding: the same however the home was named on the command line, and
        for a file of the home the same after the home has moved."""
        real, root = os.path.realpath(path), os.path.realpath(self.home.root)
        return os.path.relpath(real, root) if Path(real).is_relative_to(root) else real

    def report(self, text: str) -> None:
        """Tell whoever waits what is being done."""
        if self._progress is not None:
            self._progress(text)

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """What ``compute`` gives, or the ``StatemendError`` that it raises, kept under this name."""
        if name not in self._kept:
            try:
                self._kept[name] = compute()
            except StatemendError as error:
                self._kept[name] = error
        kept = self._kept[name]
        if isinstance(kept, StatemendError):
            raise kept
        return kept  # type: ignore[no-any-return]

    def _computed(self, name: str) -> Any:
        kept = self._kept.get(name)
        return None if isinstance(kept, StatemendError) else kept
