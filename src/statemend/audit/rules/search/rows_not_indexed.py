"""The search index lacks messages: a search does not find them.

What it means
Hermes finds old messages through a search index, by whole words and, in a second one, by parts of words.
These messages are stored, shown and read by the model, but a search passes over them. (0.20 and newer read
every message where the index finds nothing at all; where it finds others, these stay unfound.)

How it happens
The triggers that keep an index up to date were missing for a while: a release that ran on a Python without
full-text search drops them, and so do some tools before they copy many rows. Or rows were written past them:
by a salvage, by another SQLite with triggers off, by a copy of tables. No release misses a row while its
triggers stand.

How we know
Each index keeps the id of every row that it holds; that list is compared with the messages that its source
names (tool results, and in 0.22 cron and subagent sessions, are left out of the index by parts of words on
purpose). By default only the index by whole words is looked at, and only where it does not hold as many rows
as there are messages; --deep compares every index row by row. Messages that wait for a rebuild that the
store has noted are left out, and nothing is said of an index that the store notes as out of use. Where a
trigger is missing, 0.16 and newer build the index anew when they next open the store: then it is a leftover.

What to do
Build the index anew: it holds nothing that the messages do not. Until then do not take a search that finds
nothing for proof that a message is gone.

When it is a false alarm
Where a conversation was a program's for a while, between times when it was a person's. (What came before the
first message that the index by parts of words holds of a session is not counted: 0.22 leaves out what cron
and subagents say, and adds nothing when a person goes on with it.)
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.facts import MOST_LISTED, rows
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.indexed import Difference, Index, heals, indexes, looks_alike, missing
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.audit.structure import Part


def check(context: Context) -> Iterator[Finding]:
    """One finding for each index that lacks messages."""
    for index in indexes(context.store):
        if index.detached or looks_alike(context, index):
            continue
        lacking = missing(context.store, index, MOST_LISTED)
        if lacking.count:
            yield _finding(context, index, lacking)


def _finding(context: Context, index: Index, lacking: Difference) -> Finding:
    healed = heals(context.store, index)
    told = (
        f"{rows(lacking.count)} of the messages {'is' if lacking.count == 1 else 'are'} not in {index.name}"
    )
    return RULE.finding(
        context,
        key=index.name,
        message_ids=lacking.first,
        verdict=Verdict.LEFTOVER if healed else Verdict.FAULT,
        severity=Severity.LOW if healed else Severity.MEDIUM,
        summary=f"{told}; Hermes builds it anew when it opens the store."
        if healed
        else f"{told}: no search finds what is written there.",
        evidence=(
            ("kind", Part.SEARCH.value),
            ("name", index.name),
            ("meant to hold", index.scope.value),
            ("rows not indexed", lacking.count),
            ("first of them", list(lacking.first)),
            ("keeps a copy of every text", index.keeps_text),
            ("missing triggers", [f"{index.name}_{event}" for event in index.lacks] or None),
            ("waiting for a rebuild after row", index.waiting_from),
            ("waiting for a rebuild up to row", index.waiting_to),
        ),
        remedy="Open the store with Hermes."
        if healed
        else "Build the index anew from the messages; nothing is lost by it.",
    )


RULE = Rule(
    id="FTS001",
    slug="rows-not-indexed",
    family=Family.SEARCH,
    level=Level.DERIVED,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="search-index",
    reads=(READS_MESSAGES,),
)
