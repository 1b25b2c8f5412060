"""Messages have no state: they are neither live nor taken back.

What it means
The column active of these rows is NULL. Whatever asks for live rows passes them over: the model does not
read them, and 0.16 and 0.17 neither show nor find them. 0.18 and newer make every such row live when they
open the store; until then they hide it as well.

How it happens
Some early releases added the column to an older store without its default, and 0.16 and 0.17 insert messages
without naming it: in such a store every new message loses its state. Other programs that copy rows may leave
it out too.

How we know
NULL is compared with nothing. What a row was is told from its neighbours: compacted = 1 says archived; a row
older than the last archived one, or younger than the first that was taken back, may have been meant as well
but was passed over, since both happen to live rows only. Every other row was live.

What to do
Give the rows their state. Where this release heals them by itself, do it before it opens the store if some
of them are archived or undecided: it would make them live again, and the model would read them. Where the
column has no default, go on with 0.18 or newer, which names the state of each new row.

When it is a false alarm
Never as to the fact. A plugin may keep rows out of sight in this way; 0.18 and newer will show them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from statemend.audit.context import Context
from statemend.audit.facts import MOST_LISTED, moment, rows
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.audit.unset import DOUBTFUL, Lost, has_default, unset_rows
from statemend.store.history import Census
from statemend.store.schema import Era


class _Judgement(NamedTuple):
    verdict: Verdict
    severity: Severity
    summary: str
    remedy: str


def check(context: Context) -> Iterator[Finding]:
    for session_id, counted in context.census.items():
        if counted.unset:
            yield _finding(context, session_id, counted)


def _finding(context: Context, session_id: str, counted: Census) -> Finding:
    found = unset_rows(context.store, session_id)
    first = list(islice(found, MOST_LISTED))
    lost = Counter(row.lost for row in first)
    lost.update(row.lost for row in found)
    doubtful = sum(lost[state] for state in DOUBTFUL)
    judgement = _judge(context, counted.unset, doubtful + lost[Lost.ARCHIVED])
    return RULE.finding(
        context,
        session=str(session_id),
        message_ids=[row.id for row in first],
        verdict=judgement.verdict,
        severity=judgement.severity,
        summary=judgement.summary,
        evidence=[
            ("rows with no state", counted.unset),
            ("of them live", lost[Lost.LIVE]),
            ("of them archived", lost[Lost.ARCHIVED]),
            ("of them older than an archived row", lost[Lost.BEFORE_COMPACTION]),
            ("of them younger than a row taken back", lost[Lost.AFTER_REWIND]),
            ("live rows", counted.live),
            ("archived rows", counted.archived),
            ("rewound rows", counted.rewound),
            ("first time of the session", moment(counted.first_at)),
            ("last time of the session", moment(counted.last_at)),
            ("a new row gets a state by default", has_default(context.store)),
        ],
        remedy=judgement.remedy,
        command=context.command("plan", context.home.root, output="plan.json"),
    )


def _judge(context: Context, unset: int, not_live: int) -> _Judgement:
    """``not_live`` of the ``unset`` rows are archived or undecided."""
    if context.store.schema.era is Era.V16:
        return _Judgement(
            Verdict.FAULT,
            Severity.HIGH,
            f"{_have(unset)} no state, and this release shows no such row.",
            "Give the rows their state, then go on with 0.18 or newer, which names the state of new rows.",
        )
    if not_live:
        return _Judgement(
            Verdict.RISK,
            Severity.MEDIUM,
            f"{_have(unset)} no state: Hermes makes every one live when it opens the store, also "
            f"{rows(not_live)} archived or undecided.",
            "Give the rows their state before Hermes opens the store: what was archived or taken back would "
            "be read by the model again.",
        )
    return _Judgement(
        Verdict.LEFTOVER,
        Severity.LOW,
        f"{_have(unset)} no state: Hermes makes them live when it opens the store.",
        "Open the store with Hermes, or give the rows their state as it would.",
    )


def _have(number: int) -> str:
    return f"{rows(number)} {'has' if number == 1 else 'have'}"


RULE = Rule(
    id="MSG001",
    slug="active-unset",
    family=Family.MESSAGES,
    level=Level.VALUES,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__,
    reads=(READS_MESSAGES,),
    check=check,
    recipe="heal-active",
)
