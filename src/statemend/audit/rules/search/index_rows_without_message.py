"""The search index holds rows of messages that are gone.

What it means
The words of a message outlived its row. A search that hits them finds no message to show. An index of 0.13
to 0.19 also keeps the whole text, so what somebody deleted on purpose is still in the file, and what was
lost by accident may be saved from there. A message cannot be restored under its old id while such an index
holds that id: the insert fails.

How it happens
Messages were deleted past the triggers that keep the index up to date: a tool without full-text search, a
salvage that left rows out, triggers that were missing meanwhile. 0.22 itself leaves rows in its index by
parts of words, where a session became a cron or subagent session after its messages had been indexed.

How we know
The ids that the index holds are compared with those of the messages. By default only the index by whole
words is looked at, and only where it does not hold as many rows as there are messages; --deep compares every
index row by row. Nothing is said of an index that the store notes as out of use. It is a leftover where
0.22 leaves such rows by itself, and where a missing trigger makes 0.16 and newer build the index anew.

What to do
If the index keeps texts, first decide whether the messages were deleted on purpose; if not, save their texts,
for they may be the only copy: `statemend artifacts --with-content` shows them. A text has neither role nor
time nor session; where an export or another store has the row, it is told whose it is. Then build the index
anew.

When it is a false alarm
Never as to the fact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.facts import MOST_LISTED, listed, rows
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.indexed import Difference, Index, Scope, heals, indexes, looks_alike, surplus
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.audit.structure import Part
from statemend.evidence.index_leftovers import leftovers


def check(context: Context) -> Iterator[Finding]:
    """One finding for each index that holds rows of messages that are gone."""
    kept: Counter[str] | None = None
    for index in indexes(context.store):
        if index.detached or looks_alike(context, index):
            continue
        left = surplus(context.store, index, MOST_LISTED)
        if left.count:
            if index.keeps_text and kept is None:
                kept = Counter(each.session_id or "" for each in leftovers(context.store, context.inventory))
            yield _finding(context, index, left, kept if index.keeps_text and kept else Counter())


def _finding(context: Context, index: Index, left: Difference, kept: Counter[str]) -> Finding:
    """``kept`` counts the texts by session, those of nobody known under an empty id."""
    lawful = index.scope is Scope.NO_MACHINES or heals(context.store, index)
    texts = " with their texts" if index.keeps_text else ""
    return RULE.finding(
        context,
        key=index.name,
        verdict=Verdict.LEFTOVER if lawful else Verdict.FAULT,
        severity=Severity.LOW,
        summary=f"{index.name} holds {rows(left.count)} of messages that are gone{texts}.",
        evidence=(
            ("kind", Part.SEARCH.value),
            ("name", index.name),
            ("meant to hold", index.scope.value),
            ("rows without a message", left.count),
            ("first of them", list(left.first)),
            ("keeps a copy of every text", index.keeps_text),
            ("sessions that these texts are of", listed(sorted(filter(None, kept))) or None),
            ("texts of these sessions", sum(kept.values()) - kept[""] or None),
            ("texts of which nothing tells the session", kept[""] or None),
            ("missing triggers", [f"{index.name}_{event}" for event in index.lacks] or None),
        ),
        remedy="Save the texts if they were not deleted on purpose (statemend artifacts --with-content), "
        "then build the index anew."
        if index.keeps_text
        else "Build the index anew from the messages; it holds no text that could be lost.",
    )


RULE = Rule(
    id="FTS002",
    slug="index-rows-without-message",
    family=Family.SEARCH,
    level=Level.DERIVED,
    severity=Severity.LOW,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="search-index",
    reads=(READS_MESSAGES,),
)
