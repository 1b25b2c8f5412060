"""A subagent's run is shown as a conversation of its own.

What it means
The row of this session was made in passing, with the source unknown, no parent and no configuration, and what
it holds is what a subagent was asked to do. Every release lists it among the conversations; deleting the
session that asked for it leaves it there, and nothing leads from one to the other.

How it happens
The row of the run could not be made: the store was locked, or the row of the parent was not there yet. The
accounting of tokens then inserted a bare row, and the messages went in under it. 0.18 to 0.20 fill in parent
and mark when they make the row a second time, and 0.22 the source too; 0.13 to 0.17 never do, and no release
does when the run is over before its parent is stored.

How we know
The row is bare and a root, and its first message is a user's. It is a fault where another session of this
store called the tool delegate_task within an hour with exactly this message as the goal: a run is given its
goal to the letter. Each such session is listed; a compression copies the call into a continuation, so there
may be more than one. Without such a call it is undecidable while the session has a single user's row and no
title: a run has one task, but so has a short chat. A session of which a file knows more is told by
ghost-row-tail, and one that begins with a summary by cut-continuation.

What to do
Make the session that asked for it its parent, and mark it as its subagent's run (_delegate_from).

When it is a false alarm
A person who says to Hermes, in a session whose row was made in passing, what an agent of theirs had asked of
a subagent within the hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statemend.audit.context import Context
from statemend.audit.eras import written_by
from statemend.audit.facts import listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rescued import READS, Caller, Run, bare_runs, callers
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session that is a subagent's run, or may be."""
    runs = list(bare_runs(context))
    asked = callers(context, runs) if runs else {}
    open_ = [run for run in runs if run.id not in asked and run.user_rows == 1 and run.title is None]
    known = _known_to_files(context) if open_ else frozenset()
    undecided = {run.id for run in open_ if run.id not in known}
    for run in runs:
        if run.id in asked or run.id in undecided:
            yield _finding(context, run, asked.get(run.id, ()))


def _known_to_files(context: Context) -> frozenset[str]:
    """The sessions of which a file beside the store has messages that the store lacks."""
    return frozenset(
        session.session_id
        for session in context.coverage
        if any(each.extra for each in (*session.artifacts, *session.copies))
    )


def _finding(context: Context, run: Run, asked: Sequence[Caller]) -> Finding:
    counts = context.census[run.id]
    return RULE.finding(
        context,
        session=run.id,
        message_ids=(run.first_id,),
        verdict=Verdict.FAULT if asked else Verdict.UNDECIDABLE,
        severity=Severity.MEDIUM if asked else Severity.LOW,
        summary="A subagent's run without its parent is listed as a conversation."
        if asked
        else "A bare row with one task in it: a subagent's run without its parent, or a short chat.",
        evidence=(
            ("title", words(run.title)),
            ("started at", moment(run.started_at)),
            ("first message at", moment(run.first_at)),
            ("last message at", moment(run.last_at)),
            ("live rows", counts.live),
            ("rows of a user", run.user_rows),
            ("sessions that asked for exactly this", len(asked)),
            ("asked by", listed(f"{caller.id}, stored {moment(caller.at)}" for caller in asked) or None),
            (
                "what would decide",
                None if asked else "its first message, a log of the time, or the session that called it",
            ),
            written_by(context.store),
        ),
        remedy=f"Make {asked[0].id} its parent, and mark it as its subagent's run."
        if len(asked) == 1
        else "Read its first message: if an agent wrote it, find the session that asked for it.",
        command=context.command("show", context.store_label, run.id),
    )


RULE = Rule(
    id="LIN011",
    slug="rescued-subagent",
    family=Family.LINEAGE,
    level=Level.LINEAGE,
    severity=Severity.MEDIUM,
    verdict=Verdict.FAULT,
    doc=__doc__ or "",
    check=check,
    recipe="adopt",
    reads=(*READS, READS_MESSAGES),
    columns=("sessions.model_config", "messages.tool_calls"),
)
