"""A session was branched off another and does not say so.

What it means
A branch without its marker is told from a subagent's run only by the way its parent ended. While that is
'branched', all releases list the branch, but 0.18 and newer take it for what goes on: to resume the parent
opens the branch. Once the parent is reopened, or ends in another way, nothing tells any more: the branch
vanishes from every list, and after a compression of the parent it passes for its continuation.

How it happens
0.13 to 0.15 wrote no marker, and left the parent of a branch that was made in the terminal interface open.
Later the API forked sessions without it, up to 0.20. Other programs and salvages lose model_config.

How we know
The session has a parent and no marker. Its first rows are among the first of the parent, by role and text,
and were written (or happened) before it began or within seconds of that, as a copy is and a talk is not; and
it does not open with a compaction summary, as a continuation does that carries rows over. It is a fault where
the parent did not end as branched before the branch began, and a leftover where it did. In a store that only
releases before 0.16 have opened, which know no marker, the latter is not told.

What to do
Write _branched_from with the id of the parent into its model_config. Until then do not reopen the parent.

When it is a false alarm
A program that begins a subagent's run with a copy of its parent's first rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from statemend.audit.candidates import READS, told
from statemend.audit.context import Context
from statemend.audit.facts import is_time, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.handoff import OPENING, opening_summary
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.store.lineage import Node
from statemend.store.schema import Era

#: The first rows of a session, whatever became of them.
HEAD = "SELECT id FROM messages WHERE session_id = ? ORDER BY id LIMIT 40"
#: How many of a session's first rows were there when it began, or seconds later, and stand among some others
#: that were; and whether its very first row is one of them.
COPIED = """
SELECT COUNT(*), MIN(first.id) = (SELECT MIN(id) FROM messages WHERE session_id = :session)
FROM (
  SELECT id, role, content, timestamp FROM messages WHERE session_id = :session ORDER BY id LIMIT 12
) AS first
WHERE first.timestamp <= :began + 5.0
  AND first.content <> ''
  AND EXISTS (
        SELECT 1
        FROM messages AS m
        WHERE m.id IN (SELECT value FROM json_each(:others))
          AND m.role = first.role AND m.content = first.content AND m.timestamp <= :began + 5.0
      )
"""
#: So many rows at least make a copy: two people say the same two things.
_COPY = 2


def check(context: Context) -> Iterator[Finding]:
    """One finding for each branch without its marker."""
    heads: dict[str, str] = {}
    for node in sorted(context.graph.nodes.values(), key=lambda node: node.id):
        parent = context.graph.nodes.get(node.parent_id or "")
        copied = copied_rows(context, parent, node, heads)
        if parent is None or not copied:
            continue
        legacy = told_by_parent(parent, node)
        if not (legacy and context.store.schema.era < Era.V16):
            yield _finding(context, parent, node, copied, legacy)


def copied_rows(context: Context, parent: Node | None, node: Node, heads: dict[str, str]) -> int:
    """How many of the first rows of a session without a mark are copies of rows of its parent, if it is a
    branch by that; else 0. ``heads`` keeps the first rows of parents."""
    if parent is None or node.marked or node.reset_from is not None or not is_time(node.started_at):
        return 0
    if node.source in ("tool", "subagent", "cron"):
        return 0
    if parent.id == node.id or context.graph.is_above(node.id, parent.id):
        return 0  # a ring, which the rule cycle tells
    if parent.id not in heads:
        heads[parent.id] = json.dumps([row for (row,) in context.store.rows(HEAD, (parent.id,))])
    bindings = {"session": node.id, "others": heads[parent.id], "began": node.started_at}
    copied, from_the_start = context.store.one(COPIED, bindings) or (0, 0)
    if copied < _COPY or not from_the_start:
        return 0
    return 0 if opening_summary(context.store, node.id, node.started_at) is not None else int(copied)


def told_by_parent(parent: Node, child: Node) -> bool:
    """Whether releases know the branch by how its parent ended."""
    if parent.end_reason != "branched" or not is_time(parent.ended_at):
        return False
    return bool(child.started_at >= parent.ended_at)


def _finding(context: Context, parent: Node, node: Node, copied: int, legacy: bool) -> Finding:
    return RULE.finding(
        context,
        session=node.id,
        verdict=Verdict.LEFTOVER if legacy else Verdict.FAULT,
        severity=Severity.LOW if legacy else Severity.MEDIUM,
        summary="A branch without its marker: only the way its parent ended tells it from a subagent's run."
        if legacy
        else "A branch without its marker: lists leave it out, or take it for what it is not.",
        evidence=(
            ("title", words(node.title)),
            ("source", words(node.source, 40)),
            ("started at", moment(node.started_at)),
            ("parent", parent.id),
            ("parent ended by", words(parent.end_reason, 40)),
            ("parent ended at", None if parent.ended_at is None else moment(parent.ended_at)),
            ("first rows copied from the parent", copied),
            ("releases that tell it by its parent", "0.13 and newer, for lists" if legacy else "none"),
            ("releases that tell it by the mark", "0.16 and newer; older ones know none"),
            *told(context, [node.id], parent=parent.id),
        ),
        remedy=f"Write _branched_from with {parent.id} into its model_config.",
        command=context.command("show", context.store_label, node.id),
    )


RULE = Rule(
    id="LIN006",
    slug="branch-without-marker",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="branch-mark",
    reads=(READS_SESSIONS, READS_MESSAGES, OPENING, *READS),
    columns=("sessions.model_config", "sessions.end_reason"),
)
