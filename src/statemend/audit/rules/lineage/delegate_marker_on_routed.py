"""A conversation that messages are routed into carries the mark of a subagent run.

What it means
The gateway leads a chat into this session, or did, while the key _delegate_from in its model_config says that
it is a subagent's run. 0.17 and newer hide such a session from every list, leave it out when they look for a
continuation, and delete it together with the session that the mark names; the messages go on arriving in it.

How it happens
No release checks a route against the mark. The gateway of 0.13 to 0.15 wrote none on a branch, so the first
newer release that opened the store took the branch for a subagent's run and marked it; the chat that had gone
on in the branch was led there all the same. A mark that was copied with model_config, a merge of stores and a
program that writes model_config by itself bring it too.

How we know
The mark names a session, and the row is no run by its source (subagent, tool, cron). It is a fault where the
row has a routing key, or where the routing table or a topic binding of this store leads to it now: releases
give none of these to a subagent's run with another source. A conversation that begins with a summary and is
marked so is told by migration-mistag, and one that bears several marks by contradictory-markers.

What to do
Remove the key _delegate_from from model_config. The session shows up again, and deleting the session that it
names no longer takes it along. Until then do not delete that one.

When it is a false alarm
Up to 0.20 a subagent that was started after its parent had been closed by compression inherits the parent's
routing key; rows with source 'subagent' are therefore not reported. A program that gives its own runs another
source and a routing key looks the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit import claims, vanished
from statemend.audit.claims import contradiction
from statemend.audit.context import Context
from statemend.audit.eras import heeding_marks
from statemend.audit.facts import listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.handoff import ORPHANED, is_false_delegate
from statemend.audit.routes import led_to
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.store.lineage import Node

#: Sources of what runs on behalf of another session, or of none.
_RUNS = frozenset({"subagent", "tool", "cron"})


def check(context: Context) -> Iterator[Finding]:
    """One finding for each routed session with a delegate mark that no other rule tells."""
    for node in sorted(context.graph.nodes.values(), key=lambda node: node.id):
        if is_routed_run(context, node):
            yield _finding(context, node)


def is_routed_run(context: Context, node: Node) -> bool:
    """Whether a session that is marked as a subagent's run is a routed conversation, and its mark is no other
    rule's business."""
    if node.delegate_from in (None, "", ORPHANED) or node.source in _RUNS:
        return False
    if not node.session_key and node.id not in led_to(context.store):
        return False
    return not is_false_delegate(context, node) and contradiction(context, node) is None


def _finding(context: Context, node: Node) -> Finding:
    ways = led_to(context.store).get(node.id, ())
    counts = context.census.get(node.id)
    return RULE.finding(
        context,
        session=node.id,
        summary="Messages are routed into it, and it is marked as a subagent's run: hidden from every list."
        if ways
        else "It has the routing key of a chat, and is marked as a subagent's run: hidden from every list.",
        evidence=(
            ("title", words(node.title)),
            ("source", words(node.source, 40)),
            ("mark", words(node.delegate_from)),
            ("the mark names", _named(context, node)),
            ("parent", words(node.parent_id)),
            ("routing key", words(node.session_key)),
            ("ways that lead to it now", listed(ways) or "none"),
            ("started at", moment(node.started_at)),
            ("last message at", moment(counts.last_at if counts else None)),
            ("live rows", counts.live if counts else 0),
            ("deleting the session that the mark names", "takes it along"),
            heeding_marks(context.store),
        ),
        remedy="Remove the key _delegate_from from its model_config.",
    )


def _named(context: Context, node: Node) -> str:
    if node.delegate_from == node.parent_id:
        return "its parent"
    there = context.store.value(claims.PRESENT, (node.delegate_from,)) is not None
    return "another session" if there else "no session of this store"


RULE = Rule(
    id="LIN007",
    slug="delegate-marker-on-routed",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="untag",
    reads=(READS_SESSIONS, READS_MESSAGES, *vanished.READS, *claims.READS),
    columns=("sessions.model_config",),
)
