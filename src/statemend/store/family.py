"""Sessions as nodes of a family: the facts of a row that lineage is read from, and how they are loaded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from statemend.store.content import parse_json
from statemend.store.message import MESSAGE_COLUMNS, OF_SESSION, message_from_row
from statemend.store.order import sqlite_order
from statemend.store.schema import Era

if TYPE_CHECKING:
    from statemend.store.connection import Store

#: Times that 0.22 trusts, epoch seconds. Others come from damaged pages.
_TRUSTED = (0.0, 4_200_000_000.0)
#: A continuation opens with up to a few protected messages, then the summary.
_OPENING_ROWS = 8
#: What is read of a session. A damaged or old store may lack any of them but the id.
_COLUMNS = (
    "model_config",
    "id",
    "parent_session_id",
    "source",
    "title",
    "started_at",
    "ended_at",
    "end_reason",
    "session_key",
    "last_activity_at",
)
_LONE = """
SELECT source, title, started_at, ended_at, end_reason, session_key,
       (SELECT rowid FROM main.sessions WHERE id = ?1)
FROM sessions
WHERE id = ?1
"""
_MARKERS = ("_branched_from", "_delegate_from", "_reset_from")


class Relation(StrEnum):
    """What a session is to its parent. The store has one column for all of these."""

    CONTINUATION = "continuation"  # the parent was compressed, and this goes on
    BRANCH = "branch"  # the user forked the conversation
    DELEGATE = "delegate"  # a subagent's run
    RESET = "reset"  # a new conversation in the same place
    UNKNOWN = "unknown"


class Activity(msgspec.Struct, frozen=True):
    """When a session was last used, by the different accounts that releases go by. Stored values, epoch
    seconds.
    """

    newest_message: Any
    newest_trusted_message: Any
    heartbeat: Any


class Node(msgspec.Struct, frozen=True):
    """A session in a family. Times are epoch seconds as stored, which may be no numbers in a damaged store.

    The markers are those of ``model_config``; one that names another session than the parent was inherited
    from an earlier segment. A marker that is no text has the form ``json:…``. ``position`` is the order in
    which the rows lie. ``activity`` is loaded only where siblings compete to continue their parent.
    """

    id: str
    parent_id: str | None
    source: str | None
    title: str | None
    started_at: Any
    ended_at: Any
    end_reason: str | None
    session_key: str | None
    branched_from: str | None
    delegate_from: str | None
    reset_from: str | None
    position: int
    activity: Activity | None = None

    @property
    def compressed(self) -> bool:
        """Whether the session was ended by compression, so that another continues it."""
        return self.end_reason == "compression"

    @property
    def marked(self) -> bool:
        """Whether it carries a branch or delegate marker, naming whomever."""
        return self.branched_from is not None or self.delegate_from is not None

    @property
    def last_active(self) -> float | None:
        """When the session was last used as 0.22 sees it, or ``None`` where that was not loaded."""
        value = None if self.activity is None else last_active(self, Era.V22)
        return value if isinstance(value, float) else None


class Edge(msgspec.Struct, frozen=True):
    """A parent link and what it means, with the facts that say so in short phrases."""

    parent_id: str
    child_id: str
    relation: Relation
    evidence: tuple[str, ...]


class Deletion(msgspec.Struct, frozen=True):
    """What deleting one session takes: the sessions that go, and those that lose their parent link."""

    deleted: tuple[str, ...]
    detached: tuple[str, ...]


def load_nodes(store: Store) -> dict[str, Node]:
    """The sessions that have a parent or a child, were ended by compression, or carry a lineage marker, by
    id, in the order in which their rows lie.
    """
    if not store.schema.has("sessions", "id"):
        return {}
    cells = {name: name if store.schema.has("sessions", name) else "NULL" for name in _COLUMNS}
    parents = cells["parent_session_id"]
    sql = (
        f"SELECT rowid, {', '.join(cells.values())} FROM main.sessions "
        f"WHERE {parents} IS NOT NULL OR {cells['end_reason']} = 'compression' "
        f"OR id IN (SELECT {parents} FROM main.sessions) OR instr({cells['model_config']}, '_from\"') > 0 "
        "ORDER BY rowid"
    )
    nodes: dict[str, Node] = {}
    heartbeats: dict[str, Any] = {}
    for position, config, sid, *facts, heartbeat in store.rows(sql):
        if isinstance(sid, str):
            parent, source, title, started, ended, reason, key = facts
            branched, delegated, reset = _markers(config)
            nodes[sid] = Node(
                id=sid,
                parent_id=_name(parent),
                source=source,
                title=title,
                started_at=started,
                ended_at=ended,
                end_reason=reason,
                session_key=key,
                branched_from=branched,
                delegate_from=delegated,
                reset_from=reset,
                position=position,
            )
            heartbeats[sid] = heartbeat
    for sid in _competing(nodes.values()):
        nodes[sid] = msgspec.structs.replace(nodes[sid], activity=_activity(store, sid, heartbeats[sid]))
    return nodes


def lone_node(store: Store, session_id: str) -> Node | None:
    """A session that :func:`load_nodes` leaves out, having neither relatives nor marks, as a node."""
    row = store.one(_LONE, (session_id,))
    if row is None:
        return None
    source, title, started_at, ended_at, end_reason, session_key, position = row
    return Node(
        id=session_id,
        parent_id=None,
        source=source,
        title=title,
        started_at=started_at,
        ended_at=ended_at,
        end_reason=end_reason,
        session_key=session_key,
        branched_from=None,
        delegate_from=None,
        reset_from=None,
        position=position,
    )


def opens_with_summary(store: Store, session_id: str) -> bool:
    """Whether one of the first rows of a session is a compaction summary, as in a continuation."""
    sql = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE {OF_SESSION} ORDER BY id LIMIT {_OPENING_ROWS}"
    return any(message_from_row(row).summary for row in store.rows(sql, (session_id,)))


def last_active(node: Node, era: Era) -> Any:
    """The time by which a release of ``era`` ranks competing sessions: the newest message (0.18), or the
    newer of it and the heartbeat (0.20), or the newer of those that are plausible (0.22); else the start.
    """
    activity = node.activity or Activity(None, None, None)
    if era < Era.V20:
        found = [activity.newest_message]
    elif era < Era.V22:
        found = [activity.newest_message, activity.heartbeat]
    else:
        found = list(filter(_trusted, (activity.newest_trusted_message, activity.heartbeat)))
    newest = max((time for time in found if time is not None), key=sqlite_order, default=None)
    if newest is not None:
        return newest
    return node.started_at if era < Era.V22 or _trusted(node.started_at) else None


def _trusted(time: Any) -> bool:
    return isinstance(time, (int, float)) and _TRUSTED[0] <= time <= _TRUSTED[1]


def _name(parent: Any) -> str | None:
    """The id of a parent; a blob, which no session can have as its id, as Python writes it."""
    return None if not parent else parent if isinstance(parent, str) else repr(parent)


def _markers(config: Any) -> Iterator[str | None]:
    parsed = parse_json(config, None) if isinstance(config, str) and "_from" in config else None
    for name in _MARKERS:
        value = parsed.get(name) if isinstance(parsed, dict) else None
        yield value if value is None or isinstance(value, str) else f"json:{json.dumps(value)}"


def _competing(nodes: Iterable[Node]) -> Iterator[str]:
    """Unmarked sessions that share a compressed parent with another: only among them does activity decide."""
    all_nodes = {node.id: node for node in nodes}
    by_parent: dict[str, list[str]] = {}
    for node in all_nodes.values():
        parent = all_nodes.get(node.parent_id or "")
        if parent is not None and parent.compressed and not node.marked and node.source != "tool":
            by_parent.setdefault(parent.id, []).append(node.id)
    for siblings in by_parent.values():
        if len(siblings) > 1:
            yield from siblings


def _activity(store: Store, session_id: str, heartbeat: Any) -> Activity:
    low, high = _TRUSTED
    sql = (
        f"SELECT MAX(timestamp), MAX(timestamp) FILTER (WHERE timestamp BETWEEN {low!r} AND {high!r}) "
        "FROM messages WHERE session_id = ?"
    )
    newest, trusted = store.one(sql, (session_id,)) or (None, None)
    return Activity(newest, trusted, heartbeat)
