"""Where the handoff of a compression broke: a parent without its continuation, or the other way round.

A rotating compression ends the session with reason ``compression`` and goes on in a new one that begins with
the summary. One broken handoff can be seen from both sides, so the rules that look at either side share this
module.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

import msgspec

from statemend.audit.context import Context
from statemend.audit.facts import is_time
from statemend.store.connection import Store
from statemend.store.holders import leases
from statemend.store.lineage import Node
from statemend.store.message import MESSAGE_COLUMNS, Message, RowState, message_from_row

#: What the v16 migration writes as delegate marker where it finds no parent.
ORPHANED = "__orphaned__"
#: A continuation begins this close (seconds) to the end of the session it continues.
HANDOFF_WINDOW = 300.0
#: A session that is this much (seconds) older than its first row may have been rewritten in place.
REWRITTEN_AFTER = 60.0
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
"""
OPENING = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE session_id = ? ORDER BY id LIMIT {OPENING_ROWS}"
#: Whether a session has a row with the text of another row.
HOLDS = """
SELECT 1
FROM messages AS own
JOIN messages AS other ON other.content = own.content
WHERE own.session_id = ? AND other.id = ?
LIMIT 1
"""
#: What a rule that uses this module reads.
READS = (ROOTS_WITH_A_SUMMARY, OPENING, HOLDS)

#: No title that Hermes numbers has more digits.
_MOST_DIGITS = 18


class CutRoot(msgspec.Struct, frozen=True):
    """A session without a parent that was begun with a compaction summary. Times are epoch seconds.

    It is not ``certain`` where rows that were archived with the summary stand before it and none is from
    before the session began: one that was compacted in place within moments of its first rows, and again
    since, looks the same.
    """

    id: str
    source: str
    user_id: str | None
    session_key: str | None
    title: str | None
    started_at: float
    summary_row: int
    summary_at: float
    certain: bool = True


def opening_summary(store: Store, session_id: str, started_at: object) -> Message | None:
    """The compaction summary that a session was begun with, or ``None``.

    Protected messages may stand before it. They were written with it, or carry a time from before the
    session began, and stand as it stands (live, archived), unless it was undone. In a session that was
    compacted in place, older rows of its own stand before the summary: that one began otherwise.
    """
    opening = _opening(store, session_id, started_at)
    return None if opening is None else opening[1]


def _opening(store: Store, session_id: str, started_at: object) -> tuple[list[Message], Message] | None:
    """The summary that a session was begun with, and the protected messages before it."""
    head: list[Message] = []
    for row in store.rows(OPENING, (session_id,)):
        message = message_from_row(row)
        if message.summary:
            belongs = all(_written_with(before, message, started_at) for before in head)
            return (head, message) if belongs else None
        head.append(message)
    return None


def _certain(head: list[Message], summary: Message, started_at: float) -> bool:
    """Whether these rows begin no session that was compacted in place within moments of its first rows."""
    if not head or RowState.LIVE in (summary.state, head[0].state):
        return True
    return any(is_time(before.timestamp) and before.timestamp < started_at for before in head)


def _written_with(before: Message, summary: Message, started_at: object) -> bool:
    if not is_time(before.timestamp) or not is_time(summary.timestamp):
        return False
    carried = is_time(started_at) and before.timestamp < started_at
    if before.state is not summary.state:
        if summary.state is not RowState.REWOUND:
            return False
        # An undo that went back beyond the summary; what stands before it may have been archived since.
        soon = is_time(started_at) and summary.timestamp - started_at < REWRITTEN_AFTER
        carried &= soon or before.state is RowState.LIVE
    return bool(carried or abs(before.timestamp - summary.timestamp) <= _TOGETHER)


def cut_roots(context: Context) -> tuple[CutRoot, ...]:
    """The sessions that begin in the middle, oldest first: no parent, and begun with a compaction summary.

    A branch or a subagent run whose parent was deleted may lawfully begin so and is left out; a chat that the
    v16 migration took for a subagent run is not.
    """
    by_age = attrgetter("started_at", "id")
    return context.once("cut roots", lambda: tuple(sorted(_cut_roots(context), key=by_age)))


def _cut_roots(context: Context) -> Iterator[CutRoot]:
    for session_id, source, user_id, key, title, started_at in context.store.rows(ROOTS_WITH_A_SUMMARY):
        opening = _opening(context.store, session_id, started_at)
        if opening is None or not is_time(started_at) or not is_time(opening[1].timestamp):
            continue
        head, summary = opening
        yield CutRoot(
            id=session_id,
            source=source,
            user_id=user_id or None,
            session_key=key or None,
            title=title if isinstance(title, str) else None,
            started_at=started_at,
            summary_row=summary.id,
            summary_at=summary.timestamp,
            certain=_certain(head, summary, started_at),
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


def is_hidden_continuation(context: Context, node: Node) -> bool:
    """Whether ``node`` is marked as something else and yet looks like what continues its compressed parent:
    nothing else does, and it was begun at that end with a summary that the parent does not hold. A branch
    begins with rows of the session it comes from, and a reset with none; of delegates
    :func:`is_false_delegate` tells."""
    parent = context.graph.nodes.get(node.parent_id or "")
    if parent is None or not parent.compressed or node.delegate_from == parent.id:
        return False
    if not _one_after_the_other(parent, node):
        return False
    if node.source == "tool" or (node.source == "subagent" and parent.source != "subagent"):
        return False
    if any(other.id != node.id for other in context.graph.continuations(parent.id)):
        return False
    summary = opening_summary(context.store, node.id, node.started_at)
    if summary is None or not is_time(summary.timestamp):
        return False
    rewritten = summary.timestamp - node.started_at >= REWRITTEN_AFTER
    return not rewritten and context.store.value(HOLDS, (parent.id, summary.id)) is None


def _one_after_the_other(parent: Node, child: Node) -> bool:
    if not is_time(parent.ended_at) or not is_time(child.started_at):
        return False
    return bool(abs(child.started_at - parent.ended_at) <= HANDOFF_WINDOW)


def dead_ends(context: Context) -> Iterator[Node]:
    """The sessions that a compression ended and that nothing continues, oldest end first.

    Not among them: one whose continuation is only hidden behind a false marker, and one that a live lease or
    lock still holds, because its handoff may be under way.
    """
    graph = context.graph
    held: set[str] | None = None
    ended = [node for node in graph.nodes.values() if node.compressed]
    for node in sorted(ended, key=lambda node: (node.ended_at if is_time(node.ended_at) else 0.0, node.id)):
        if graph.continuations(node.id):
            continue
        hidden = (
            is_false_delegate(context, child) or is_hidden_continuation(context, child)
            for child in graph.children(node.id)
        )
        if any(hidden):
            continue
        if held is None:
            held = set(_held(context))
        if node.id not in held:
            yield node


def _held(context: Context) -> Iterator[str]:
    """The sessions of families in which a lease or a lock may be live."""
    seen: set[str] = set()
    for lease in leases(context.store, context.now):
        if lease.live is not False and lease.key not in seen:
            family = context.graph.family(lease.key)
            seen.update(family)
            yield from family


def stem(title: str) -> tuple[str, int]:
    """A title without its number, and the number: ``Taxes #3`` is ``("Taxes", 3)``; without one it is 1."""
    before, _, number = title.rpartition("#")
    name = before.rstrip()
    if name and name != before and number.isdecimal() and len(number) <= _MOST_DIGITS:
        return name, int(number)
    return title, 1
