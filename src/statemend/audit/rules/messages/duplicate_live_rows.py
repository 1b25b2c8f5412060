"""Live rows of a conversation repeat another live row, down to the microsecond of its time.

What it means
One message was stored twice, and both rows are live. The model reads it twice, and so does whoever reads an
export: the conversation shows turns that nobody said again.

How it happens
What an agent had stored already is stored once more: after a compression hand-off (#104079, 0.20 and 0.21),
when a part of a batch failed and all of it is written again, or, in 0.22.2, when a branch is compacted in
place while the chat that made it goes on: what the branch took over from its parent then stands in it twice.
0.19 to 0.21 import the archived rows of an export by 0.22 as live ones, beside the copies that a compaction
made of them. From 0.17 on a message keeps its time when it is stored again; up to 0.16 it gets a new one, and
then nothing tells it from a repeated word.

How we know
Two or more live rows of one session are alike in role, text, tool calls, tool name and platform id, and have
the very same time, with a fraction of a second; no other live row of the session has that time. People say
"ok" twice, but not within the same microsecond. Times in whole seconds, as some platforms give them, tell
nothing and are left out, and so are batches that were written with one time for all.

What to do
Nothing is lost. If the repeated turns disturb the model, go on in a new session, or undo to before them and
say the rest again. Nothing is deleted for it here.

When it is a false alarm
When a program stored a message twice on purpose, with one time.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.facts import listed, moment
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule

#: The first part is answered from the index on (session_id, active, timestamp) alone.
REPEATED = """
WITH shared AS (
  SELECT session_id, timestamp, MIN(active) AS live, COUNT(*) AS number
  FROM messages
  GROUP BY session_id, active, timestamp
  HAVING COUNT(*) > 1
)
SELECT m.session_id, m.timestamp, MIN(m.id), COUNT(*)
FROM shared AS s
CROSS JOIN messages AS m ON m.session_id = s.session_id AND m.timestamp = s.timestamp
WHERE s.live = 1
  AND m.active = 1
  AND typeof(m.session_id) = 'text'
  AND typeof(m.timestamp) = 'real'
  AND m.timestamp <> CAST(m.timestamp AS INTEGER)
GROUP BY m.session_id, m.timestamp, m.role, m.content, m.tool_call_id, m.tool_calls, m.tool_name,
         m.platform_message_id
HAVING COUNT(*) = s.number
ORDER BY m.session_id, MIN(m.id)
"""


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session with such rows."""
    found: dict[str, list[tuple[float, int, int]]] = {}
    for session_id, at, first, rows in context.store.rows(REPEATED):
        found.setdefault(session_id, []).append((at, first, rows))
    for session_id, repeated in found.items():
        surplus = sum(rows - 1 for _, _, rows in repeated)
        yield RULE.finding(
            context,
            session=session_id,
            message_ids=[first for _, first, _ in repeated],
            summary=f"{surplus:,} live row{'s repeat' if surplus > 1 else ' repeats'} "
            "another live row, at the very same time.",
            evidence=(
                ("rows that only repeat another", surplus),
                ("messages that they repeat", len(repeated)),
                ("first rows, how often, and when", listed(_told(*each) for each in repeated)),
            ),
            remedy="Nothing is lost; go on in a new session if the repeated turns disturb the model.",
            command=context.command("show", context.store_label, session_id),
        )


def _told(at: float, first: int, rows: int) -> str:
    return f"{first}: {rows} times, at {moment(at)}"


RULE = Rule(
    id="MSG004",
    slug="duplicate-live-rows",
    family=Family.MESSAGES,
    level=Level.HISTORY,
    severity=Severity.LOW,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    reads=(REPEATED,),
)
