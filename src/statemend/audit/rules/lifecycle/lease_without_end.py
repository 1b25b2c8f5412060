"""A lease or a lock holds a conversation for longer than any release asks for.

What it means
A turn, or a compression, notes in the store that it is under way, and others wait. The note runs out by
itself after five minutes unless its process renews it. This one does not run out for more than a day: until
then the conversation is not compressed, and 0.20 and newer refuse its turns and 0.22 its deletion.

How it happens
A clock that ran far ahead when the note was written, or that was set back since; a damaged cell; another
program. An expired note, or one of a process that has ended, is lawful and is told nowhere: every release
from 0.16 on leaves such notes and takes no heed of them.

How we know
The end of the note lies more than a day after this audit, or is no time at all. Releases ask for five minutes
at a time. A note whose process is provably gone is left out: 0.22 removes it by itself.

What to do
Stop Hermes, on every machine that uses this store; then no note in it is of use to anybody. Keep a copy of
the folder, open the store with `sqlite3 state.db`, and enter the statement that the finding names, one of
these two. Each takes away the notes that last for more than an hour from now, and touches no conversation:

`DELETE FROM compression_locks WHERE expires_at > strftime('%s', 'now') + 3600;`

`DELETE FROM session_turn_leases WHERE expires_at > strftime('%s', 'now') + 3600;`

Until then no plan can be applied to this store, and no run undone.

When it is a false alarm
The clock of the machine that audits runs behind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.facts import moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import Family, Level, Rule
from statemend.store.holders import Lease, leases

#: No release asks for a lease of this length (seconds).
_DAY = 86400.0
_TABLES = {"compression lock": "compression_locks", "turn lease": "session_turn_leases"}


def check(context: Context) -> Iterator[Finding]:
    """One finding for each lease or lock that does not run out."""
    for lease in leases(context.store, context.now):
        if lease.live is not False and lease.expires_at - context.now > _DAY:
            yield _finding(context, lease)


def _finding(context: Context, lease: Lease) -> Finding:
    ends = "never" if math.isinf(lease.expires_at) else moment(lease.expires_at)
    return RULE.finding(
        context,
        session=lease.key,
        key=lease.kind,
        summary=f"A {lease.kind} holds it until {ends}."
        if ends != "never"
        else f"A {lease.kind} holds it and never ends.",
        evidence=(
            ("kind", lease.kind),
            ("holder", words(lease.holder)),
            ("since", moment(lease.acquired_at)),
            ("until", ends),
            ("its process is there", lease.live),
        ),
        remedy="Stop Hermes wherever it uses this store. Then open the store with the sqlite3 shell, and "
        "enter this statement: "
        f"DELETE FROM {_TABLES[lease.kind]} WHERE expires_at > strftime('%s', 'now') + 3600;",
    )


RULE = Rule(
    id="LIF004",
    slug="lease-without-end",
    family=Family.LIFECYCLE,
    level=Level.HOUSEKEEPING,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
)
