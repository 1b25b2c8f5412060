"""A running process holds the store.

What it means
A process may write to the store while it is looked at. What was audited is a consistent copy of one moment;
nothing is wrong with that. But no repair is made while it runs, and what it holds back in memory, or writes
into a file that was replaced under it, is in no finding.

How it happens
A gateway, a desktop program, a scheduled job or another program has the store open, as every release from
0.13 on does while it runs.

How we know
The system lists the files that each process has open. Without --live such a store is not audited at all, so
this is only told with it. Where the process writes into a file that is no longer in the folder, its rows will
be lost when it ends.

What to do
Stop the process before a repair. Where it holds a file that was replaced, let it export what it has first.

When it is a false alarm
A program that only reads, such as a backup; it hinders a repair all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.facts import listed
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule


def check(context: Context) -> Iterator[Finding]:
    """One finding for all the processes that hold the store."""
    holders = context.store.holders
    if not holders:
        return
    number = f"{len(holders):,} process{'es hold' if len(holders) > 1 else ' holds'}"
    yield RULE.finding(
        context,
        summary=f"{number} the store; what was audited is a copy of one moment.",
        evidence=(
            ("processes", len(holders)),
            ("which", listed(map(str, holders))),
            ("write into a file that was replaced", sum(one.holds_deleted for one in holders) or None),
        ),
        remedy="Stop them before a repair.",
    )


RULE = Rule(
    id="STO006",
    slug="held-by-process",
    family=Family.STORE,
    level=Level.STRUCTURE,
    severity=Severity.INFO,
    verdict=Verdict.LEFTOVER,
    doc=__doc__ or "",
    check=check,
)
