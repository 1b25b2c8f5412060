"""A compressed session has more than one continuation with messages.

What it means
A compression is meant to go on in exactly one new session. Here several sessions claim to be it, and each
holds messages. Resume goes to one of them, export takes the oldest; whatever the others hold is shown by
neither, though nothing is lost from the store.

How it happens
A burst of messages in interrupt mode started the same compression more than once. Up to 0.16, resuming the
closed session by its own id reopened it, and its next compression made a second continuation. A stale
connection that was still writing to the old session made one of its own.

How we know
The children of a session that ended by compression are counted as its continuations when no marker bound to
it (_branched_from, _delegate_from, _reset_from naming the parent) says otherwise, when they are no tool
run, and when they are no unmarked subagent run of 0.13 to 0.16 (started well before the end of the parent,
beginning with a task instead of a summary). More than one of them holds rows. One that begins with copies of
the parent's first rows and without a summary is a branch, which branch-without-marker tells.

What to do
Compare the candidates. Choose the one to go on with; mark the others as branches of the parent, so that
they stay reachable under their own names.

When it is a false alarm
A branch that was made by a release before 0.16 in the terminal interface and whose copied rows were changed
since carries no marker; it cannot be told from a second continuation without comparing the texts.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.candidates import READS, times, told, ways
from statemend.audit.context import Context
from statemend.audit.eras import written_by
from statemend.audit.facts import listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.handoff import opening_summary
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.audit.rules.lineage.branch_without_marker import COPIED, HEAD, copied_rows
from statemend.store.lineage import Node
from statemend.store.relations import seconds_early
from statemend.store.schema import Era

#: A continuation is created at most this long (seconds) before the end of its parent is written.
AT_THE_END = 5.0


def held_rows(context: Context, session_id: str) -> int:
    """Rows of a session in any state."""
    counts = context.census.get(session_id)
    return 0 if counts is None else counts.total


def fits(context: Context, parent: Node, child: Node) -> bool:
    """Whether a candidate holds rows and is no unmarked subagent run that merely has no better sibling."""
    early = seconds_early(parent, child)
    at_the_end = early is None or early <= AT_THE_END
    return bool(held_rows(context, child.id)) and (
        at_the_end or opening_summary(context.store, child.id, child.started_at) is not None
    )


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that several sessions with rows continue."""
    graph = context.graph
    heads: dict[str, str] = {}
    for node in sorted(graph.nodes.values(), key=lambda node: node.id):
        candidates = [child for child in graph.continuations(node.id) if fits(context, node, child)]
        if len(candidates) > 1:
            candidates = [each for each in candidates if not copied_rows(context, node, each, heads)]
        if len(candidates) < 2:
            continue
        yield RULE.finding(
            context,
            session=node.id,
            summary=f"{len(candidates)} sessions with messages continue this one; only one can be right.",
            evidence=(
                ("title", words(node.title)),
                written_by(context.store),
                ("ended at", moment(node.ended_at)),
                ("candidates", len(candidates)),
                (
                    "candidate sessions",
                    listed(f"{child.id}: {times(context, child)}" for child in candidates),
                ),
                ("resume goes to", graph.resume_tip(node.id, Era.V22)),
                ("export goes through", graph.exports_with(node.id, Era.V22)),
                *ways(graph, node.id),
                *told(context, [child.id for child in candidates], parent=node.id),
            ),
            remedy="Choose the continuation to go on with and mark the others as branches of this session.",
        )


RULE = Rule(
    id="LIN002",
    slug="fork",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="fork",
    reads=(READS_SESSIONS, READS_MESSAGES, HEAD, COPIED, *READS),
)
