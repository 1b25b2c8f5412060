"""A session is in two stores of this home.

What it means
Two profiles have a session of the same id. Ids are made so that this does not happen by chance: one is a copy
of the other, or both are what became of one session. Where each has messages that the other lacks, whoever
takes one for a mere copy and deletes it destroys the only record of those.

How it happens
Creating a profile as a clone copied the store up to 0.16. A program that worked for one profile and wrote to
the store of another went on there with the same id. 0.22 takes over sessions that a bot had left in the
default profile's store and keeps the old copy, archived and ended as adopted_by_profile. By copying a folder
by hand.

How we know
The messages are compared by content: role, text, time, calls of tools and their results. Flags, row ids and
titles are no content. Told apart are copies, pairs of which one has everything that the other has, and pairs
of which each has something of its own: one finding for each of these, one for all others of two stores.

What to do
Delete neither of a pair of which each has something of its own: export both first. `hermes sessions
repair-profiles` of 0.22 goes by how many messages each has, not by what they say. Of the others the shorter
may go, never the longer; whether it is missed in its profile, only its user can say.

When it is a false alarm
A copy that was made on purpose: it is called a leftover. That two copies went on separately, in two profiles
that both are in use, may be what was wanted; nothing here can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from statemend.audit.company import Member
from statemend.audit.context import Context
from statemend.audit.facts import listed, moment, words
from statemend.audit.finding import Finding, Severity, Value, Verdict
from statemend.audit.known import KNOWN, is_known
from statemend.audit.rule import READS_MESSAGES, Family, Level, Rule
from statemend.audit.twins import CELLS, Twins, compare
from statemend.errors import StatemendError, Undetermined
from statemend.store.connection import Store

IDS = "SELECT id FROM sessions WHERE typeof(id) = 'text' ORDER BY id"
ROW = "SELECT title, source, end_reason FROM sessions WHERE id = ?"
LAST = "SELECT MAX(timestamp) FROM messages WHERE session_id = ?"


class _Pair(NamedTuple):
    session_id: str
    twins: Twins


def check(context: Context) -> Iterator[Finding]:
    """What each store before this one has of its sessions; the pairs with those after it are told there."""
    trouble = []
    for member in context.company.before if context.company else ():
        try:
            yield from _compared(context, member)
        except StatemendError as error:
            trouble.append(str(error))
    if trouble:
        raise Undetermined(f"not every store of the home could be compared: {'; '.join(trouble)}")


def _compared(context: Context, member: Member) -> Iterator[Finding]:
    context.report(f"comparing with {member.path}")
    contained = []
    for (session_id,) in context.store.rows(IDS):
        if is_known(member.store, session_id):
            pair = _Pair(session_id, compare(context.store, member.store, session_id))
            if pair.twins.here and pair.twins.there:
                yield _diverged(context, member, pair)
            else:
                contained.append(pair)
    if contained:
        yield _contained(context, member, contained)


def _diverged(context: Context, member: Member, pair: _Pair) -> Finding:
    twins = pair.twins
    return RULE.finding(
        context,
        session=pair.session_id,
        key=member.home.place or None,
        verdict=Verdict.UNDECIDABLE,
        severity=Severity.HIGH,
        message_ids=twins.here,
        summary=f"Profile {words(member.profile, 64)} has a session of this id too, and each has messages "
        "that the other lacks.",
        evidence=(
            ("the other store", member.path),
            ("rows that both have", twins.both),
            ("rows that only this store has", len(twins.here)),
            ("rows that only the other has", len(twins.there)),
            ("their ids there", listed(map(str, twins.there))),
            *_described("here", context.store, pair.session_id),
            *_described("there", member.store, pair.session_id),
        ),
        remedy="Delete neither of the two: each is the only one with some messages. Export both first.",
        command=context.command("show", member.path, pair.session_id),
    )


def _contained(context: Context, member: Member, pairs: list[_Pair]) -> Finding:
    longer = [pair for pair in pairs if pair.twins.here]
    shorter = [pair for pair in pairs if pair.twins.there]
    more = longer or shorter
    sessions = "1 session is" if len(pairs) == 1 else f"{len(pairs):,} sessions are"
    return RULE.finding(
        context,
        key=f"copies {member.home.place}",
        verdict=Verdict.LEFTOVER,
        severity=Severity.LOW if more else Severity.INFO,
        summary=f"{sessions} in the store of profile {words(member.profile, 64)} too, "
        + ("and one of the two has all that the other has." if more else "message for message."),
        evidence=(
            ("the other store", member.path),
            ("sessions", len(pairs)),
            ("of these the same in both", len(pairs) - len(longer) - len(shorter)),
            ("longer here", len(longer)),
            ("rows that only this store has", sum(len(pair.twins.here) for pair in longer)),
            ("ids of those longer here", listed(pair.session_id for pair in longer) or None),
            ("longer there", len(shorter)),
            ("rows that only the other has", sum(len(pair.twins.there) for pair in shorter)),
            ("ids of those longer there", listed(pair.session_id for pair in shorter) or None),
            ("ids", listed(pair.session_id for pair in pairs)),
        ),
        remedy="Where one of two is to go, let it be the shorter, never the longer."
        if more
        else "Nothing is to be done. Where one of two is to go, it does not matter which.",
    )


def _described(where: str, store: Store, session_id: str) -> Iterator[tuple[str, Value]]:
    title, source, reason = store.one(ROW, (session_id,)) or (None, None, None)
    yield f"title {where}", words(title)
    yield f"source {where}", words(source, 40)
    yield f"end reason {where}", words(reason, 60)
    yield f"last message {where}", moment(store.value(LAST, (session_id,)))


RULE = Rule(
    id="PRO003",
    slug="one-id-in-two-stores",
    family=Family.PROFILES,
    level=Level.HISTORY,
    severity=Severity.HIGH,
    verdict=Verdict.UNDECIDABLE,
    doc=__doc__ or "",
    reads=(IDS, ROW, LAST, CELLS, KNOWN, READS_MESSAGES),
    check=check,
    needs_company=True,
    in_pairs=True,
)
