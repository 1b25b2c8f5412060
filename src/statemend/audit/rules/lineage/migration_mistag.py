"""A conversation carries the mark of a subagent run.

What it means
The key _delegate_from in model_config marks a session as a subagent's run. Hermes 0.17 and newer hide such
a session from every list, leave it out when they look for a continuation, and delete it together with the
session it names. This session carries the mark although the evidence says that people talk in it, or that
it continues its parent.

How it happens
The first release from 0.17 on that opens a store of 0.13 to 0.16 runs a migration that guesses which
sessions were subagent runs, because those releases did not mark them. It marks every child that is neither
a branch nor a continuation with the name of its parent, and every untitled session without relatives that
has at most 25 messages and used a tool with '__orphaned__'. An ordinary short chat fits the second test; a
continuation whose parent had been reopened and closed again fits the first.

How we know
'__orphaned__' is written by that migration alone. The chat is a conversation, and the mark a fault, when a
person shows in it: a title, a user, chat or routing key, an entry in the routing table, a second turn typed
after an answer, sessions that continue or branch from it. A chat of one turn has none of these, and an old
subagent run whose parent was deleted looks exactly the same: undecidable. So does one that begins with a
compaction summary, for subagent runs were compressed too, and their first part pruned. An id that belongs to
a scheduled run says that it is neither: a leftover. A mark naming the parent is false when the session begins
with a compaction summary: a subagent run begins with its task, and the continuation of one inherits a mark
that names another session than its parent. Another mark on a conversation that is routed is told by the rule
delegate-marker-on-routed. The migration runs in 0.17 and newer, and the mark means something to them alone.

What to do
Remove the key _delegate_from from model_config. The session shows up again, and deleting the session it
names no longer takes it along. For an undecidable one, read its first message: a task set by an agent, or a
person's words.

When it is a false alarm
A program of its own that runs subagents from a summary instead of a task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from statemend.audit.context import Context
from statemend.audit.eras import heeding_marks
from statemend.audit.facts import moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.handoff import OPENING, ORPHANED, is_false_delegate, opening_summary
from statemend.audit.routes import led_to
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.store.content import plain_text
from statemend.store.history import View, messages

MARKED = """
SELECT s.id, s.parent_session_id, s.marker, s.source, s.title, s.user_id, s.session_key,
       s.chat_id, s.origin_json, s.started_at, s.message_count,
       EXISTS (SELECT 1 FROM sessions AS c WHERE c.parent_session_id = s.id) AS has_children
FROM (
    SELECT *, CASE WHEN json_valid(model_config)
                   THEN json_extract(model_config, '$._delegate_from') END AS marker
    FROM sessions
    WHERE instr(model_config, '_delegate_from') > 0
) AS s
WHERE s.marker IS NOT NULL
  AND typeof(s.id) = 'text'
ORDER BY s.id
"""

#: How texts begin that Hermes itself writes in the user's name.
_SCAFFOLDING = (
    "[System",
    "[CONTEXT",
    "[Your active task list",
    "You've reached the maximum",
    "You just executed tool calls",
)
_UNFINISHED = frozenset({"length", "incomplete", "tool_calls", "error"})


class Marked(NamedTuple):
    """One session with a delegate mark: a row of ``MARKED``."""

    id: str
    parent_id: str | None
    marker: object
    source: str
    title: str | None
    user_id: str | None
    session_key: str | None
    chat_id: str | None
    origin_json: str | None
    started_at: float
    message_count: int
    has_children: int


def later_turns(context: Context, session_id: str) -> int:
    """How often somebody typed again after a finished answer."""
    turns = 0
    answered = False
    for message in messages(context.store, session_id, View.RAW):
        text = plain_text(message.content).strip()
        if message.role == "user":
            turns += answered and bool(text) and not text.startswith(_SCAFFOLDING)
            answered = False
        elif message.role == "assistant":
            finished = not message.tool_calls and message.finish_reason not in _UNFINISHED
            answered = finished and text not in ("", "(empty)")
        elif message.role == "tool":
            answered = False
    return turns


def signs_of_a_conversation(context: Context, row: Marked) -> list[str]:
    """What shows that people talk in this session, each in a few words."""
    signs = [
        label
        for label, value in (
            ("it has a title", row.title),
            ("it has a user id", row.user_id),
            ("it has a routing key", row.session_key),
            ("it has a chat id", row.chat_id or row.origin_json),
            ("the routing table names it", row.id in led_to(context.store)),
            ("other sessions come from it", row.has_children),
        )
        if value
    ]
    if turns := later_turns(context, row.id):
        signs.append(f"{turns} more turn{'s were' if turns > 1 else ' was'} typed after an answer")
    return signs


def _begins_with_summary(context: Context, row: Marked) -> bool:
    return opening_summary(context.store, row.id, row.started_at) is not None


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session whose delegate mark is false, or may be."""
    for values in context.store.rows(MARKED):
        row = Marked(*values)
        if row.marker == ORPHANED:
            yield _orphaned(context, row, signs_of_a_conversation(context, row))
            continue
        node = context.graph.nodes.get(row.id) if row.marker == row.parent_id else None
        if node is not None and is_false_delegate(context, node):
            signs = ["it begins with a compaction summary, so it continues its parent"]
            if row.session_key and row.source != "subagent":
                signs.append("it has a routing key")
            summary = "Marked as a subagent run of its parent, though it continues it."
            yield _finding(context, row, Verdict.FAULT, Severity.HIGH, summary, signs)


def _orphaned(context: Context, row: Marked, signs: list[str]) -> Finding:
    if signs:
        summary = "A conversation is marked as an orphaned subagent run, and hidden from every list."
        return _finding(context, row, Verdict.FAULT, Severity.HIGH, summary, signs)
    if row.source == "cron" or row.id.startswith("cron_"):
        summary = "A scheduled run is marked as an orphaned subagent run."
        return _finding(context, row, Verdict.LEFTOVER, Severity.LOW, summary, [])
    summary = (
        "A short chat, or an old subagent run without its parent, is marked as an orphaned subagent run."
    )
    return _finding(context, row, Verdict.UNDECIDABLE, Severity.MEDIUM, summary, [])


def _finding(
    context: Context, row: Marked, verdict: Verdict, severity: Severity, summary: str, signs: list[str]
) -> Finding:
    if verdict is Verdict.UNDECIDABLE:
        remedy = "Read its first message: if a person wrote it, remove _delegate_from from its model_config."
    else:
        remedy = "Remove the key _delegate_from from its model_config."
    return RULE.finding(
        context,
        session=row.id,
        verdict=verdict,
        severity=severity,
        summary=summary,
        evidence=(
            ("mark", words(row.marker)),
            ("parent", words(row.parent_id)),
            ("signs of a conversation", signs),
            (
                "begins with a compaction summary",
                True if row.marker == ORPHANED and _begins_with_summary(context, row) else None,
            ),
            ("title", words(row.title)),
            ("source", words(row.source, 40)),
            ("started at", moment(row.started_at)),
            ("message count", row.message_count if isinstance(row.message_count, int) else None),
            (
                "what would decide",
                "its first message: a person's words, or a task that an agent set"
                if verdict is Verdict.UNDECIDABLE
                else None,
            ),
            heeding_marks(context.store),
        ),
        remedy=remedy,
        command=context.command("show", context.store_label, row.id),
    )


RULE = Rule(
    id="LIN008",
    slug="migration-mistag",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="untag",
    reads=(MARKED, OPENING, READS_SESSIONS, READS_MESSAGES),
)
