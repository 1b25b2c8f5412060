"""Messages carry flags that no command of Hermes writes.

What it means
Two flags say where a message stands: live (1, 0), archived by a compaction (0, 1), taken back (0, 0). A row
whose active is neither 0 nor 1 is none of these: the model does not read it, nobody is shown it unless it
also bears the archive mark, and no release heals it. A row that is live and archived at once was summarized
away and is read by the model again, beside its summary; when it is undone it goes to the archive instead of
out of sight. A message whose observed is neither 0 nor 1 counts as one that was only overheard.

How it happens
Another program wrote the rows: it stored true as text, or copied cells into the wrong columns; a salvage of
a damaged file can do that too. Archived rows come to life where a plugin calls restore_rewound of 0.18 to
0.20, which does not ask what a row was before, and where 0.18 and newer heal archived rows without a state.

How we know
Every release asks for active = 1 and compacted = 1 and writes 0 or 1. The archive mark is only ever set
together with active = 0, so a live row that has it was archived before. A flag that is NULL counts as 0 in
every query of Hermes, except active, which is the matter of MSG001.

What to do
Export the session with every row first. Rows that were archived belong out of the model's sight again:
active = 0. What a row with another value was, its neighbours tell; give it the flags that they have.

When it is a false alarm
When somebody brought archived rows back on purpose. They are in the model's context twice, then: as
themselves and in the summary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Any

from statemend.audit.context import Context
from statemend.audit.facts import MOST_LISTED, rows
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule

_ODD = "active NOT IN (0, 1) OR compacted NOT IN (0, 1 - active) OR observed NOT IN (0, 1)"
ODD_FLAGS = f"""
    SELECT session_id, id, active, compacted, observed
    FROM messages
    WHERE {_ODD}
    ORDER BY session_id, id
"""


class _Oddity(StrEnum):
    """What is wrong with a row's flags, worst first, as the evidence words it."""

    STATELESS = "neither live, nor archived, nor taken back"
    ALIVE_AGAIN = "archived and live at once"
    OVERHEARD = "taken for overheard through an odd mark"
    HARMLESS = "with odd marks that have no effect now"


_SEVERITY = {
    _Oddity.STATELESS: Severity.HIGH,
    _Oddity.ALIVE_AGAIN: Severity.MEDIUM,
    _Oddity.OVERHEARD: Severity.MEDIUM,
    _Oddity.HARMLESS: Severity.LOW,
}


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that has such rows."""
    if context.suspects(RULE):
        for session_id, odd in groupby(context.store.rows(ODD_FLAGS), key=itemgetter(0)):
            yield _finding(context, session_id, odd)


def _finding(context: Context, session_id: Any, odd: Iterator[tuple[Any, ...]]) -> Finding:
    counted: Counter[_Oddity] = Counter()
    first: list[int] = []
    for _, row_id, *flags in odd:
        counted[_oddity(*flags)] += 1
        if len(first) < MOST_LISTED:
            first.append(row_id)
    worst = next(oddity for oddity in _Oddity if counted[oddity])
    number = counted.total()
    return RULE.finding(
        context,
        session=str(session_id),
        message_ids=first,
        severity=_SEVERITY[worst],
        summary=f"{rows(number)} {'carries' if number == 1 else 'carry'} flags that no release writes, "
        f"{counted[worst]:,} of them {worst}.",
        evidence=[
            ("rows with impossible flags", number),
            *((f"of them {oddity}", counted[oddity]) for oddity in _Oddity if counted[oddity]),
        ],
        remedy="Export the session with every row, then give each row the flags that it should have: 1 and 0 "
        "if it is live, 0 and 1 if it was archived, 0 and 0 if it was taken back.",
        planned=set(counted) == {_Oddity.ALIVE_AGAIN},
    )


def _oddity(active: Any, compacted: Any, observed: Any) -> _Oddity:
    """The worst that the flags of one row amount to."""
    if active not in (0, 1, None) or (active == 0 and compacted not in (0, 1, None)):
        return _Oddity.STATELESS
    if active == 1 and compacted == 1:
        return _Oddity.ALIVE_AGAIN
    return _Oddity.OVERHEARD if observed and observed != 1 else _Oddity.HARMLESS


RULE = Rule(
    id="MSG002",
    slug="impossible-flags",
    family=Family.MESSAGES,
    level=Level.VALUES,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="rearchive",
    reads=(ODD_FLAGS,),
    sign=f"COUNT(*) FILTER (WHERE {_ODD})",
)
