"""Messages are in the store whose session is not.

What it means
The text is there and nothing shows it: lists, resume, search and export all start from the session row.
As long as the row is missing, every further append to this session fails with `FOREIGN KEY constraint
failed`.

How it happens
A session was deleted by a program that does not enforce foreign keys, or while an agent was still talking
in it. An older delete left the messages behind (#87928). The sessions table was damaged and only partly
salvaged.

How we know
Rows of messages name a session id that sessions does not have. Ids are compared, nothing is inferred.

What to do
Rebuild the session row; do not delete the messages to satisfy the constraint: they may be the only copy.
What was said after the row went missing never reached the store, nor any export made from it since. The logs
tell of it (append-failures); look for it in request dumps, snapshots and saved conversations in sessions/.

When it is a false alarm
Never as to the fact. The session may have been deleted on purpose by something that forgot the messages;
then they are leftovers, and only the operator knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from statemend.audit.context import Context
from statemend.audit.facts import moment
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule
from statemend.store.history import Census, census, display

#: Jumps from one session id to the next through an index: one step for each session, not for each row.
ORPHANED_IDS = """
    WITH RECURSIVE known (session_id) AS (
        SELECT MIN(session_id) FROM messages
        UNION ALL
        SELECT (SELECT MIN(m.session_id) FROM messages AS m WHERE m.session_id > known.session_id)
        FROM known
        WHERE known.session_id IS NOT NULL
    )
    SELECT session_id, CAST(session_id AS BLOB)
    FROM known
    WHERE session_id IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = known.session_id)
"""
ROLES = "SELECT role, COUNT(*) FROM messages WHERE session_id = ? GROUP BY role ORDER BY role"
ROLE_NAMES = frozenset({"user", "assistant", "tool", "system", "session_meta"})
#: For an id that is not valid text: it is shown escaped, so it cannot be asked for by what is shown.
BY_BYTES = "SELECT id FROM messages WHERE session_id = CAST(? AS TEXT) ORDER BY id"
NAMELESS = "SELECT id FROM messages WHERE session_id IS NULL ORDER BY id"


def check(context: Context) -> Iterator[Finding]:
    for session_id, raw in list(context.store.rows(ORPHANED_IDS)):
        counted = next(census(context.store, session_id), None)
        if counted is None:
            yield _misnamed(
                context, session_id, [row_id for (row_id,) in context.store.rows(BY_BYTES, (raw,))]
            )
        else:
            yield _orphaned(context, session_id, counted)
    nameless = [row_id for (row_id,) in context.store.rows(NAMELESS)]
    if nameless:
        yield RULE.finding(
            context,
            key="nameless",
            message_ids=nameless,
            summary=f"{len(nameless):,} messages name no session at all.",
            evidence=[("rows", len(nameless))],
            remedy="Find their session by the rows around them, for ids follow the order of writing.",
            planned=False,
        )


def _orphaned(context: Context, session_id: Any, counted: Census) -> Finding:
    store = context.store
    name = session_id if isinstance(session_id, str) else repr(session_id)
    return RULE.finding(
        context,
        session=name,
        message_ids=[logical.shown.id for logical in display(store, session_id)],
        summary=f"{_belong(counted.total)} to a session that is not in the store.",
        evidence=[
            ("rows", counted.total),
            ("live rows", counted.live),
            ("archived rows", counted.archived),
            ("rewound rows", counted.rewound),
            ("rows with no state", counted.unset),
            ("first time", moment(counted.first_at)),
            ("last time", moment(counted.last_at)),
            ("rows by role", _by_role(store.rows(ROLES, (session_id,)))),
        ],
        remedy="Rebuild the session row from what is known of it. Do not delete the messages: they may be "
        "the only copy.",
        planned=isinstance(session_id, str),
    )


def _misnamed(context: Context, shown: str, rows: list[int]) -> Finding:
    belong = _belong(len(rows))
    return RULE.finding(
        context,
        session=shown,
        message_ids=rows,
        summary=f"{belong} to a session that is not in the store, and whose id is not valid text.",
        evidence=[("rows", len(rows)), ("id with its odd bytes escaped", shown)],
        remedy="Find their session by the rows around them, for ids follow the order of writing. "
        "Do not delete the messages: they may be the only copy.",
        planned=False,
    )


def _belong(total: int) -> str:
    return "1 message belongs" if total == 1 else f"{total:,} messages belong"


def _by_role(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """Rows by role. A cell that holds no role may hold anything, so it is not shown."""
    counts: Counter[str] = Counter()
    for role, number in rows:
        counts[role if role in ROLE_NAMES else "no role"] += number
    return [f"{role}: {counts[role]}" for role in sorted(counts)]


RULE = Rule(
    id="ORP001",
    slug="messages-without-session",
    family=Family.ORPHANS,
    level=Level.REFERENCES,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__,
    reads=(ORPHANED_IDS, ROLES, BY_BYTES, NAMELESS),
    check=check,
    recipe="rebuild-session",
)
