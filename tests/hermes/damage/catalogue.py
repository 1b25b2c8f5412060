"""What a damage is, how it is done, and whether what was told of it is right.

A damage is a generator. Up to its ``yield`` it builds what it needs with the release's own code; the home is
healthy there. Then it does the damage: by what releases really did wrong where that is possible, else by
statements that the release accepts, as other programs and salvages run them. What it returns is what has to
be told. ``follows`` are rules that may tell of the consequences, since these are so too. Releases from 0.21.3
on prune by themselves, so what the next pruning takes may be told at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tests.hermes.home import HermesHome
from tests.hermes.releases import Release

from statemend.audit.engine import survey
from statemend.audit.finding import Finding, Verdict

FAULT, RISK, LEFTOVER, UNDECIDABLE = Verdict.FAULT, Verdict.RISK, Verdict.LEFTOVER, Verdict.UNDECIDABLE


@dataclass(frozen=True)
class Told:
    """A finding that has to be there: of this session, naming these rows and about this store where they are
    given, and with each of ``ids`` in its evidence. Without ``must`` it only may be there."""

    rule: str
    session: str | None = None
    rows: frozenset[int] | None = None
    verdict: Verdict = FAULT
    ids: tuple[str, ...] = ()
    store: Path | None = None
    must: bool = True


Steps = Generator[None, None, list[Told]]
Act = Callable[[HermesHome], Steps]


@dataclass(frozen=True)
class Damage:
    """One entry: what ``rule`` has to tell of, and with it the rules ``also``. ``since`` and ``before`` bound
    the releases in which it can be done."""

    name: str
    rule: str
    also: tuple[str, ...]
    act: Act
    follows: frozenset[str]
    since: str
    before: str

    def suits(self, release: Release) -> bool:
        return release.at_least(self.since) and not release.at_least(self.before)


@dataclass(frozen=True)
class Look:
    """What the audits of all stores of a home say."""

    findings: tuple[Finding, ...]
    undetermined: tuple[str, ...]

    @classmethod
    def at(cls, home: HermesHome) -> Look:
        home.rest()
        audits = survey(home.path, now=home.now, deep=True)
        return cls(
            tuple(chain.from_iterable(each.findings for each in audits)),
            tuple(chain.from_iterable(each.undetermined for each in audits)),
        )


CATALOGUE: list[Damage] = []

#: What may be told of any healthy home.
_ALWAYS = frozenset({"EXP012"})


def damage(
    rule: str, *also: str, follows: str = "", since: str = "0", before: str = "9"
) -> Callable[[Act], Act]:
    """Enter the function into the catalogue."""

    def enter(act: Act) -> Act:
        CATALOGUE.append(Damage(act.__name__, rule, also, act, _ALWAYS.union(follows.split()), since, before))
        return act

    return enter


def strike(home: HermesHome, entry: Damage) -> tuple[Look, Look, list[Told]]:
    """What is said before and after, and what has to be told. The release's process stays."""
    steps = entry.act(home)
    next(steps)
    before = Look.at(home)
    told: list[Told] = []
    try:
        next(steps)
    except StopIteration as done:
        told = done.value
    return before, Look.at(home), told


def wrongs(entry: Damage, before: Look, after: Look, told: Sequence[Told]) -> list[str]:
    """What should have been told after the damage and was not, and what is claimed that is not so."""
    changed = [one for one in after.findings if one not in before.findings]
    missing = [f"missing {each}" for each in told if each.must and not any(_is(one, each) for one in changed)]
    known = {name for one in before.findings for name in _names(one)}
    claimed = [
        f"claimed {one.rule} {one.verdict} {one.subject.session} {one.subject.message_ids}: {one.summary}"
        for one in changed
        if known.isdisjoint(_names(one))
        and one.rule not in entry.follows
        and not any(_is(one, each) for each in told)
    ]
    broken = [] if entry.rule.startswith("STO") else [f"undetermined {cause}" for cause in after.undetermined]
    return missing + claimed + broken


def _names(one: Finding) -> set[tuple[object, ...]]:
    """By what it is the same finding as an earlier one: its id, or, in a copy of the store, what it says."""
    rows = one.subject.message_ids
    return {(one.id, one.verdict, rows), (one.rule, one.verdict, one.subject.session, rows, one.summary)}


def _is(one: Finding, told: Told) -> bool:
    return (
        (one.rule, one.verdict) == (told.rule, told.verdict)
        and told.session in (None, one.subject.session)
        and told.rows in (None, frozenset(one.subject.message_ids))
        and (told.store is None or str(told.store) == one.subject.store)
        and all(any(id_ in str(fact.value) for fact in one.evidence) for id_ in told.ids)
    )
