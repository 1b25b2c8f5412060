"""The deletion itself and the proof of it, inside the fence. Whatever is found wrong is raised, and the fence
takes everything back.

This is the only place where rows of ``sessions`` and ``messages`` are ever deleted. System prompts that are
kept by hash stay: sessions share them.

From 0.22 on a trigger puts the rows of a message in their order anew when one of them goes, which takes time
by the square of their number, and which would part what another place has put together. So copies first lose
the column by which it finds the others, and all that stays is left alone.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence

from statemend.errors import RolledBack
from statemend.repair import changes, digests, record
from statemend.repair.changes import Change
from statemend.repair.cleanup_copies import Shown, shown
from statemend.repair.cleanup_plan import Collapse, Entry, Member
from statemend.repair.cleanup_rows import references
from statemend.repair.digests import quoted
from statemend.repair.index_merge import merge
from statemend.repair.plan import Kind
from statemend.repair.transaction import Before, Outcome, check_kept
from statemend.store.identity import store_digest
from statemend.store.permissions import Allowed
from statemend.store.writing import RepairConnection

_DETACH = "UPDATE main.sessions SET parent_session_id = NULL WHERE id = ? AND parent_session_id = ?"
_MESSAGES = "DELETE FROM main.messages WHERE session_id = ?"
_COPIES = (
    "DELETE FROM main.messages WHERE session_id = ? AND active = 0 AND compacted = 1 "
    "AND id IN (SELECT value FROM json_each(?))"
)
_ALONE = "UPDATE main.messages SET display_identity = NULL WHERE id IN (SELECT value FROM json_each(?))"
#: In one statement, since one session that goes may be the parent of another.
_SESSIONS = "DELETE FROM main.sessions WHERE id IN (SELECT value FROM json_each(?))"


class Doomed:
    """What the accepted parts of a plan delete together. ``members`` are each once; ``detached`` maps the
    children that stay to the parent that goes. ``besides`` are the tables that the store itself clears with a
    session. ``collapses`` are by session, and so is what each ``shows`` before."""

    def __init__(
        self, connection: RepairConnection, entries: Sequence[Entry], collapses: Sequence[Collapse]
    ) -> None:
        self.entries = entries
        self.collapses = {each.session: each for each in collapses}
        self.shows: dict[str, Shown] = {each: shown(connection.store, each) for each in self.collapses}
        self.copies = {(row_id, each.session) for each in collapses for row_id in each.copies}
        self.members: dict[str, Member] = {
            member.session: member for entry in entries for member in entry.members
        }
        parent = "SELECT parent_session_id FROM main.sessions WHERE id = ?"
        self.detached: dict[str, str] = {
            child: str(connection.store.value(parent, (child,)))
            for entry in entries
            for child in entry.detached
            if child not in self.members
        }
        self.besides = [each for each in references(connection.store) if each.cascades]

    @property
    def permissions(self) -> dict[str, Allowed]:
        """What the deletion needs, and nothing more. SQLite asks for what a cascade may do, rows or none."""
        besides = {reference.table: Allowed(delete=True) for reference in self.besides}
        links = frozenset({"parent_session_id"} if self.detached else ())
        return {
            **besides,
            "messages": Allowed(columns=frozenset({"display_identity"} if self.copies else ()), delete=True),
            "sessions": Allowed(columns=links, delete=True),
        }


def carry_out(
    connection: RepairConnection, doomed: Doomed, *, before: Before, plan: str, digest_before: str
) -> Outcome:
    """Delete, and prove what was deleted. ``plan`` is the digest of the run's plan, ``digest_before`` of the
    store.

    Proven is: the recorded changes are the rows of the sessions that go, all of them, the rows of other
    tables that hang on them, the parent links of the children that stay, and the copies that were named;
    every other session and table has the content it had; a session that lost copies shows what it showed, row
    for row, and still has a row that is alike for each that went; no reference broke; no id can be given
    twice; the search indexes are no worse. Raises ``RolledBack`` otherwise.
    """
    store = connection.store
    connection.allow(doomed.permissions)
    with connection.recording() as session:
        session.attach("sessions")  # first in the record, so that an undo brings sessions before messages
        for child, parent in doomed.detached.items():
            _one(connection, _DETACH, (child, parent), 1)
        for reference in doomed.besides:
            sql = f"DELETE FROM main.{quoted(reference.table)} WHERE {quoted(reference.column)} = ?"
            for session_id in doomed.members:
                connection.execute(sql, (session_id,))
        for member in doomed.members.values():
            _one(connection, _MESSAGES, (member.session,), member.rows.total)
        if doomed.members:
            _one(connection, _SESSIONS, (json.dumps(list(doomed.members)),), len(doomed.members))
        for collapse in doomed.collapses.values():
            _collapse(connection, collapse)
        changeset = session.changeset()
    connection.allow({})
    merge(connection)
    changed = tuple(changes.read(store, changeset))
    _check_changes(connection, doomed, changed)
    _check_others(connection, doomed, before)
    _check_shown(connection, doomed)
    check_kept(connection, before)
    worse = digests.broken_references(store) - before.broken_counter
    if worse:
        table, rowid, parent, _ = next(iter(worse))
        raise RolledBack(f"{store.path}: the row {rowid} of {table} would name no row of {parent}")
    return Outcome(
        changeset,
        record.UndoRecord(
            plan=plan,
            changeset=hashlib.sha256(changeset).hexdigest(),
            digest_before=digest_before,
            digest_after=store_digest(store),
            rows=record.touched_rows(store, changed),
            sequence=before.sequence,
            broken=tuple(sorted(before.broken_counter.elements(), key=repr)),
            search=before.search,
            settings=before.settings,
        ),
    )


def deleted_rows(outcome: Outcome) -> dict[str, int]:
    """How many rows a deletion took, by table."""
    return dict(Counter(row.table for row in outcome.undo.rows if row.after is None))


def _one(connection: RepairConnection, sql: str, bindings: tuple[str, ...], expected: int) -> None:
    count = connection.execute(sql, bindings)
    if count != expected:
        raise RolledBack(
            f"{connection.path}: {sql.split(' WHERE')[0]} changed {count} rows instead of {expected}"
        )


def _collapse(connection: RepairConnection, collapse: Collapse) -> None:
    copies = json.dumps(collapse.copies)
    if connection.store.schema.has("messages", "display_identity"):
        with connection.without_triggers():  # no text is changed
            _one(connection, _ALONE, (copies,), len(collapse.copies))
    _one(connection, _COPIES, (collapse.session, copies), len(collapse.copies))


def _check_changes(connection: RepairConnection, doomed: Doomed, changed: Sequence[Change]) -> None:
    owners = {reference.table: reference.column for reference in doomed.besides}
    owners |= digests.SESSION_COLUMN
    for change in changed:
        whose = change.old.get(owners.get(change.table, ""))
        if change.kind is Kind.DELETE and whose in doomed.members:
            continue
        is_copy = change.kind is Kind.DELETE and change.table == "messages"
        if is_copy and (change.key[0], whose) in doomed.copies:
            continue
        is_link = change.kind is Kind.UPDATE and change.table == "sessions"
        if is_link and change.key[0] in doomed.detached and change.new == {"parent_session_id": None}:
            continue
        raise RolledBack(
            f"{connection.path}: {change.kind.value} of {change.table} {change.key!r} is not in the plan"
        )
    counted = Counter(change.table for change in changed if change.kind is Kind.DELETE)
    expected = sum(member.rows.total for member in doomed.members.values()) + len(doomed.copies)
    if (counted["sessions"], counted["messages"]) != (len(doomed.members), expected):
        raise RolledBack(f"{connection.path}: not every row that the plan names was deleted")


def _check_others(connection: RepairConnection, doomed: Doomed, before: Before) -> None:
    now = digests.content(connection.store)
    left = doomed.members.keys() & now.sessions.keys()
    if left:
        raise RolledBack(f"{connection.path}: rows of {min(left)!r} are still there")
    sessions, tables = before.content.changed(now)
    beyond = sessions - doomed.members.keys() - doomed.detached.keys() - doomed.collapses.keys()
    if beyond:
        raise RolledBack(f"{connection.path}: {min(beyond)!r} is a session of which nothing should change")
    if not tables <= {reference.table for reference in doomed.besides}:
        raise RolledBack(f"{connection.path}: other tables than those of the plan changed: {sorted(tables)}")


def _check_shown(connection: RepairConnection, doomed: Doomed) -> None:
    for session_id, before in doomed.shows.items():
        now = shown(connection.store, session_id)
        if (now.display, now.active) != (before.display, before.active):
            raise RolledBack(f"{connection.path}: {session_id!r} would not show what it showed")
        if now.alike != before.alike:
            raise RolledBack(f"{connection.path}: a row of {session_id!r} would go that nothing repeats")
