"""Sessions that something beside the store knows are not in it.

What it means
Logs tell of turns, files hold messages, a chat is routed to a session, or a subagent had its task from one,
of which the store has neither the row nor a message. Or a reply is kept for a chat of which no session is
there: its text may be all that is left. Either it was deleted, by somebody or by pruning, or the store lost
it or never had it.

How it happens
Deleting and pruning leave no trace in a store, in no release. Nor does what should not happen: a row that
could not be made because the store was locked, a store that was replaced under a running program, a salvage
that left rows behind.

How we know
Ids are compared. Left out is what other rules tell of: messages without a session row, appends that failed,
exports that are proved incomplete, sessions of which only a filtered export is left, and those of which only
routes and bindings in the store itself are left. Told apart are sessions of which a whole transcript or
another store is left (exported or copied, and deleted since, is what that looks like: a leftover), those of
which only a running agent's own files are left, one finding each, and those that only logs, the gateway's
file of routes or the store's own tables of tasks and replies name. Replies to chats of other profiles are
left out: their sessions are in other stores.

What to do
`statemend show` says of each what could be restored, from which files and how well. If one is missed, keep
those files: Hermes deletes some of them by itself. If all were deleted on purpose, nothing is to be done.

When it is a false alarm
Files, logs or stores of another profile or another machine that lie among those of this home. A session that
somebody deleted: nothing here can say so, which is why this is never called a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from statemend.audit.context import Context
from statemend.audit.facts import listed, moment
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.known import KNOWN
from statemend.audit.own_traces import traces_of_gone
from statemend.audit.routes import ways_to_nothing
from statemend.audit.rule import READS_MESSAGES, READS_SESSIONS, Family, Level, Rule
from statemend.audit.rules.exports import deleted_after_incomplete_export
from statemend.evidence.coverage import SessionCoverage
from statemend.formats import routing_file
from statemend.formats.artifact import AUTOMATIC, FILTERED, Kind


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that only its agent's files hold, and one for each other kind of
    evidence."""
    told = _told_elsewhere(context)
    absent = {each.session_id: each for each in context.coverage if not each.present}
    kept = {sid: each for sid, each in absent.items() if sid not in told and _is_kept(each)}
    if kept:
        yield _kept(context, kept)
    for session_id, session in absent.items():
        if session_id not in told and session_id not in kept and _has_messages(session):
            yield _traced(context, session)
    yield from _named(context, told | _routed(context) | absent.keys())
    for trace in traces_of_gone(context, told | _routed(context) | absent.keys()):
        yield RULE.finding(
            context,
            key=trace.key,
            severity=Severity.LOW,
            summary=trace.summary,
            evidence=trace.evidence,
            remedy="Nothing is to be done if it was deleted; otherwise save the texts (statemend artifacts "
            f"--with-content) before Hermes drops these rows, after {trace.kept}.",
            command=context.command("artifacts", context.home.root),
        )


def _told_elsewhere(context: Context) -> set[str]:
    """The sessions that other rules tell of."""
    failed = {one.session_id for log in context.inventory.logs for one in log.failures}
    cut = {finding.subject.session for finding in deleted_after_incomplete_export.check(context)}
    return {each for each in failed | cut if each is not None}


def _routed(context: Context) -> set[str]:
    """The sessions to which routes or bindings of the store lead: of one of which nothing else is known, the
    rule about these tells."""
    return {way.session_id for way in ways_to_nothing(context)}


def _is_kept(session: SessionCoverage) -> bool:
    """Whether a transcript that somebody asked for, or another store, has the session."""
    return any(each.records for each in session.elsewhere) or any(
        each.records and each.damage is None and each.kind not in FILTERED | AUTOMATIC
        for each in session.remains
    )


def _has_messages(session: SessionCoverage) -> bool:
    return any(each.records and not each.filtered for each in session.remains)


def _kept(context: Context, kept: Mapping[str, SessionCoverage]) -> Finding:
    files = {each.artifact for session in kept.values() for each in (*session.remains, *session.elsewhere)}
    return RULE.finding(
        context,
        key="kept",
        verdict=Verdict.LEFTOVER,
        severity=Severity.INFO,
        summary=f"{_sessions(len(kept))} not in the store, and a transcript or another store has "
        f"{'each of them' if len(kept) > 1 else 'it'}.",
        evidence=(
            ("sessions", len(kept)),
            ("ids", listed(sorted(kept))),
            ("files", listed(sorted(files))),
        ),
        remedy="If one is missed, keep these files: it can be restored from them.",
    )


def _traced(context: Context, session: SessionCoverage) -> Finding:
    remains = [each for each in session.remains if each.records]
    most = max(remains, key=lambda each: each.records)
    return RULE.finding(
        context,
        session=session.session_id,
        artifact=most.artifact,
        summary="Not in the store, and left only in files that nobody asked for, or that are damaged.",
        evidence=(
            ("messages in the fullest file", most.records),
            ("kinds of files", sorted({each.kind.value for each in remains})),
            ("files", listed(each.artifact for each in remains)),
            ("started at", moment(most.started_at)),
            ("first message at", moment(most.first_message_at)),
        ),
        remedy="Copy these files before Hermes or somebody else cleans up, unless it was deleted on purpose.",
        command=context.command("show", context.store_label, session.session_id),
    )


def _named(context: Context, known: set[str]) -> Iterator[Finding]:
    """The sessions of which nothing is left but their name."""
    clocks: dict[str, tuple[str, str]] = {}
    for log in context.inventory.logs:
        for told in log.turns:
            first, last = clocks.get(told.session_id, (told.first, told.last))
            clocks[told.session_id] = min(first, told.first), max(last, told.last)
    gone = sorted(each for each in clocks if each not in known and not context.has(each))
    if gone:
        yield RULE.finding(
            context,
            key="turns",
            severity=Severity.LOW,
            summary=f"{_sessions(len(gone))} not in the store, though the logs tell of turns in "
            f"{'them' if len(gone) > 1 else 'it'}.",
            evidence=(
                ("sessions", len(gone)),
                ("ids", listed(gone)),
                ("first turn, local time of the log", min(clocks[each][0] for each in gone)),
                ("last turn, local time of the log", max(clocks[each][1] for each in gone)),
            ),
            remedy="Nothing is to be done if they were deleted or pruned; otherwise look for a copy of the "
            "store from that time.",
        )
    chats = {
        entry.session_id: entry.session_key
        for artifact in context.inventory.artifacts
        if artifact.kind is Kind.ROUTING
        for entry in routing_file.entries(Path(artifact.path))
    }
    lost = sorted(each for each in chats.keys() - known if not context.has(each))
    if lost:
        yield RULE.finding(
            context,
            key="routed",
            severity=Severity.LOW,
            summary=f"{_sessions(len(lost))} not in the store, though sessions.json sends a chat to "
            f"{'them' if len(lost) > 1 else 'it'}.",
            evidence=(
                ("sessions", len(lost)),
                ("ids", listed(lost)),
                ("keys of the chats", listed(chats[each] for each in lost)),
            ),
            remedy="Remove the entry from sessions/sessions.json while the gateway is stopped, unless the "
            "session is to be restored first.",
        )


def _sessions(number: int) -> str:
    return "1 session is" if number == 1 else f"{number:,} sessions are"


RULE = Rule(
    id="ORP003",
    slug="known-but-absent",
    family=Family.ORPHANS,
    level=Level.EXPORTS,
    severity=Severity.MEDIUM,
    verdict=Verdict.UNDECIDABLE,
    recipe="restore",
    doc=__doc__ or "",
    check=check,
    reads=(KNOWN, READS_SESSIONS, READS_MESSAGES),
)
