"""A search index is not kept up to date with the messages.

What it means
What is stored, changed or deleted from now on does not reach this search index: a search does not find it,
or finds what is gone. What the index should hold and does not is told by FTS001, what it holds of messages
that are gone by FTS002.

How it happens
A release that runs on a Python without full-text search drops the triggers, and so do tools before they copy
many rows. 0.20 and newer note a rebuild that is under way, and an index that is out of use until it is built
anew. A copy of another store's tables, or a change of layout that broke off, leaves triggers that are written
for another layout; no release does it by itself.

How we know
Each index has three triggers on the messages: for what is stored, changed and deleted. One is missing; or it
does not fit its index, which forgets a row by deleting it where it keeps texts of its own, and by being told
the text where it does not. The notes of the store tell of the rest. Where a trigger is missing, 0.16 and
newer build the index anew when they next open the store; 0.13 to 0.15 do not, and then it is a risk.

What to do
Open the store with Hermes 0.16 or newer: it makes the missing triggers, and finishes what is noted. Where
triggers are written for another layout, `hermes sessions optimize-storage` of 0.20 or newer makes index and
triggers anew.

When it is a false alarm
While a rebuild is under way, and where a Python without full-text search is in use on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.indexed import Index, heals, indexes
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule


def check(context: Context) -> Iterator[Finding]:
    """One finding for each index that is not kept up."""
    for index in indexes(context.store):
        told = _told(index, heals_itself=heals(context.store, index))
        if told is not None:
            verdict, severity, summary, remedy = told
            yield RULE.finding(
                context,
                key=index.name,
                verdict=verdict,
                severity=severity,
                summary=summary,
                evidence=(
                    ("name", index.name),
                    ("keeps a copy of every text", index.keeps_text),
                    ("missing triggers", [f"{index.name}_{event}" for event in index.lacks] or None),
                    (
                        "triggers of another layout",
                        [f"{index.name}_{event}" for event in index.unfit] or None,
                    ),
                    ("noted as out of use", index.detached),
                    ("waiting for a rebuild after row", index.waiting_from),
                    ("waiting for a rebuild up to row", index.waiting_to),
                ),
                remedy=remedy,
            )


def _told(index: Index, *, heals_itself: bool) -> tuple[Verdict, Severity, str, str] | None:
    name = index.name
    if index.detached:
        summary = f"The store notes that {name} is out of use until it is built anew."
        return (
            Verdict.LEFTOVER,
            Severity.INFO,
            summary,
            "Open the store with Hermes: it builds the index anew.",
        )
    if index.unfit:
        summary = f"Triggers of {name} are written for another layout: what is deleted stays findable."
        remedy = "Make index and triggers anew: hermes sessions optimize-storage, of 0.20 or newer."
        return Verdict.RISK, Severity.MEDIUM, summary, remedy
    if index.lacks and heals_itself:
        summary = f"{name} lacks a trigger; Hermes builds it anew when it opens the store."
        return Verdict.LEFTOVER, Severity.LOW, summary, "Open the store with Hermes."
    if index.lacks:
        summary = f"{name} lacks a trigger: what comes from now on is not found."
        return Verdict.RISK, Severity.MEDIUM, summary, "Open the store with Hermes 0.16 or newer."
    if index.waiting_to is not None:
        summary = f"A rebuild of {name} is under way, or broke off: older messages are not found yet."
        return Verdict.LEFTOVER, Severity.INFO, summary, "Open the store with Hermes: it goes on with it."
    return None


RULE = Rule(
    id="FTS003",
    slug="index-not-kept-up",
    family=Family.SEARCH,
    level=Level.DERIVED,
    severity=Severity.MEDIUM,
    verdict=Verdict.RISK,
    doc=__doc__ or "",
    check=check,
    reads=(READS_MESSAGES,),
)
