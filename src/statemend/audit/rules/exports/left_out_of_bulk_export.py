"""A bulk export left out a session that had not ended, and no other file holds it.

What it means
Many sessions were exported at once, and the export reads as if it were all of them. A session that was open
at that moment is not among them, and nothing said so. Whoever keeps the export as a backup lacks it.

How it happens
`hermes sessions export` with any filter (`--source`, `--older-than` and twenty more) chooses sessions as
pruning does, and pruning takes only those that have ended (#89223). Many sessions never end: programs that
are closed without a word, gateways, failed subagents.

How we know
The files that one manifest lists in quicker succession than Hermes can be started for each, or that say so
themselves where no manifest lies with them, are one bulk export, if they are of three sessions at least; so
is one file with as many. It has every session of its sources that had ended by then, begun no earlier than
the first and no later than the last of them; so the filter was no narrower than that. A session of the same
sources and the same stretch of time that was open then is not in it, and some of its messages are in no other
file either. A JSONL file that says when each session was last active lists all sessions, whatever it lacks,
and one of 0.17 or older takes open ones: of these nothing is said. Nor is anything said of one that has a
session twice, one that was open, or its sessions in another order than Hermes chooses them in. Exports of
single sessions that somebody joined in that order are the very same bytes, so of a JSONL file this is
undecidable. So it is where all messages of the session were stored after the export: then it was brought in
later, or its rows were written anew. When a file with many sessions was made is told by its own time.

What to do
Export the session by itself, or everything without a filter, which takes open sessions too.

When it is a false alarm
A filter that open sessions happen not to meet (a title, a number of messages) looks the same, and so do
sessions that a program chose and exported without starting Hermes for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from statemend.audit.context import Context
from statemend.audit.facts import is_time, listed, moment, words
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.audit.vanished import STORED_BEFORE
from statemend.evidence.bulk_exports import Bulk, bulk_exports

SESSIONS = """
SELECT s.id, s.source, s.started_at, s.ended_at, s.title
FROM sessions AS s
WHERE typeof(s.id) = 'text' AND COALESCE(s.pinned, 0) = 0
  AND EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id)
ORDER BY s.id
"""
_FEWEST = 3


class Session(NamedTuple):
    """A row of ``SESSIONS``."""

    id: str
    source: Any
    started_at: float
    ended_at: float | None
    title: Any

    def open_at(self, at: float) -> bool:
        return self.ended_at is None or self.ended_at > at


def check(context: Context) -> Iterator[Finding]:
    """One finding for each session, about the newest bulk export that left it out, of those that surely are
    one."""
    exports = sorted(bulk_exports(context.inventory), key=lambda bulk: (not bulk.may_be_joined, bulk.at))
    if not exports:
        return
    sessions = {
        row[0]: Session(*row)
        for row in context.store.rows(SESSIONS)
        if is_time(row[2]) and (row[3] is None or is_time(row[3]))
    }
    left_out: dict[str, Bulk] = {}
    for bulk in exports:
        missing = _left_out(bulk, sessions)
        if missing and bulk.may_be_filtered():
            left_out.update(dict.fromkeys(missing, bulk))
    unheld = {each.session_id: each.unheld for each in context.coverage}
    for session_id, bulk in sorted(left_out.items()):
        if session_id not in unheld or unheld[session_id]:
            yield _finding(context, sessions[session_id], bulk, unheld.get(session_id))


def _left_out(bulk: Bulk, sessions: Mapping[str, Session]) -> list[str]:
    """The sessions that were open, and that alone kept out of the export."""
    inside = [sessions[each] for each in bulk.sessions if each in sessions]
    if len(inside) < _FEWEST or any(each.open_at(bulk.at) for each in inside):
        return []  # an export that takes open sessions was not made with a filter
    sources = {each.source for each in inside}
    first, last = min(each.started_at for each in inside), max(each.started_at for each in inside)
    others = [
        each
        for each in sessions.values()
        if each.id not in bulk.sessions and each.source in sources and first <= each.started_at <= last
    ]
    if any(not each.open_at(bulk.at) for each in others):
        return []  # the filter was narrower
    return [each.id for each in others]


def _finding(context: Context, session: Session, bulk: Bulk, unheld: tuple[int, ...] | None) -> Finding:
    before = context.store.value(STORED_BEFORE, (session.id,))
    brought_in = is_time(before) and before > bulk.at
    unsure = bulk.may_be_joined or brought_in
    return RULE.finding(
        context,
        session=session.id,
        artifact=bulk.path,
        message_ids=unheld or (),
        verdict=Verdict.UNDECIDABLE if unsure else None,
        severity=Severity.LOW if unsure else None,
        summary="Open when all around it was exported, so it was left out, and no other file holds it."
        if not unsure
        else "No file holds it, and all around it was exported: a filter left it out, or something else.",
        evidence=(
            ("title", words(session.title)),
            ("source", words(session.source, 40)),
            ("started at", moment(session.started_at)),
            ("ended at", "open" if session.ended_at is None else moment(session.ended_at)),
            ("bulk export made at", moment(bulk.at)),
            ("known to be one by", bulk.known_by),
            ("exports of single sessions, joined, look the same", bulk.may_be_joined or None),
            ("its messages were stored after that", brought_in or None),
            ("sessions in it", len(bulk.sessions)),
            ("some of them", listed(sorted(bulk.sessions))),
            ("messages in no file", None if unheld is None else len(unheld)),
        ),
        remedy="Export the session by itself: no export with a filter takes one that has not ended.",
        command=context.command("export", context.store_label, session.id, output="exports"),
    )


RULE = Rule(
    id="EXP009",
    slug="left-out-of-bulk-export",
    family=Family.EXPORTS,
    level=Level.EXPORTS,
    severity=Severity.MEDIUM,
    verdict=Verdict.RISK,
    doc=__doc__ or "",
    check=check,
    reads=(SESSIONS, READS_MESSAGES, STORED_BEFORE),
)
