"""Sessions continue each other, and no link was ever written between them.

What it means
One long conversation lies in the store as several independent sessions. Nothing is lost, but each release
shows every segment as a conversation of its own: resume of the first does not come to the last, an export of
one holds a part, and a list is full of the same title.

How it happens
Releases before 0.13 made the continuation of a compressed session without a parent, and did not end the older
one by compression. Salvages and imports that drop the parent column leave the same.

How we know
A session without a parent begins with a compaction summary, its title has the next number of the title of
another session that is older, of the same source and of no other user or routing key, and that other one was
ended neither by compression nor by a branch and has no continuation. It is a fault where the one begins
within five minutes of the end or of the last message of the other, or carries at least two of its rows;
otherwise undecidable, for people number titles too. So it is where rows are missing between them, or nothing
shows that the older one ran in this store (of an import, dead-end says more): a branch is numbered as well,
and from 0.20 on its continuation takes the number over. Without the branch the two look the same. No release
follows such a chain, whatever its era: each asks for a parent, and for an end by compression. Where a session
that a compression ended fits, dead-end and cut-continuation tell it.

What to do
Read where one segment stops and the next begins. Where they belong together, make each segment the parent of
the next, and end each but the last by compression (end_reason and the time of its last message).

When it is a false alarm
A conversation of which a middle part was given by hand the title that the next number asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from statemend.audit import unlinked
from statemend.audit.context import Context
from statemend.audit.facts import listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.handoff import CutRoot, cut_roots
from statemend.audit.pairing import READS
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.audit.unlinked import Link, never_linked


def check(context: Context) -> Iterator[Finding]:
    """One finding for each chain, named after its first session."""
    for chain in chains(context, list(cut_roots(context))):
        yield _finding(context, chain)


def chains(context: Context, roots: Sequence[CutRoot]) -> Iterator[list[Link]]:
    """The missing links of each chain in order, by the id of its first session."""
    links = never_linked(context, roots)
    following = {link.before.id: link for link in links.values()}
    for first in sorted(following.keys() - links.keys()):
        yield _chain(following, first)


def _chain(following: Mapping[str, Link], first: str) -> list[Link]:
    """The links from one session to the last; each begins later, so this ends."""
    chain = [following[first]]
    while (link := following.get(chain[-1].root.id)) is not None:
        chain.append(link)
    return chain


def _finding(context: Context, chain: list[Link]) -> Finding:
    first, last = chain[0].before, chain[-1].root
    told = all(link.reasons and link.doubt is None for link in chain)
    return RULE.finding(
        context,
        session=first.id,
        verdict=Verdict.FAULT if told else Verdict.UNDECIDABLE,
        severity=Severity.HIGH if told else Severity.LOW,
        summary=f"{len(chain) + 1} sessions continue each other, and no link says so."
        if told
        else f"{len(chain) + 1} sessions may continue each other by their titles; no link says so.",
        evidence=(
            ("title", words(first.title)),
            ("source", words(first.source, 40)),
            ("sessions", len(chain) + 1),
            ("first session", first.id),
            ("first began", moment(first.started_at)),
            ("last session", last.id),
            ("last began", moment(last.started_at)),
            ("missing links", listed(map(_told, chain))),
            ("rows that stand on both sides of a link", sum(link.carried for link in chain)),
            ("releases that follow the chain", "none: each asks for a parent and an end by compression"),
            (
                "what would decide",
                None if told else "an export or a log of the time, or the rows around each gap",
            ),
        ),
        remedy="Where they belong together, make each the parent of the next and end it by compression.",
        command=context.command("show", context.store_label, first.id),
    )


def _told(link: Link) -> str:
    ended = words(link.before.end_reason, 40) or "nothing, it is open"
    reasons = ", ".join(("the next number of its title", *link.reasons))
    doubt = f"; {link.doubt}" if link.doubt else ""
    return f"{link.before.id} > {link.root.id}: {reasons}; the first ended by {ended}{doubt}"


RULE = Rule(
    id="LIN013",
    slug="unlinked-chain",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="link-chain",
    reads=(READS_SESSIONS, READS_MESSAGES, *unlinked.READS, *READS),
)
