"""A session is gone from the store, and its best export proves that it is not the whole session.

What it means
The session was compacted in place: its older turns stood in it as archived rows. The export shows the
summary that replaced them and not the turns themselves. The session was deleted since, with every row it
had. What the summary stands for is gone from here.

How it happens
`hermes sessions export --delete-after-verified` of 0.18 to 0.21.4 writes the live rows, verifies the file
against the same live rows, reports success and deletes all rows of the session. Exporting with such a
release and deleting later, by hand or by pruning, ends the same way.

How we know
No row of the session is left. An export is taken for one of live rows when it begins with a summary (at most
three messages, as many as compaction keeps, stand before it), shows no row as no longer live, and does not
hold more messages than were live. That the older turns were in this very session is certain when a message
behind the summary is older than the summary and not older than the session. It is taken for certain, too,
when the session is at least a minute older than the summary and took place in the terminal or the desktop
program, where nothing but an in-place compaction does that. The rule is silent when a rotating compression
began the session, whose older turns are another session's: it names a parent, holds messages older than
itself, or starts where another session was ended by compression. Where the store has the continuation of that
one, this can only be a second: then it is undecidable, unless a message proves the compaction. The rule is
silent, too, when any other artifact shows archived messages, or reaches from before the compaction to the
first turns that this one shows. Otherwise it is undecidable. So it is where the store never held the session,
as far as its row ids tell: a message of the export has the id of another one here, or one that was never
given; or, in a format without ids, none is missing from within an hour of the summary (a day for a page,
whose zone is not known). Then it may be an export of another store, which has everything still. Another store
that still has the session is named: it can be restored from there as long as that lies here, and Hermes
deletes its own snapshots in their turn. Texts that an old search index kept of messages that are gone are
counted: the lost turns may be among them.

What to do
Keep the export; it is the best there is. Look for a copy of the store from before the deletion:
state-snapshots/, backups/, the file system's own snapshots. Stop using the option with releases before
0.22.

When it is a false alarm
An export of another store (another profile, another machine) without row ids lying among those of this home,
where rows of this store from the same hour were deleted too. A /retry of 0.18 or 0.19, which rewrites the
session and drops its archived rows, so that they were lost before the export was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statemend.audit import anew, holes
from statemend.audit.context import Context
from statemend.audit.deleted import (
    COMPRESSION_ENDS,
    End,
    Witness,
    compression_ends,
    is_from_before,
    joins,
    rotated,
    starts_at_one,
    witnesses,
)
from statemend.audit.elsewhere import stores_with_session
from statemend.audit.facts import listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.holes import may_have_held
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.evidence.coverage import SessionCoverage
from statemend.formats.artifact import Kind
from statemend.store.index_texts import count_leftovers

#: A page tells local times, of a zone that it does not name (seconds) ...
_ANY_ZONE = 86_400.0
#: ... and what is in UTC may have been stored only when the turn ended.
_ONE_TURN = 3600.0


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that is gone and was not exported whole."""
    ends: list[End] | None = None
    for session in context.coverage:
        if session.present or all(each.first_summary is None for each in session.remains):
            continue
        everything = list(witnesses(context, session))
        partial = [witness for witness in everything if witness.live_only]
        transcripts = [witness for witness in partial if not witness.remains.filtered]
        if not partial or any(witness.whole for witness in everything):
            continue
        best = max(transcripts or partial, key=lambda witness: (witness.inside, witness.remains.records))
        earlier = [witness for witness in everything if is_from_before(witness)]
        if any(joins(witness, best) for witness in earlier):
            continue
        if ends is None:
            ends = compression_ends(context)
        if best.inside or not any(rotated(witness, ends) for witness in partial):
            yield _finding(context, session, best, everything, earlier, beside=starts_at_one(best, ends))


def _verdict(
    best: Witness, earlier: Sequence[Witness], *, was_here: bool, beside: bool
) -> tuple[Verdict, Severity]:
    certain = was_here and (best.inside or (best.older and best.only_in_place and not beside))
    if certain and not earlier and not best.remains.filtered:
        return Verdict.FAULT, Severity.CRITICAL
    return Verdict.UNDECIDABLE, Severity.HIGH


def _may_have_been_here(context: Context, best: Witness, everything: Sequence[Witness]) -> bool:
    """Whether the store may have held the session, as far as its row ids tell."""
    named = [row_id for witness in everything for row_id in witness.row_ids]
    if named:
        beginning = anew.beginning_of(context)
        return not any(beginning.is_strange(row_id) for row_id in named)
    within = _ANY_ZONE if best.remains.kind is Kind.HTML else _ONE_TURN
    return best.summary_at is None or may_have_held(context, best.summary_at, within)


def _finding(
    context: Context,
    session: SessionCoverage,
    best: Witness,
    everything: Sequence[Witness],
    earlier: Sequence[Witness],
    *,
    beside: bool,
) -> Finding:
    was_here = _may_have_been_here(context, best, everything)
    verdict, severity = _verdict(best, earlier, was_here=was_here, beside=beside)
    remains = best.remains
    sha256 = next(each.sha256 for each in context.inventory.artifacts if each.path == remains.artifact)
    stores = stores_with_session(context, session)
    if verdict is Verdict.FAULT:
        summary = "Deleted, and the turns that its summary replaced are in no export."
    else:
        gone = "Gone from the store" if was_here else "Not in this store, which may never have had it"
        summary = f"{gone}, and its exports begin with a summary of turns that they do not show."
    return RULE.finding(
        context,
        session=session.session_id,
        artifact=remains.artifact,
        verdict=verdict,
        severity=severity,
        summary=summary,
        evidence=(
            ("exported at", moment(remains.exported_at)),
            ("messages in the export", remains.records),
            ("messages it says it holds", remains.declared),
            ("messages it says were live", remains.source_count),
            ("messages before its summary", remains.first_summary),
            ("session started at", moment(remains.started_at)),
            ("summary made at", moment(best.summary_at)),
            ("a shown message stood before the compaction", best.inside),
            ("rows missing here from about then", was_here),
            ("began where a session was compressed that has its continuation", beside or None),
            ("source", words(best.fields.get("source"), 40)),
            ("sha256 of the export", sha256),
            ("exports from before the compaction", len(earlier)),
            ("artifacts of this session", len(everything)),
            ("artifact files", listed(witness.remains.artifact for witness in everything)),
            *stores,
            ("texts of gone messages in the search index", count_leftovers(context.store) or None),
        ),
        remedy="Keep this export, and copy the named stores to another place before Hermes deletes them."
        if stores
        else "Keep this export, and look for a copy of the store from before the deletion.",
    )


RULE = Rule(
    id="EXP002",
    slug="deleted-after-incomplete-export",
    family=Family.EXPORTS,
    level=Level.EXPORTS,
    severity=Severity.CRITICAL,
    verdict=Verdict.FAULT,
    recipe="restore",
    doc=__doc__ or "",
    check=check,
    reads=(READS_SESSIONS, READS_MESSAGES, COMPRESSION_ENDS, *holes.READS, *anew.READS),
)
