"""Whether a session may be deleted now, and what goes with it, or which of its copies may be collapsed. Asked
when planning, before the change, and once more inside the fence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from statemend.errors import Refused
from statemend.repair import cleanup_copies, cleanup_rows
from statemend.repair.cleanup_plan import (
    Ancestor,
    CleanupPlan,
    Collapse,
    Entry,
    Kept,
    Member,
    Preserved,
    Rows,
)
from statemend.repair.marks import SUBSTRING_INDEX
from statemend.repair.preserved import not_whole
from statemend.repair.search import foreign_index
from statemend.store.connection import Store
from statemend.store.content import parse_json
from statemend.store.history import census
from statemend.store.holders import Lease, leases
from statemend.store.lineage import Graph, Relation
from statemend.store.schema import Era

#: Chooses the file that preserves a session; raises ``Refused``.
Choose = Callable[[Store, str], Preserved]
#: Seconds. What is written to a session later than this after its end shows that it went on.
_LATE = 60.0


class Examination:
    """One look at a store: the graph, the leases, the routing, read once. ``now`` is epoch seconds.

    ``index_fits`` says whether the substring index fits its messages as this SQLite reads it.
    """

    def __init__(self, store: Store, *, now: float, index_fits: Callable[[], bool]) -> None:
        self.store = store
        self.graph = Graph.load(store)
        self._index_fits = index_fits
        self._references = cleanup_rows.references(store)
        self._live: Mapping[str, Lease] = {
            lease.key: lease for lease in leases(store, now) if lease.live is not False
        }
        self._routed = set(_routed(store))
        self._stays = cleanup_copies.Staying(store, index_fits)

    def entry(self, session_id: str, choose: Choose) -> Entry:
        """What deleting this session means, with the file that preserves each session that goes.

        Raises ``Refused`` with the reason why it is kept.
        """
        ids, detached = self._deletion(session_id)
        ancestors = tuple(self._ancestors(ids))
        self._check_leases(ids, detached, ancestors)
        self._check_foreign_index()
        members = tuple(self._member(each, session_id, choose) for each in ids)
        return Entry(
            session=session_id,
            members=members,
            detached=detached,
            ancestors=ancestors,
            besides=self._besides(ids),
        )

    def collapse(self, session_id: str, *, room: int | None = None) -> Collapse:
        """What collapsing the copies in this session means. At most ``room`` bytes of them go.

        The session may be an open one: the rows that it goes on from stay. Raises ``Refused`` with the reason
        why it is kept as it is.
        """
        title = self.store.one("SELECT title, source FROM main.sessions WHERE id = ?", (session_id,))
        if title is None:
            raise Refused("the store has no row of it")
        self._check_leases((session_id,), (), tuple(self._ancestors((session_id,))))
        self._check_foreign_index()
        rows = cleanup_rows.rows_of(self.store, session_id)
        if title[1] == "recovered" and self._counts_archived(session_id, rows):
            raise Refused("its message_count counts archived rows, as a recovery sets it: repair that first")
        going, left, found = self._stays.sort_out(session_id, room)
        digest, _ = cleanup_rows.digest_of(self.store, session_id)
        return Collapse(
            session=session_id,
            title=title[0] if isinstance(title[0], str) else None,
            rows=rows,
            digest=digest,
            copies=going,
            messages=found.messages,
            size=sum(found.surplus[each] for each in going),
            left=left,
        )

    def _counts_archived(self, session_id: str, rows: Rows) -> bool:
        counted = self.store.value("SELECT message_count FROM main.sessions WHERE id = ?", (session_id,))
        return isinstance(counted, int) and counted > rows.total - rows.archived

    def _deletion(self, session_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if self.store.one("SELECT 1 FROM main.sessions WHERE id = ?", (session_id,)) is None:
            raise Refused("the store has no row of it")
        own = self.graph.deletion(session_id, self.store.schema.era)
        newest = self.graph.deletion(session_id, Era.V22)
        if own != newest:
            more = sorted(set(own.deleted) ^ set(newest.deleted))
            raise Refused(f"releases disagree on whether {', '.join(more)} goes with it: settle that first")
        delegates = [each for each in own.deleted if each != session_id]
        for each in delegates:
            edge = self.graph.edge(each)
            if edge is not None and edge.relation is not Relation.DELEGATE:
                raise Refused(
                    f"{each} bears the mark of a subagent and does not read as one ({edge.relation.value}): "
                    "settle that first with `statemend plan`"
                )
        return (session_id, *delegates), own.detached

    def _ancestors(self, ids: tuple[str, ...]) -> Iterator[Ancestor]:
        seen = set(ids)
        for each in ids:
            for above in self._above(each):
                if above in seen:
                    break
                seen.add(above)
                continued = each in {child.id for child in self.graph.continuations(above)}
                yield Ancestor(above, "its conversation no longer goes on" if continued else "stays as it is")

    def _above(self, session_id: str) -> Iterator[str]:
        seen = {session_id}
        node = self.graph.nodes.get(session_id)
        while node is not None and node.parent_id and node.parent_id not in seen:
            seen.add(node.parent_id)
            yield node.parent_id
            node = self.graph.nodes.get(node.parent_id)

    def _check_leases(
        self, ids: tuple[str, ...], detached: tuple[str, ...], ancestors: tuple[Ancestor, ...]
    ) -> None:
        """A lease is kept under the root of a conversation, so one above guards this session too."""
        callers = [node.delegate_from for node in map(self.graph.nodes.get, ids) if node is not None]
        guarded = dict.fromkeys(
            [*ids, *detached, *(each.session for each in ancestors), *filter(None, callers)]
        )
        for each in guarded:
            lease = self._live.get(each)
            if lease is not None:
                raise Refused(f"a {lease.kind} on {each} is live, held by {lease.holder}")

    def _member(self, session_id: str, asked: str, choose: Choose) -> Member:
        whose = "" if session_id == asked else f"its subagent {session_id}: "
        try:
            self._check_settled(session_id)
            self._check_index(session_id)
            preserved = choose(self.store, session_id)
        except Refused as error:
            raise Refused(f"{whose}{error}") from error
        title = self.store.value("SELECT title FROM main.sessions WHERE id = ?", (session_id,))
        digest, size = cleanup_rows.digest_of(self.store, session_id)
        return Member(
            session=session_id,
            title=title if isinstance(title, str) else None,
            rows=cleanup_rows.rows_of(self.store, session_id),
            size=size,
            digest=digest,
            preserved=preserved,
        )

    def _check_settled(self, session_id: str) -> None:
        ended = self.store.value("SELECT ended_at FROM main.sessions WHERE id = ?", (session_id,))
        if not isinstance(ended, int | float):
            raise Refused("it was never ended, so it may go on: end it in Hermes first")
        counted = next(iter(census(self.store, session_id)), None)
        if counted is not None and counted.last_at is not None and counted.last_at > ended + _LATE:
            raise Refused("it was written to after its end, so it may go on: end it in Hermes first")
        if session_id in self._routed:
            raise Refused("a chat is still routed to it: reset that chat in Hermes first")

    def _check_foreign_index(self) -> None:
        if index := foreign_index(self.store, "delete"):
            raise Refused(
                f"{index} has to forget what goes, and needs a tokenizer that is not here: leave it to Hermes"
            )

    def _check_index(self, session_id: str) -> None:
        if cleanup_rows.holds_nul(self.store, session_id) and not self._index_fits():
            raise Refused(
                f"a text of it holds a NUL, and {SUBSTRING_INDEX} was built by another SQLite, which alone "
                "can take such text out: delete it with Hermes itself"
            )

    def _besides(self, ids: tuple[str, ...]) -> dict[str, int]:
        """Rows of other tables that go, by table. Raises ``Refused`` for rows that would be in the way."""
        found: dict[str, int] = {}
        for reference in self._references:
            named = {each: cleanup_rows.named_by(self.store, reference, each) for each in ids}
            count = sum(named.values())
            if not count:
                continue
            if not reference.cascades:
                raise Refused(f"rows of {reference.table} name it, and would be left without it")
            if not all(
                cleanup_rows.can_be_undone(self.store, reference, each) for each in ids if named[each]
            ):
                raise Refused(f"rows of {reference.table} name it, and could not be had back")
            found[reference.table] = found.get(reference.table, 0) + count
        return found


class Holding(msgspec.Struct, frozen=True):
    """What of a plan may be carried out now, and what is kept as it is, each with the reason."""

    entries: tuple[Entry, ...]
    collapses: tuple[Collapse, ...]
    kept: tuple[Kept, ...]

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to carry out."""
        return not (self.entries or self.collapses)


def still_holds(examination: Examination, plan: CleanupPlan) -> Holding:
    """Ask again for everything that a plan names."""
    entries: list[Entry] = []
    collapses: list[Collapse] = []
    kept: list[Kept] = []
    for entry in plan.entries:
        try:
            _check_same(entry, examination.entry(entry.session, _as_planned(entry)))
        except Refused as error:
            kept.append(Kept(entry.session, str(error)))
        else:
            entries.append(entry)
    for collapse in plan.collapses:
        try:
            _check_same_copies(collapse, examination.collapse(collapse.session))
        except Refused as error:
            kept.append(Kept(collapse.session, str(error)))
        else:
            collapses.append(collapse)
    return Holding(tuple(entries), tuple(collapses), tuple(kept))


def _as_planned(entry: Entry) -> Choose:
    """Takes the file that the plan names, if it still holds every row."""
    planned = {member.session: member.preserved for member in entry.members}

    def choose(store: Store, session_id: str) -> Preserved:
        preserved = planned.get(session_id)
        if preserved is None:
            raise Refused("it goes with it, and was not there when the plan was made: plan again")
        missing = not_whole(store, session_id, preserved)
        if missing:
            raise Refused(f"{preserved.path} does not hold every row of it: {'; '.join(missing)}")
        return preserved

    return choose


def _check_same(planned: Entry, found: Entry) -> None:
    if [each.session for each in planned.members] != [each.session for each in found.members]:
        raise Refused("other sessions go with it than when the plan was made: plan again")
    if planned.detached != found.detached:
        raise Refused("it has other children than when the plan was made: plan again")
    for before, now in zip(planned.members, found.members, strict=True):
        if (before.digest, before.rows) != (now.digest, now.rows):
            raise Refused(f"{now.session} changed since the plan was made: plan again")
    if planned.besides != found.besides:
        raise Refused("other rows hang on it than when the plan was made: plan again")


def _check_same_copies(planned: Collapse, found: Collapse) -> None:
    if planned.digest != found.digest:
        raise Refused("it changed since the plan was made: plan again")
    if not set(planned.copies) <= set(found.copies):
        raise Refused("not every row that the plan names only repeats another: plan again")


def _routed(store: Store) -> Iterator[str]:
    """The sessions that chats are routed to."""
    if not store.schema.has("gateway_routing", "entry_json"):
        return
    for (entry,) in store.rows("SELECT entry_json FROM main.gateway_routing"):
        parsed = parse_json(entry, None)
        if isinstance(parsed, dict) and isinstance(parsed.get("session_id"), str):
            yield parsed["session_id"]
