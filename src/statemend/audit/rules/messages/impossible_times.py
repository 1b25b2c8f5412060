"""Messages have times that no clock shows.

What it means
A message's time is no number, not finite, or before 1970 or after 2103. Up to 0.20 an export of its session
as Markdown or HTML breaks off where the calendar has no such day; 0.22 writes such a message without its time
and leaves it out of what it counts by time. Retention by last activity goes by these times too.

How it happens
A salvage of a damaged file wrote the bytes of another cell (#91536, #99959). Another program stored text, or
milliseconds where seconds belong. 0.17 to 0.20 store any number that a plugin or an import gives them.

How we know
0.22 trusts seconds from 0 to 4,200,000,000 only, in what it reads and in what it writes, and every clock of
the releases before it shows such a time. A time that is possible but odd is no finding: a machine without a
clock of its own begins in 1970, and a compaction, a branch or an import carries messages that are older than
their session.

What to do
Take the true time from an export made earlier. Where there is none, give the row the time of the row before
it: display and model go by the order of the rows. Rows in milliseconds only want to be divided by 1,000.

When it is a false alarm
Never as to the fact: every release writes what its clock says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Any

from statemend.audit.context import Context
from statemend.audit.facts import MOST_LISTED, is_time, rows
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule

#: The seconds that 0.22 takes for a time: 1970 to 2103.
EARLIEST, LATEST = 0, 4_200_000_000
#: 2001 in milliseconds. What is greater, and no more than ``LATEST`` seconds, may be meant as milliseconds.
_MILLISECONDS = 1_000_000_000_000

#: The plus keeps SQLite to the index that has the times: in the row they lie behind the content.
ODD_TIMES = f"""
    SELECT session_id, id, iif(typeof(timestamp) IN ('real', 'integer'), timestamp, NULL)
    FROM messages
    WHERE typeof(timestamp) NOT IN ('real', 'integer') OR timestamp NOT BETWEEN {EARLIEST} AND {LATEST}
    ORDER BY +session_id, id
"""


class _Oddity(StrEnum):
    """What is wrong with a time, as the evidence words it."""

    NO_NUMBER = "no number"
    ENDLESS = "not finite"
    BEFORE = "before 1970"
    MILLISECONDS = "a time if read as milliseconds"
    AFTER = "after 2103"


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that has such rows."""
    for session_id, odd in groupby(context.store.rows(ODD_TIMES), key=itemgetter(0)):
        yield _finding(context, session_id, odd)


def _finding(context: Context, session_id: Any, odd: Iterator[tuple[Any, ...]]) -> Finding:
    counted: Counter[_Oddity] = Counter()
    first: list[int] = []
    for _, row_id, value in odd:
        counted[_oddity(value)] += 1
        if len(first) < MOST_LISTED:
            first.append(row_id)
    number = counted.total()
    return RULE.finding(
        context,
        session=str(session_id),
        message_ids=first,
        summary=f"{rows(number)} {'has a time' if number == 1 else 'have times'} that no clock shows.",
        evidence=[
            ("rows with impossible times", number),
            *((f"of them {oddity}", counted[oddity]) for oddity in _Oddity if counted[oddity]),
        ],
        remedy="Take the true times from an earlier export, or give each row the time of the row before it.",
    )


def _oddity(value: Any) -> _Oddity:
    if value is None:
        return _Oddity.NO_NUMBER
    if not is_time(value):
        return _Oddity.ENDLESS
    if value < EARLIEST:
        return _Oddity.BEFORE
    return _Oddity.MILLISECONDS if _MILLISECONDS <= value <= LATEST * 1000 else _Oddity.AFTER


RULE = Rule(
    id="MSG005",
    slug="impossible-times",
    family=Family.MESSAGES,
    level=Level.VALUES,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    reads=(ODD_TIMES,),
    columns=("messages.timestamp",),
)
