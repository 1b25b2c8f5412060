"""The number of messages that Hermes keeps for a session is not the number it has.

What it means
Lists, filters and prune bounds go by message_count, not by the rows. A count of 0 hides a conversation
from lists that leave out empty ones; worse, 0.16 to 0.20 delete ended sessions with a count of 0 as
empty, with every message in them.

How it happens
Rows were inserted, deleted or salvaged without the counter: by other programs, by a partial recovery, by
an old gateway that counted twice (#12563), by a message that was stored while its session row was missing.

How we know
Each release keeps the counter in its own way, and every number that one of them would lawfully hold is
accepted. 0.13 to 0.15 count every row. From 0.16 on appending counts up and compaction sets the number of
live rows; taking a turn back leaves the counter as it was up to 0.20 and sets it to the live rows from
0.22 on, so anything from the live rows to the live and rewound rows is lawful. Rows whose active flag is
unset may have been counted or not. A session that 0.22 rebuilt during a recovery (source recovered)
counts every row. Archived rows are never counted otherwise.

What to do
Recompute the counter from the live rows. Until then do not run a clean-up of empty sessions, and do not
prune by number of messages.

When it is a false alarm
A plugin writes messages by itself and leaves the counter alone on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from statemend.audit.context import Context
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.store.history import Census
from statemend.store.schema import Era

COUNTERS = "SELECT id, message_count, source, ended_at IS NOT NULL AND archived = 0 FROM sessions ORDER BY id"

#: The eras whose clean-up of empty sessions believes the counter.
TRUSTING = frozenset({Era.V16, Era.V18, Era.V20})


def lawful(counted: Census, source: Any) -> range:
    """Every number that a release would keep for a session with these rows."""
    most = counted.live + counted.rewound + counted.unset
    if source == "recovered":
        most += counted.archived
    return range(counted.live, most + 1)


def check(context: Context) -> Iterator[Finding]:
    rows = context.census
    era = context.store.schema.era
    for session_id, kept, source, ended in context.store.rows(COUNTERS):
        counted = rows.get(session_id) or Census(session_id, 0, 0, 0, 0, None, None)
        bounds = lawful(counted, source)
        if (0 if kept is None else kept) in bounds:
            continue
        deletable = kept == 0 and bool(ended) and era in TRUSTING
        shown = kept if isinstance(kept, int | float | None) else repr(kept)[:40]
        yield RULE.finding(
            context,
            session=str(session_id),
            severity=Severity.HIGH if deletable else Severity.LOW,
            summary=f"It counts as empty: a clean-up by this release would delete its {counted.total:,} rows."
            if deletable
            else f"The counter says {shown}; the session has {counted.live:,} live rows.",
            evidence=[
                ("message_count", shown),
                ("lawful from", bounds.start),
                ("lawful to", bounds.stop - 1),
                ("live rows", counted.live),
                ("archived rows", counted.archived),
                ("rewound rows", counted.rewound),
                ("rows with no state", counted.unset),
                ("a clean-up of empty sessions would delete it", deletable),
            ],
            remedy="Run no clean-up of empty sessions until the counter is recomputed from the live rows."
            if deletable
            else "Recompute the counter from the live rows.",
        )


RULE = Rule(
    id="CNT001",
    slug="message-count-drift",
    family=Family.COUNTERS,
    level=Level.COUNTERS,
    severity=Severity.LOW,
    verdict=Verdict.FAULT,
    doc=__doc__,
    reads=(COUNTERS, READS_MESSAGES),
    check=check,
    recipe="counters",
)
