"""A session continues its parent, and the parent did not end by compression.

What it means
The session begins with a summary of its parent and goes on from there. But releases tell a continuation by
the way its parent ended, and this one did not end by compression, or not any more. So no list shows the
session: it has a parent, and counts as a run on behalf of it. Export of the parent leaves it out. Resume of
the parent by its id stays there up to 0.17, and from 0.18 on comes here, if no younger child stands beside.

How it happens
Up to 0.19 the reason of an end is the first one that is written. A session that had ended otherwise (its
window or agent was closed) and was still in use could be compressed, and kept its old reason. Up to 0.16,
resuming a compressed session by its own id opened it again, and it then ended in another way, or not at all;
a program that calls reopen_session does the same in every release. 0.22 clears an automatic end before a
compression.

How we know
The session bears no mark, and is no run by its source. It was begun with a compaction summary that its parent
does not hold: a branch begins with rows of its parent, and a subagent's run with its task. Releases before
0.19 store the summary when the turn ends; where that is a minute or more after the start, a branch may have
been rewritten in place instead, and the rule is silent unless every row id from between the parent's last row
before the start and the summary is still there. The parent is in the store, is no subagent's run, and bears
another reason than compression, or none.

What to do
Where the parent did not go on, end it by compression: end_reason says so, ended_at is when this session
began. Where it went on, read what was said there since: it stands beside this line. Until then open this
session by its own id.

When it is a false alarm
A branch without its mark that was compressed, by the gateway of 0.13 to 0.15, within a minute of its start. A
program that runs subagents from a summary, under the source of their parent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from statemend.audit import vanished
from statemend.audit.candidates import READS, told, ways
from statemend.audit.context import Context
from statemend.audit.eras import written_by
from statemend.audit.facts import is_time, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.handoff import HOLDS, OPENING, REWRITTEN_AFTER, opening_summary
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.store.lineage import Node, Relation
from statemend.store.message import Message

LATER = "SELECT COUNT(*) FROM messages WHERE session_id = ? AND active = 1 AND timestamp > ?"
#: Sources of what runs on behalf of another session.
_RUNS = frozenset({"subagent", "tool", "cron"})
#: What is written together with a handoff differs from it by less (seconds).
_TOGETHER = 60.0


class Unfollowed(NamedTuple):
    """A session, what it continues, and the summary that it begins with."""

    parent: Node
    child: Node
    summary: Message


def unfollowed(context: Context) -> Iterator[Unfollowed]:
    """Every session that continues one which compression did not end, by id."""
    nodes = context.graph.nodes
    for child in sorted(nodes.values(), key=lambda node: node.id):
        parent = nodes.get(child.parent_id or "")
        if parent is None or parent.compressed or parent.delegate_from is not None:
            continue
        if child.marked or child.reset_from is not None or child.source in _RUNS:
            continue
        edge = context.graph.edge(child.id)
        if edge is None or edge.relation is not Relation.CONTINUATION:
            continue
        summary = opening_summary(context.store, child.id, child.started_at)
        if summary is not None and _is_own(context, parent, child, summary):
            yield Unfollowed(parent, child, summary)


def _is_own(context: Context, parent: Node, child: Node, summary: Message) -> bool:
    """Whether the session was begun with the summary, and that is no copy of one that the parent has."""
    if not is_time(summary.timestamp) or not is_time(child.started_at):
        return False
    late = summary.timestamp - child.started_at >= REWRITTEN_AFTER
    if late and not vanished.has_all_since_it_began(context, child, parent.id):
        return False
    if context.graph.is_above(child.id, parent.id):
        return False  # a ring, which the rule cycle tells
    return context.store.value(HOLDS, (parent.id, summary.id)) is None


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that no release goes on to."""
    for found in unfollowed(context):
        yield _finding(context, found)


def _finding(context: Context, found: Unfollowed) -> Finding:
    parent, child = found.parent, found.child
    later = context.store.value(LATER, (parent.id, child.started_at + _TOGETHER))
    counts = context.census.get(child.id)
    ended = f"ended by {words(parent.end_reason, 40)}" if parent.end_reason else "has not ended"
    return RULE.finding(
        context,
        session=child.id,
        message_ids=(found.summary.id,),
        summary=f"It continues a session that {ended}, not by compression: no list shows it."
        if not later
        else f"It continues a session that went on without it and {ended}: no list shows it.",
        evidence=(
            ("title", words(child.title)),
            ("source", words(child.source, 40)),
            ("started at", moment(child.started_at)),
            ("live rows", counts.live if counts else 0),
            ("parent", parent.id),
            ("title of the parent", words(parent.title)),
            ("parent ended by", words(parent.end_reason, 40)),
            ("parent ended at", None if parent.ended_at is None else moment(parent.ended_at)),
            ("live rows of the parent from after this began", later),
            *((f"from the parent, {label}", lines) for label, lines in ways(context.graph, parent.id)),
            written_by(context.store),
            *told(context, [child.id], parent=parent.id),
        ),
        remedy=f"Read what was said in {parent.id} since; end it by compression where this is the line."
        if later
        else f"End {parent.id} by compression, at the time when this session began.",
        command=context.command("show", context.store_label, child.id),
    )


RULE = Rule(
    id="LIN014",
    slug="continuation-not-followed",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    reads=(READS_SESSIONS, READS_MESSAGES, OPENING, HOLDS, LATER, *vanished.READS, *READS),
    columns=("sessions.end_reason",),
)
