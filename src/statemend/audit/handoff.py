"""Where the handoff of a compression broke: a parent without its continuation, or the other way round.

A rotating compression ends the session with reason ``compression`` and goes on in a new one that begins with
the summary. One broken handoff can be seen from both sides, so the rules that look at either side share this
module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

import msgspec

from statemend.audit.context import Context
from statemend.audit.facts import is_time
from statemend.store.connection import Store
from statemend.store.holders import leases
from statemend.store.lineage import Node
from statemend.store.message import MESSAGE_COLUMNS, Message, message_from_row

#: What the v16 migration writes as delegate marker where it finds no parent.
ORPHANED = "__orphaned__"
#: A continuation begins this close (seconds) to the end of the session it continues.
HANDOFF_WINDOW = 300.0
#: So many rows behind the summary are compared with so many last rows of the parent: the carried tail.
_CARRIED = 12
_TAIL = 200

#: A continuation begins with up to a few protected messages of its parent, then the summary.
OPENING_ROWS = 8
#: Rows that were written together differ by less than this (seconds).
_TOGETHER = 2.0

#: The first row alone rules most sessions out: it is no summary, and neither carried over nor written with
#: the next one. CASE keeps the look at further rows for the rest.
ROOTS_WITH_A_SUMMARY = f"""
SELECT s.id, s.source, s.user_id, s.session_key, s.title, s.started_at
FROM sessions AS s
JOIN messages AS f ON f.id = (SELECT MIN(r.id) FROM messages AS r WHERE r.session_id = s.id)
WHERE s.parent_session_id IS NULL
  AND typeof(s.id) = 'text'
  AND CASE WHEN json_valid(s.model_config) THEN json_extract(s.model_config, '$._branched_from') END IS NULL
  AND COALESCE(
        CASE WHEN json_valid(s.model_config) THEN json_extract(s.model_config, '$._delegate_from') END,
        '{ORPHANED}'
      ) = '{ORPHANED}'
  AND CASE
        WHEN f._compressed_summary = 1
          OR f.timestamp < s.started_at
          OR instr(f.content, '[CONTEXT ') > 0
          OR EXISTS (
               SELECT 1
               FROM messages AS n
               WHERE n.id = (
                       SELECT MIN(r.id) FROM messages AS r WHERE r.session_id = f.session_id AND r.id > f.id
                     )
                 AND abs(n.timestamp - f.timestamp) <= {_TOGETHER}
             )
        THEN EXISTS (
               SELECT 1
               FROM messages AS m
               WHERE m.id IN (
                       SELECT r.id
                       FROM messages AS r
                       WHERE r.session_id = f.session_id
                       ORDER BY r.id
                       LIMIT {OPENING_ROWS}
                     )
                 AND m.role <> 'tool'
                 AND (m._compressed_summary = 1 OR instr(m.content, '[CONTEXT ') > 0)
             )
      END
ORDER BY s.started_at, s.id
"""
OPENING = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE session_id = ? ORDER BY id LIMIT {OPENING_ROWS}"
PEER = "SELECT source, user_id, session_key, title, ended_at FROM sessions WHERE id = ?"
FIRST_ROWS = """
SELECT role, content, tool_call_id
FROM messages
WHERE session_id = ? AND id > ?
ORDER BY id
LIMIT ?
"""
LAST_ROWS = """
SELECT role, content, tool_call_id
FROM messages
WHERE session_id = ?
ORDER BY id DESC
LIMIT ?
"""
#: What a rule that uses this module reads.
READS = (ROOTS_WITH_A_SUMMARY, OPENING, PEER, FIRST_ROWS, LAST_ROWS)

_NUMBERED = re.compile(r"(?s)(.*\S)\s+#(\d+)")


class CutRoot(msgspec.Struct, frozen=True):
    """A session without a parent that was begun with a compaction summary. Times are epoch seconds."""

    id: str
    source: str
    user_id: str | None
    session_key: str | None
    title: str | None
    started_at: float
    summary_row: int
    summary_at: float


class Match(msgspec.Struct, frozen=True):
    """A dead end and a cut root that may belong together, and why. ``carried`` rows stand in both."""

    parent: str
    child: str
    reasons: tuple[str, ...]
    carried: int


def opening_summary(store: Store, session_id: str, started_at: object) -> Message | None:
    """The compaction summary that a session was begun with, or ``None``.

    Protected messages may stand before it. They were written with it, or carry a time from before the
    session began, and stand as it stands (live, archived). In a session that was compacted in place, older
    rows of its own stand before the summary: that one began otherwise.
    """
    head: list[Message] = []
    for row in store.rows(OPENING, (session_id,)):
        message = message_from_row(row)
        if message.summary:
            belongs = all(_written_with(before, message, started_at) for before in head)
            return message if belongs else None
        head.append(message)
    return None


def _written_with(before: Message, summary: Message, started_at: object) -> bool:
    if before.state is not summary.state or not is_time(before.timestamp) or not is_time(summary.timestamp):
        return False
    if is_time(started_at) and before.timestamp < started_at:
        return True
    return bool(abs(before.timestamp - summary.timestamp) <= _TOGETHER)


def cut_roots(context: Context) -> Iterator[CutRoot]:
    """The sessions that begin in the middle: no parent, and begun with a compaction summary.

    A branch or a subagent run whose parent was deleted may lawfully begin so and is left out; a chat that the
    v16 migration took for a subagent run is not.
    """
    for session_id, source, user_id, key, title, started_at in context.store.rows(ROOTS_WITH_A_SUMMARY):
        summary = opening_summary(context.store, session_id, started_at)
        if summary is None or not is_time(started_at) or not is_time(summary.timestamp):
            continue
        yield CutRoot(
            id=session_id,
            source=source,
            user_id=user_id or None,
            session_key=key or None,
            title=title if isinstance(title, str) else None,
            started_at=started_at,
            summary_row=summary.id,
            summary_at=summary.timestamp,
        )


def is_false_delegate(context: Context, node: Node) -> bool:
    """Whether ``node`` is marked as its parent's subagent and yet was begun with a summary: a subagent run
    begins with its task, so this is a continuation."""
    if node.delegate_from is None or node.delegate_from != node.parent_id:
        return False
    parent = context.graph.nodes.get(node.parent_id)
    if parent is None or parent.delegate_from not in (None, ORPHANED):
        return False
    if node.source == "subagent" and parent.source != "subagent":
        return False
    return opening_summary(context.store, node.id, node.started_at) is not None


def dead_ends(context: Context) -> Iterator[Node]:
    """The sessions that a compression ended and that nothing continues, oldest end first.

    Not among them: one whose continuation is only hidden behind a false delegate marker, and one that a live
    lease or lock still holds, because its handoff may be under way.
    """
    graph = context.graph
    held: set[str] | None = None
    ended = [node for node in graph.nodes.values() if node.compressed]
    for node in sorted(ended, key=lambda node: (node.ended_at if is_time(node.ended_at) else 0.0, node.id)):
        if graph.continuations(node.id):
            continue
        if any(is_false_delegate(context, child) for child in graph.children(node.id)):
            continue
        if held is None:
            held = {lease.key for lease in leases(context.store, context.now) if lease.live is not False}
        if held.isdisjoint(graph.family(node.id)):
            yield node


def exported_links(context: Context) -> dict[tuple[str, str], str]:
    """What exports say about who continues whom: (parent, child) to the path of the file that says so."""
    links: dict[tuple[str, str], str] = {}
    for artifact, section in context.inventory.sections():
        if section.parent_id:
            links.setdefault((section.parent_id, section.session_id), artifact.path)
        for parent, child in pairwise(section.lineage):
            links.setdefault((parent, child), artifact.path)
    return links


def stem(title: str) -> tuple[str, int]:
    """A title without its number, and the number: ``Taxes #3`` is ``("Taxes", 3)``; without one it is 1."""
    numbered = _NUMBERED.fullmatch(title)
    return (numbered[1], int(numbered[2])) if numbered else (title, 1)


def match(context: Context, dead: Node, root: CutRoot, links: Mapping[tuple[str, str], str]) -> Match | None:
    """Why ``root`` may continue ``dead``, or ``None`` when nothing says so or something says otherwise.
    ``links`` is what :func:`exported_links` found."""
    peer = context.store.one(PEER, (dead.id,))
    if peer is None or dead.id == root.id:
        return None
    source, user_id, session_key, title, ended_at = peer
    if not is_time(ended_at) or root.started_at < ended_at - HANDOFF_WINDOW:
        return None
    if root.source not in (source, "unknown"):
        return None
    if _differ(user_id, root.user_id) or _differ(session_key, root.session_key):
        return None
    reasons = ["an export shows it so"] if (dead.id, root.id) in links else []
    if isinstance(title, str) and title and root.title:
        (dead_stem, dead_number), (root_stem, root_number) = stem(title), stem(root.title)
        if dead_stem != root_stem:
            return None
        if root_number == dead_number + 1:
            reasons.append("the next number of the same title")
    if min(abs(root.summary_at - ended_at), abs(root.started_at - ended_at)) <= HANDOFF_WINDOW:
        reasons.append("begins where the other ends")
    if session_key and session_key == root.session_key:
        reasons.append("same routing key")
    carried = _carried(context, dead.id, root)
    if carried >= 2:
        reasons.append("carries rows of the other")
    if not reasons or reasons == ["same routing key"]:
        return None
    return Match(dead.id, root.id, tuple(reasons), carried)


def _differ(one: object, other: object) -> bool:
    return bool(one) and bool(other) and one != other


def _carried(context: Context, parent: str, root: CutRoot) -> int:
    tail = set(context.store.rows(LAST_ROWS, (parent, _TAIL)))
    first = context.store.rows(FIRST_ROWS, (root.id, root.summary_row, _CARRIED))
    return sum(1 for row in first if row[1] and row in tail)
