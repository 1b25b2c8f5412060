"""Runs the rules over a home, level by level, and says of each how it ended.

An audit never claims what it did not look at: a rule ends as clean, with findings, not applicable or could
not run, and the last two always say why; so does one that is ignored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Unpack

import msgspec

from statemend.audit import registry
from statemend.audit.company import Company, Member
from statemend.audit.context import Context
from statemend.audit.finding import Finding, Severity
from statemend.audit.known import is_known
from statemend.audit.opening import Opened, facts_of, open_store, unchanged
from statemend.audit.outcome import Audit, FailOn, RuleResult, Status, StoreFacts, exit_code
from statemend.audit.reads import tables_read
from statemend.audit.request import Asked, Observer, Request, settle
from statemend.audit.rule import Level, Rule
from statemend.errors import StatemendError, UsageError
from statemend.evidence.belonging import share
from statemend.evidence.inventory import Home, Inventory, Skipped, find_home, nothing, take
from statemend.evidence.profiles import find_homes
from statemend.store.schema import CATALOGUE

__all__ = ["Audit", "FailOn", "RuleResult", "Status", "StoreFacts", "audit", "exit_code", "survey"]

_SEVERITIES = list(Severity)


def audit(
    path: Path | Home, *, live: bool = False, observe: Observer | None = None, **asked: Unpack[Asked]
) -> Audit:
    """Audit one store: that of the home at ``path``, or the store at ``path``. Where the home has profiles,
    or is a profile's, the other stores are asked and not audited, unless the store itself was named.

    ``live`` allows a copy of a store that a process holds. ``observe`` is called once, after the rules, with
    their findings and the store as they saw it: who wants more of it reads it there, since a second opening
    could show another state. ``Asked`` tells the other keywords: ``exports``, ``rules``, ``ignore``,
    ``deep``, ``now`` and ``progress``. Nothing is written beside the store.

    Raises ``UsageError`` for a path without a store or an unknown rule, ``StoreHeld`` for a store in use
    without ``live``, ``Undetermined`` when nothing at all can be said. A store that cannot be read is not an
    error: the rules that need it could not run.
    """
    request = settle(live=live, observe=observe, **asked)
    home = path if isinstance(path, Home) else find_home(path)
    with ExitStack() as stack:
        opened = open_store(home, stack, live=live)
        if opened.bundle is None:
            opened.require()
        company = None if isinstance(path, Home) else _witnesses(path, home, stack)
        return _audit(opened, company, request, _beside(opened, request))


def survey(
    path: Path, *, live: bool = False, observe: Observer | None = None, **asked: Unpack[Asked]
) -> tuple[Audit, ...]:
    """Audit every store of the home at ``path``, its own first, then those of its profiles by name; of a
    profile's folder or a store file that one alone.

    Everything is as for ``audit``; ``observe`` is called for each store. A profile's store that cannot be
    opened is no error: no rule could run on it, and the others are audited.
    """
    request = settle(live=live, observe=observe, **asked)
    found = find_homes(path)
    with ExitStack() as stack:
        stores = [open_store(home, stack, live=live, stores=len(found.homes)) for home in found.homes]
        if len(stores) == 1 and stores[0].bundle is None:
            stores[0].require()
        members = [Member(opened.home, opened.require) for opened in stores]
        beside = [_beside(opened, request) for opened in stores]
        audits = []
        for number, opened in enumerate(stores):
            company = Company(members[:number], members[number + 1 :]) if found.whole else None
            passed_over = found.skipped if number == 0 else ()
            others = tuple(each.own for each in (*beside[:number], *beside[number + 1 :]))
            looked = beside[number]._replace(others=others)
            audits.append(
                _audit(opened, company, request, looked, first=number == 0, passed_over=passed_over)
            )
        return tuple(_finished(done, opened) for done, opened in zip(audits, stores, strict=True))


def _witnesses(path: Path, home: Home, stack: ExitStack) -> Company | None:
    """The other stores of a home, each opened only if it is asked. One in use is asked by a copy."""
    around = Path(os.path.realpath(home.root)).parent.parent if home.place else path
    try:
        found = find_homes(around)
    except UsageError:  # a profile's folder without a home around it
        return None
    own = os.path.realpath(home.store)
    if not found.whole or os.path.realpath(path) == own:
        return None

    def member(other: Home) -> Member:
        known: list[Opened] = []

        def opened() -> Opened:
            if not known:
                known.append(open_store(other, stack, live=True))
            return known[0]

        return Member(other, lambda: opened().require())

    others = [other for other in found.homes if os.path.realpath(other.store) != own]
    return Company(after=[member(other) for other in others], audited=False)


class _Beside(NamedTuple):
    """What lies beside a store, how long (seconds) it took to look, and what lies beside the others of its
    home that are audited with it."""

    own: Inventory
    seconds: float
    others: tuple[Inventory, ...] = ()


def _beside(opened: Opened, request: Request) -> _Beside:
    """What lies beside one store; nothing where it could not be opened."""
    started = time.perf_counter()
    if opened.bundle is None:
        own = nothing(opened.home)
    else:
        own = take(opened.home, request.exports, request.progress, store=opened.store, deep=request.deep)
    return _Beside(own, time.perf_counter() - started)


def _audit(
    opened: Opened,
    company: Company | None,
    request: Request,
    beside: _Beside,
    *,
    first: bool = True,
    passed_over: tuple[Skipped, ...] = (),
) -> Audit:
    """Audit one store that is open, or could not be opened."""
    started = time.perf_counter()
    home, bundle, store = opened.home, opened.bundle, opened.store
    context = None
    findings: tuple[Finding, ...] = ()
    inventory = beside.own
    if bundle is None:
        results = _blind(request.rules, str(opened.refusal))
    else:
        if company:
            inventory = _own_part(beside, opened, company, first=first)
        context = Context(
            home=home,
            bundle=bundle,
            store=store,
            inventory=inventory,
            company=company,
            now=request.now,
            deep=request.deep,
            refusal=None if opened.refusal is None else str(opened.refusal),
            foreign=opened.foreign,
            progress=request.progress,
        )
        findings, results = run(request.rules, context)
    if context is not None and request.observe is not None:
        request.observe(context, findings)
    inventory = msgspec.structs.replace(inventory, skipped=(*passed_over, *inventory.skipped))
    looked_beside = context is not None and context.looked_beside
    return Audit(
        home=home.root,
        store=facts_of(opened),
        inventory=inventory,
        unread=tuple(
            skipped
            for skipped in inventory.skipped
            if skipped.unread and (looked_beside or skipped in passed_over)
        ),
        rules=(*results, *_ignored(request.ignored)),
        findings=findings,
        coverage=context.computed_coverage if context else (),
        graph=context.computed_graph if context else None,
        at=request.now,
        seconds=beside.seconds + time.perf_counter() - started,
        deep=request.deep,
        live=request.live,
    )


def _finished(done: Audit, opened: Opened) -> Audit:
    """The audit with whether its store is still the same, now that no other audit asks it any more."""
    store = msgspec.structs.replace(done.store, unchanged=unchanged(opened))
    return msgspec.structs.replace(done, store=store)


def _own_part(beside: _Beside, opened: Opened, company: Company, *, first: bool) -> Inventory:
    """What lies beside this store, less what tells of sessions that another store of the home has, and with
    the exports of its own sessions that lie beside another."""

    def here(session_id: str) -> bool:
        return opened.store is not None and is_known(opened.store, session_id)

    def elsewhere(session_id: str) -> bool:
        return bool(company.holding(session_id))

    return share(beside.own, beside.others, here=here, elsewhere=elsewhere, first=first)


def _blind(rules: Iterable[Rule], reason: str) -> tuple[RuleResult, ...]:
    """The results of rules on a store of which not even the bytes could be looked at."""
    return tuple(RuleResult(rule.id, rule.slug, Status.COULD_NOT_RUN, reason, 0, 0.0) for rule in rules)


def run(rules: Iterable[Rule], context: Context) -> tuple[tuple[Finding, ...], tuple[RuleResult, ...]]:
    """Run ``rules`` in the order given. Returns the findings, worst first, and one result for each rule."""
    findings: list[Finding] = []
    results = []
    rules = tuple(rules)
    context.expect(rules)
    for rule in rules:
        context.report(f"{rule.id} {rule.slug}")
        found, result = _run(rule, context)
        findings += found
        results.append(result)
    order = {result.id: position for position, result in enumerate(results)}
    findings.sort(key=lambda f: (_SEVERITIES.index(f.severity), order[f.rule], f.subject.session or "", f.id))
    return tuple(findings), tuple(results)


def _ignored(rules: Mapping[str, str]) -> tuple[RuleResult, ...]:
    """The results of rules that were not run: id to who left it out."""
    return tuple(
        RuleResult(id_, registry.get(id_).slug, Status.IGNORED, f"left out by {by}", 0, 0.0)
        for id_, by in rules.items()
    )


def _run(rule: Rule, context: Context) -> tuple[list[Finding], RuleResult]:
    started = time.perf_counter()
    found: list[Finding] = []
    status, reason = Status.CLEAN, ""
    try:
        obstacle = _obstacle(rule, context)
        if obstacle is None:
            found.extend(rule.check(context))
            status = Status.FINDINGS if found else Status.CLEAN
        else:
            status, reason = obstacle
    except StatemendError as error:
        status, reason = Status.COULD_NOT_RUN, str(error)
    except Exception as error:  # noqa: BLE001 - one broken rule must not hide what the others found
        status, reason = Status.COULD_NOT_RUN, f"the rule itself failed: {_where(error)}"
    if status is Status.COULD_NOT_RUN and found:
        reason += f" (after {len(found)} findings)"
    seconds = time.perf_counter() - started
    return found, RuleResult(rule.id, rule.slug, status, reason, len(found), seconds)


def _where(error: Exception) -> str:
    """An unexpected error's class and the place it came from. Its text may hold message content: left out."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" in {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    return f"{type(error).__name__}{place}"


def _obstacle(rule: Rule, context: Context) -> tuple[Status, str] | None:
    """Why ``rule`` cannot be run here, or ``None``."""
    if not rule.needs_store:
        return None
    schema = context.store.schema
    if rule.needs_company and context.company is None:
        return Status.NOT_APPLICABLE, "one store was named, not its home with all of them"
    if rule.in_pairs and context.company and not context.company.audited:
        return Status.NOT_APPLICABLE, "one store was audited, not all of its home"
    if rule.needs_owner and context.home.profile is None:
        return Status.NOT_APPLICABLE, "nothing says which profile the store is of"
    absent = sorted(tables_read(rule.reads, [table for table in CATALOGUE if not schema.has(table)]))
    if absent:
        return Status.NOT_APPLICABLE, f"the store has no table {' and no table '.join(absent)}"
    lacking = [name for name in rule.columns if not schema.has(*name.split("."))]
    if lacking:
        return Status.NOT_APPLICABLE, f"the store has no column {' and no column '.join(lacking)}"
    if rule.level <= Level.STRUCTURE:
        return None
    damaged = context.structure.untrusted
    broken = sorted(tables_read(rule.reads, damaged.keys()))
    if broken:
        return Status.COULD_NOT_RUN, "; ".join(f"it reads {table}, and {damaged[table]}" for table in broken)
    return None
