"""What an operator must know before a session is restored, one sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from statemend.audit.facts import listed, moment
from statemend.evidence.rows import Fidelity
from statemend.evidence.salvage import Gap, Lack
from statemend.repair.salvaged import Calls, Salvaged, SalvagedRow
from statemend.repair.salvaged_times import zoneless
from statemend.store.message import RowState

_FIDELITIES = {
    Fidelity.LOSSY: "in a form that drops some of a message",
    Fidelity.MASKED: "masked, with secrets redacted",
}
_LOST = {
    Lack.CUT: "a file ends before its end",
    Lack.COMPACTED: "a summary stands for turns that nothing shows",
    Lack.FILTERED: "only what the user said is left",
}


def evidence_of(lost: Salvaged, rows: Sequence[SalvagedRow], calls: Calls) -> Iterator[str]:
    """How many messages come back, from when and how well; what is made up, undecided, without a partner or
    lost."""
    messages = {row.message: row for row in rows}
    times = [at for row in rows if row.timed and isinstance(at := row.values["timestamp"], int | float)]
    yield (
        f"{_count(len(messages), 'comes', 'come')} back in {_count(len(rows), noun='row')}, "
        f"from {moment(min(times, default=None))} to {moment(max(times, default=None))}."
    )
    states = Counter(row.state for row in rows)
    hidden = [
        f"{states[each]:,} {each.value}" for each in (RowState.ARCHIVED, RowState.REWOUND) if states[each]
    ]
    if hidden:
        yield f"Of the rows {' and '.join(hidden)}: no longer live in the newest transcript."
    doubled = sum(lost.stored(number) is not None for number in messages)
    if doubled:
        yield (
            f"{_count(doubled, 'is', 'are')} live in the store already: what comes back of "
            f"{'it' if doubled == 1 else 'them'} are the rows that a compaction had archived."
        )
    undecided = [number for number in lost.states.undecided if number in messages]
    if undecided:
        back = f"{_count(len(undecided), 'comes', 'come')} back live from before a summary"
        yield f"{back}: nothing tells which of them it had replaced."
    told = Counter(row.fidelity for row in messages.values())
    for fidelity, what in _FIDELITIES.items():
        if told[fidelity]:
            yield f"{_count(told[fidelity])} only {what}."
    unsure = sum(lost.union.messages[number].suspect for number in messages)
    if unsure:
        yield f"{_count(unsure, 'looks', 'look')} redacted, and nothing tells whether it is so."
    untimed = sum(not row.timed for row in messages.values())
    wall = sum(map(zoneless, messages.values()))
    if wall:
        yield f"{_count(wall, 'bears', 'bear')} a wall time of an unknown zone, which is taken as UTC."
    if untimed:
        yield f"{_count(untimed, 'gets', 'get')} a made-up time, that of the message before."
    yield from _partnerless(calls)
    files = {row.place.artifact for row in rows}
    files |= {each.place.artifact for row in rows for each in row.filled if each.place is not None}
    yield f"Files: {', '.join(map(str, listed(sorted(files))))}."
    for artifact in lost.unnamed:
        yield f"{artifact} names no session: its texts are those of this one, and of no other that is known."
    yield from _strangers(lost)
    yield from map(_gap, lost.union.gaps)


def _strangers(lost: Salvaged) -> Iterator[str]:
    """Whose messages no other source has: it may be of another session that has the same id."""
    strangers = [each.artifact for each in lost.union.strangers]
    if lost.store in strangers:
        yield "The files share no message with what the store still has: they may be of another store."
    for artifact in strangers:
        if artifact != lost.store and len(strangers) > 1 + (lost.store in strangers):
            yield f"{artifact} shares no message with the others: it may be of another store."


def _partnerless(calls: Calls) -> Iterator[str]:
    if calls.unanswered:
        yield f"{_count(len(calls.unanswered), 'calls', 'call')} a tool of which no file holds a result."
    if calls.unasked:
        yield f"{_count(len(calls.unasked), 'is', 'are')} the result of a call that no file holds."


def _gap(gap: Gap) -> str:
    number = "An unknown number of messages" if gap.count is None else f"At least {_count(gap.count)}"
    return (
        f"{number} between {moment(gap.first_at)} and {moment(gap.last_at)} is in no file and stays lost: "
        f"{_LOST[gap.lack]} ({gap.artifact})."
    )


def messages_of(rows: Sequence[SalvagedRow]) -> str:
    """How many messages the rows are, in words."""
    return _count(len({row.message for row in rows}))


def _count(number: int, one: str = "", many: str = "", *, noun: str = "message") -> str:
    """A number of messages and what they do, in words."""
    words = f"1 {noun} {one}" if number == 1 else f"{number:,} {noun}s {many}"
    return words.rstrip()
