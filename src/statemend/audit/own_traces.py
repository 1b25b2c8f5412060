"""What the store's own tables tell of sessions that are gone: tasks of subagents, and replies to chats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from statemend.audit.context import Context
from statemend.audit.facts import listed, moment
from statemend.audit.finding import Value
from statemend.evidence.owed_replies import is_own_chat
from statemend.evidence.own_tables import OwnTable, own_tables
from statemend.formats.artifact import Kind, Section


class Trace(NamedTuple):
    """What one table tells: ``key`` names it, ``kept`` says for how long Hermes keeps such rows."""

    key: str
    summary: str
    kept: str
    evidence: tuple[tuple[str, Value], ...]


def traces_of_gone(context: Context, told: Iterable[str]) -> Iterator[Trace]:
    """At most one for each table; the sessions ``told`` are told of elsewhere. Raises ``StoreUnreadable``."""
    known = frozenset(told)
    for table in own_tables(context.store, context.inventory, (Kind.DELEGATIONS, Kind.REPLIES)):
        if table.artifact.kind is Kind.DELEGATIONS:
            yield from _handed_out(context, table, known)
        elif table.artifact.kind is Kind.REPLIES:
            yield from _owed(context, table)


def _handed_out(context: Context, table: OwnTable, told: frozenset[str]) -> Iterator[Trace]:
    named = [each for each in table.artifact.sections if each.session_id and each.session_id not in told]
    gone = [each for each in named if not context.has(each.session_id)]
    if gone:
        number, them = ("1 session is", "it") if len(gone) == 1 else (f"{len(gone):,} sessions are", "them")
        yield Trace(
            key="delegations",
            summary=f"{number} not in the store, though subagents had tasks from {them}.",
            kept="two weeks",
            evidence=(
                ("sessions", len(gone)),
                ("ids", listed(each.session_id for each in gone)),
                ("texts of tasks and results", sum(each.held or 0 for each in gone)),
                *_times(gone),
            ),
        )


def _owed(context: Context, table: OwnTable) -> Iterator[Trace]:
    root = Path(context.home.root)
    doubts = [each.section for each in table.open_questions if not each.candidates]
    owed = [each for each in doubts if is_own_chat(root, each.title or "")]
    if owed:
        replies = sum(each.held or 0 for each in owed)
        yield Trace(
            key="replies",
            summary=f"The store has the text of {'1 reply' if replies == 1 else f'{replies:,} replies'} to a "
            "chat, and no session of it.",
            kept="a week",
            evidence=(
                ("replies", replies),
                ("keys of the chats", listed(each.title or "" for each in owed)),
                *_times(owed),
            ),
        )


def _times(sections: Sequence[Section]) -> tuple[tuple[str, Value], ...]:
    first = min((each.first_at for each in sections if each.first_at is not None), default=None)
    last = max((each.last_at for each in sections if each.last_at is not None), default=None)
    return ("first time", moment(first)), ("last time", moment(last))
