"""Most rows of a conversation only repeat another archived row.

What it means
Nothing is missing, and nothing is wrong in what the model reads. But a search finds the same message once
for each of its rows, and the store, its search indexes and each backup hold the conversation many times
over.

How it happens
In-place compaction archives every live row and writes those that it keeps once more. 0.18 to 0.20 mark the
originals of what they keep as archived too, so each compaction leaves one more archived row of every message
that it keeps (#86366). 0.22 sets the originals of the kept tail aside as superseded. But where a setting has
old tool results pruned ahead of time, 0.20 and 0.22 both archive the whole conversation each time, without a
summary, and their rows grow with the square of the turns.

How we know
Rows are compared in every stored column but their own id, their flags and message_uid. Of rows that are
alike the first and the one that a display shows are not counted. One archived row for each compaction that
kept the message is how these releases work, and no finding. A compaction that is worth its while takes more
out of sight than it keeps, though, so that most messages are kept once or twice: this is reported when the
rows that only repeat others are more than half of the live and archived rows, and at least 100.

What to do
Collapse them: `statemend cleanup plan HOME --collapse -o cleanup.json`, then `statemend cleanup apply
cleanup.json`. No message goes, and every display stays as it is. Update Hermes first, and set
compression.proactive_prune_tokens to 0, or they come again.

When it is a false alarm
When the copies are wanted, as by a program that counts the rows of each compaction. Copies that got a time
of their own, as 0.18 to 0.20 give them within one run, are messages of their own to every display: they are
neither counted nor collapsed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.store.repeats import Repeats, multiplied


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session whose rows are repetitions for the most part."""
    for found in multiplied(context.store, context.census.values()):
        yield _finding(context, found, context.census[found.session_id].archived)


def _finding(context: Context, found: Repeats, archived: int) -> Finding:
    surplus = len(found.surplus)
    return RULE.finding(
        context,
        session=found.session_id,
        summary=f"{surplus:,} of {found.rows:,} rows only repeat another row of the conversation.",
        evidence=(
            ("rows that only repeat another", surplus),
            ("bytes that they hold", found.size),
            ("messages that they repeat", found.messages),
            ("most rows of one message", found.most),
            ("live and archived rows", found.rows),
            ("archived rows", archived),
        ),
        remedy="Update Hermes, then collapse the copies; every display stays as it is.",
        command=shlex.join(
            [
                *("statemend", "cleanup", "plan", "--collapse", f"--session={found.session_id}"),
                *("-o", "cleanup.json", "--", context.home.root),
            ]
        ),
    )


RULE = Rule(
    id="MSG003",
    slug="archived-copies-multiplied",
    family=Family.MESSAGES,
    level=Level.HISTORY,
    severity=Severity.LOW,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    reads=(READS_MESSAGES,),
)
