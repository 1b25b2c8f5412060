"""A row that was made in passing holds only the tail of a conversation.

What it means
The session is in the store under a row that no conversation made (source `unknown` or `recovered`), with its
last messages or none. What came before is not in the store any more, and a file beside it has it. Lists,
resume and export show the tail and take it for the whole.

How it happens
The session was deleted while its agent was still talking in it. The accounting of tokens then inserted a bare
row for it, in 0.13 to 0.22, from which on appends were accepted again: the new turns were stored, the old
ones were gone. A salvage of a damaged store makes such rows too, for messages whose session it could not
read.

How we know
What the store has of the session and what every file has of it is put together, message by message. Messages
that no row has stand before the first that a row has. Turns that were undone do not count.

What to do
Do not delete the row, and do not take the tail for the session. Keep the files that have the beginning: from
them and the tail the whole can be restored.

When it is a false alarm
A file of another store that has a session of the same id. Where store and files share no message, and the
files have more from the time of the tail, it is undecidable.
"""

from __future__ import annotations

from collections.abc import Iterator

from statemend.audit.context import Context
from statemend.audit.facts import listed, moment
from statemend.audit.finding import Finding, Severity, Verdict
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.evidence.salvage import Salvage, Salvager, Saved
from statemend.store.history import RowState

GHOSTS = """
SELECT s.id, s.source
FROM sessions AS s
WHERE typeof(s.id) = 'text' AND s.source IN ('unknown', 'recovered')
ORDER BY s.id
"""


def check(context: Context) -> Iterator[Finding]:
    """One finding for each row that lacks the beginning of its conversation."""
    sources: dict[str, str] = dict(context.store.rows(GHOSTS))
    salvager = Salvager(context.store, context.inventory)
    for session in context.coverage if sources else ():
        files = (*session.artifacts, *session.copies)
        if session.session_id not in sources or not any(each.extra for each in files):
            continue
        left = salvager.session(session.session_id)
        beginning = list(_before_the_tail(left, context.store.path))
        if beginning:
            yield _finding(context, left, beginning, sources[session.session_id])


def _before_the_tail(left: Salvage, store: str) -> Iterator[Saved]:
    """The messages before the first one that the store has."""
    for message in left.messages:
        if message.place.artifact == store:
            return
        if message.state is not RowState.REWOUND:
            yield message


def _finding(context: Context, left: Salvage, beginning: list[Saved], source: str) -> Finding:
    tail = [message for message in left.messages if message.place.artifact == context.store.path]
    shared = sum(bool(message.others) for message in tail)
    times = [message.at for message in beginning if message.at is not None]
    files = {message.place.artifact for message in beginning}
    number = f"{len(beginning):,} message{'s' if len(beginning) > 1 else ''}"
    only_in_files = [
        message
        for message in left.messages
        if message.place.artifact != context.store.path and message.state is not RowState.REWOUND
    ]
    joined = bool(shared) or not tail or len(only_in_files) == len(beginning)
    return RULE.finding(
        context,
        session=left.session_id,
        message_ids=[message.place.row_id for message in tail if message.place.row_id is not None],
        verdict=Verdict.FAULT if joined else Verdict.UNDECIDABLE,
        summary=f"The first {number} of this conversation are not in the store, only in files beside it."
        if len(beginning) > 1
        else "The first message of this conversation is not in the store, only in a file beside it.",
        evidence=(
            ("messages before the tail", len(beginning)),
            ("messages of the tail", len(tail)),
            ("messages that store and files share", shared),
            ("source of the row", source),
            ("first time", moment(min(times, default=None))),
            ("last time before the tail", moment(max(times, default=None))),
            ("first time of the tail", moment(tail[0].at) if tail else None),
            ("files with the beginning", listed(sorted(files))),
        ),
        remedy="Keep the row and the files: the tail is in the one, the beginning in the others.",
        command=context.command("show", context.store_label, left.session_id),
    )


RULE = Rule(
    id="ORP005",
    slug="ghost-row-tail",
    family=Family.ORPHANS,
    level=Level.EXPORTS,
    severity=Severity.HIGH,
    verdict=Verdict.FAULT,
    recipe="restore",
    doc=__doc__ or "",
    check=check,
    reads=(GHOSTS, READS_MESSAGES),
)
