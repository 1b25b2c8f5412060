"""A row that was made in passing holds only the tail of a conversation.

What it means
The session is in the store under a row that no conversation made (source `unknown` or `recovered`), with its
last messages or none. Or its row was made again, with what its agent had in memory: what a compaction had
archived is missing. What came before is not in the store any more, and a file beside it has it. Lists, resume
and export show what is left and take it for the whole.

How it happens
The session was deleted while its agent was still talking in it. The accounting of tokens then inserted a bare
row for it, in 0.13 to 0.22, from which on appends were accepted again: the new turns were stored, the old
ones were gone. A salvage of a damaged store makes such rows too, for messages whose session it could not
read. 0.22.2 makes the row again when an append finds it gone, and writes what is in memory once more; what
was archived is not in memory.

How we know
What the store has of the session and what every file has of it is put together, message by message. Messages
that no row has stand before the first that a row has. Turns that were undone do not count. A row was made
again where it is younger than a copy of it says, and than messages in it that the copy has too. Of such a
session only those messages are missed that a file has marked as archived: what an older file shows as live
may have been undone since.

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
from statemend.evidence.remade import REMADE, remade_sessions
from statemend.evidence.salvage import Salvage, Salvager, Saved
from statemend.store.history import RowState

GHOSTS = """
SELECT s.id, s.source
FROM sessions AS s
WHERE typeof(s.id) = 'text' AND s.source IN ('unknown', 'recovered')
ORDER BY s.id
"""


def check(context: Context) -> Iterator[Finding]:
    """One finding for each row that lacks the beginning of its conversation, or what was archived of it."""
    ghosts: dict[str, str] = dict(context.store.rows(GHOSTS))
    remade = remade_sessions(context.store, context.inventory)
    candidates = ghosts.keys() | remade.keys()
    salvager = Salvager(context.store, context.inventory)
    for session in context.coverage if candidates else ():
        session_id = session.session_id
        files = (*session.artifacts, *session.copies)
        if session_id not in candidates or not any(each.extra for each in files):
            continue
        left = salvager.session(session_id)
        if session_id in ghosts:
            beginning = list(_before_the_tail(left, context.store.path))
            if beginning:
                yield _finding(context, left, beginning, ghosts[session_id])
        elif _was_put_back(left, context.store.path, remade[session_id]):
            archived = list(_archived_in_files(left, context.store.path))
            if archived:
                yield _healed(context, left, archived, remade[session_id])


def _before_the_tail(left: Salvage, store: str) -> Iterator[Saved]:
    """The messages before the first one that the store has."""
    for message in left.messages:
        if message.place.artifact == store:
            return
        if message.state is not RowState.REWOUND:
            yield message


def _only_in_files(left: Salvage, store: str) -> Iterator[Saved]:
    """The messages that the store lacks, but for those that were undone."""
    for message in left.messages:
        if message.place.artifact != store and message.state is not RowState.REWOUND:
            yield message


def _archived_in_files(left: Salvage, store: str) -> Iterator[Saved]:
    """The messages that the store lacks and files mark as archived, but for those that it may have with
    another text."""
    doubted = {id(left.messages[number]) for each in left.conflicts for number in each.messages}
    for message in _only_in_files(left, store):
        if message.state is RowState.ARCHIVED and id(message) not in doubted:
            yield message


def _was_put_back(left: Salvage, store: str, begun: float) -> bool:
    """Whether the store has a message from before its row that a file has as well."""
    return any(
        message.place.artifact == store and message.others and message.at is not None and message.at < begun
        for message in left.messages
    )


def _finding(context: Context, left: Salvage, beginning: list[Saved], source: str) -> Finding:
    tail = [message for message in left.messages if message.place.artifact == context.store.path]
    shared = sum(bool(message.others) for message in tail)
    times = [message.at for message in beginning if message.at is not None]
    files = {message.place.artifact for message in beginning}
    number = f"{len(beginning):,} message{'s' if len(beginning) > 1 else ''}"
    only_in_files = list(_only_in_files(left, context.store.path))
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


def _healed(context: Context, left: Salvage, archived: list[Saved], begun: float) -> Finding:
    stored = [message for message in left.messages if message.place.artifact == context.store.path]
    times = [message.at for message in archived if message.at is not None]
    number = f"{len(archived):,} archived message{'s' if len(archived) > 1 else ''}"
    return RULE.finding(
        context,
        session=left.session_id,
        message_ids=[message.place.row_id for message in stored if message.place.row_id is not None],
        summary=f"The row of this conversation was made again without {number}: only files beside the store "
        f"have {'them' if len(archived) > 1 else 'it'}.",
        evidence=(
            ("archived messages that only files have", len(archived)),
            ("messages of the store", len(stored)),
            ("messages that store and files share", sum(bool(message.others) for message in stored)),
            ("row made again", moment(begun)),
            ("first time", moment(min(times, default=None))),
            ("last time of what was archived", moment(max(times, default=None))),
            ("files with it", listed(sorted({message.place.artifact for message in archived}))),
        ),
        remedy="Keep the row and the files: what was in memory is in the one, the rest in the others.",
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
    reads=(GHOSTS, REMADE, READS_MESSAGES),
)
