"""The logs tell of messages that never reached the store.

What it means
Up to 0.20 Hermes answers even when it cannot store the turn, and only a line in the log says so. The user
saw the conversation; the store does not have it.

How it happens
The session was deleted while its agent was still running: each later append then fails with `FOREIGN KEY
constraint failed`. Or the store was locked, full or damaged. 0.22 rebuilds a deleted session and stores
the whole transcript again; earlier releases lose every turn from the failure on.

How we know
Lines of agent.log, errors.log and gateway.log, rotated and gzipped ones too, that say that an append
failed; one event that several logs tell of is counted once. Then the store is asked for the session. Its
rows bear UTC, the logs local time without a zone: the zone is told from sessions begun around that time,
whose ids bear the local time. Where those of different sources tell different zones (a gateway in a
container, a command line beside it), or none tell, nothing is claimed that depends on it.

What to do
No change of the store's own rows brings back what it never had, and no export has it either: exports are
made from the store. Look in what Hermes wrote from its memory: snapshots (session_ID.json), request dumps and
saved conversations in sessions/, files in pending_messages/, a process that still runs, the chat platform.
Where the session is gone as well and messages of it are left, rebuild it first (messages-without-session).
Where nothing of it is left, a plan offers to restore what an export or another file has from before.

When it is a false alarm
A failure that was made good later is reported as a leftover, when rows from after it are in the store.
Whether a session that is gone was deleted on purpose, the logs do not say.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from statemend.audit.company import Member
from statemend.audit.context import Context
from statemend.audit.facts import listed, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.known import KNOWN, is_known
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.audit.unstored import LOOK, SESSION, Judgement, judge
from statemend.audit.zone import DATED
from statemend.formats.logs import AppendFailure, distinct


def check(context: Context) -> Iterator[Finding]:
    by_session: dict[str | None, list[AppendFailure]] = {}
    for failure in distinct(one for log in context.inventory.logs for one in log.failures):
        by_session.setdefault(failure.session_id, []).append(failure)
    for session_id, group in sorted(by_session.items(), key=lambda item: item[0] or ""):
        member = _having(context, session_id)
        judgement = judge(context, session_id, group) if member is None else _of_another(group, member)
        if judgement is not None:
            yield _finding(context, session_id, group, judgement, member.path if member else None)


def _finding(
    context: Context,
    session_id: str | None,
    group: list[AppendFailure],
    judgement: Judgement,
    store: str | None = None,
) -> Finding:
    causes = dict.fromkeys(failure.error[:160] for failure in group if failure.error)
    known = session_id is not None and context.readable and (store or _is_shown(context, session_id))
    return RULE.finding(
        context,
        session=session_id,
        key=None if session_id else "untagged",
        verdict=judgement.verdict,
        severity=judgement.severity,
        summary=judgement.summary,
        evidence=[
            ("failures", len(group)),
            ("operations", list(dict.fromkeys(failure.operation for failure in group))),
            ("causes", listed(causes)),
            ("first, local time of the log", group[0].clock),
            ("last, local time of the log", group[-1].clock),
            *judgement.facts,
            ("files", list(dict.fromkeys(Path(failure.file).name for failure in group))),
            ("lines", listed(f"{Path(failure.file).name}:{failure.line}" for failure in group)),
        ],
        remedy=judgement.remedy,
        command=context.command("show", store or context.store_label, session_id or "") if known else None,
        planned=session_id is not None
        and judgement.verdict is Verdict.FAULT
        and _planned(context, session_id),
    )


def _planned(context: Context, session_id: str) -> bool:
    """Whether a plan has something for a session: its row, or all of it, where files still show it."""
    if context.store.one(SESSION, (session_id,)) is not None:
        return False
    return _is_shown(context, session_id)


def _is_shown(context: Context, session_id: str) -> bool:
    """Whether the store or a file beside it has something of a session."""
    named = (context.inventory.by_session, context.inventory.stores_by_session)
    return is_known(context.store, session_id) or any(session_id in sections() for sections in named)


def _having(context: Context, session_id: str | None) -> Member | None:
    """The other store of the home that has a session which this one lacks."""
    if session_id is None or not context.company or not context.trusts("sessions", "messages"):
        return None
    return None if is_known(context.store, session_id) else next(iter(context.elsewhere(session_id)), None)


def _of_another(group: list[AppendFailure], member: Member) -> Judgement:
    """Of a session that another store of the home has: what became of it, that store tells."""
    number = len(group)
    return Judgement(
        Verdict.UNDECIDABLE,
        Severity.MEDIUM,
        f"{number:,} write{'' if number == 1 else 's'} to a store failed; the session is in that of profile "
        f"{words(member.profile, 64)}.",
        f"Compare the last turns in that store with what the user saw. {LOOK}",
        (("store that has the session", member.path),),
    )


RULE = Rule(
    id="ORP004",
    slug="append-failures",
    family=Family.ORPHANS,
    level=Level.REFERENCES,
    severity=Severity.CRITICAL,
    verdict=Verdict.FAULT,
    recipe="restore",
    doc=__doc__,
    reads=(SESSION, DATED, KNOWN, READS_MESSAGES),
    check=check,
    needs_store=False,
)
