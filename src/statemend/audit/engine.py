"""Runs the rules over a home, level by level, and says of each how it ended.

An audit never claims what it did not look at: a rule ends as clean, with findings, not applicable or could
not run, and the last two always say why; so does one that is ignored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from statemend.audit import registry
from statemend.audit.context import Context, Progress
from statemend.audit.finding import Finding, Severity
from statemend.audit.outcome import Audit, FailOn, RuleResult, Status, StoreFacts, exit_code
from statemend.audit.reads import tables_read
from statemend.audit.rule import Level, Rule
from statemend.errors import StatemendError, StoreUnreadable
from statemend.evidence.inventory import Home, find_home, take
from statemend.store.bundle import Bundle, inspect
from statemend.store.connection import Access, Store, StoreFault, open_for_audit
from statemend.store.schema import CATALOGUE

__all__ = ["Audit", "FailOn", "RuleResult", "Status", "StoreFacts", "audit", "exit_code"]

_SEVERITIES = list(Severity)

#: Looks at an audit whose rules have run while its store is still open.
Observer = Callable[[Context, Sequence[Finding]], None]


def audit(
    path: Path,
    *,
    exports: Sequence[Path] = (),
    rules: Sequence[str] | None = None,
    ignore: Sequence[str] | Mapping[str, str] = (),
    live: bool = False,
    deep: bool = False,
    now: float | None = None,
    progress: Progress | None = None,
    observe: Observer | None = None,
) -> Audit:
    """Audit the home or store at ``path``, together with the folders and files ``exports``.

    ``rules`` names the rules to run (ids, slugs or families); ``None`` runs all. ``ignore`` names those of
    them to leave out; a mapping says for each name who asked for it, for the report to tell. ``live`` allows
    a copy of a store that a process holds. ``deep`` checks the whole file. ``now`` is epoch seconds, by
    default the present. ``observe`` is called once, after the rules, with their findings and the store as
    they saw it: who wants more of it reads it there, since a second opening could show another state.
    Nothing is written beside the store.

    Raises ``UsageError`` for a path without a store or an unknown rule, ``StoreHeld`` for a store in use
    without ``live``, ``Undetermined`` when nothing at all can be said. A store that cannot be read is not an
    error: the rules that need it could not run.
    """
    started = time.perf_counter()
    chosen, ignored = registry.without(registry.select(rules), ignore)
    home = find_home(path)
    bundle = inspect(Path(home.store))
    with ExitStack() as stack:
        store, refusal, foreign = _open(bundle, stack, live=live)
        inventory = take(home, exports, progress, store=store, deep=deep)
        context = Context(
            home=home,
            bundle=bundle,
            store=store,
            inventory=inventory,
            now=time.time() if now is None else now,
            deep=deep,
            refusal=refusal,
            foreign=foreign,
            progress=progress,
        )
        findings, results = run(chosen, context)
        results += _ignored(ignored)
        if observe is not None:
            observe(context, findings)
        facts = _facts(home, bundle, store, refusal)
    return Audit(
        home=home.root,
        store=facts,
        inventory=inventory,
        unread=tuple(skipped for skipped in inventory.skipped if skipped.unread and context.looked_beside),
        rules=results,
        findings=findings,
        coverage=context.computed_coverage,
        graph=context.computed_graph,
        at=context.now,
        seconds=time.perf_counter() - started,
        deep=deep,
        live=live,
    )


def run(rules: Iterable[Rule], context: Context) -> tuple[tuple[Finding, ...], tuple[RuleResult, ...]]:
    """Run ``rules`` in the order given. Returns the findings, worst first, and one result for each rule."""
    findings: list[Finding] = []
    results = []
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


def _open(bundle: Bundle, stack: ExitStack, *, live: bool) -> tuple[Store | None, str | None, bool]:
    """The opened store; or why it could not be opened, and whether it is another program's database."""
    try:
        return stack.enter_context(open_for_audit(Path(bundle.path), live=live)), None, False
    except StoreFault as error:
        return None, str(error), False
    except StoreUnreadable as error:
        # What SQLite refused comes from its own error; what the schema reader refused comes from ours.
        return None, str(error), isinstance(error.__cause__, StoreUnreadable)


def _facts(home: Home, bundle: Bundle, store: Store | None, refusal: str | None) -> StoreFacts:
    header = bundle.header
    facts = StoreFacts(
        path=home.store,
        size=bundle.main.size,
        wal_size=bundle.wal.size if bundle.wal else 0,
        siblings=bundle.siblings,
        journal=header.journal if header else None,
        page_size=header.page_size if header else None,
        refusal=refusal,
    )
    if store is None:
        return facts
    return msgspec.structs.replace(
        facts,
        access=store.access.value,
        schema_version=store.schema.version,
        era=store.schema.era.name,
        sqlite_version=store.sqlite_version,
        sessions=_count(store, "sessions"),
        messages=_count(store, "messages"),
        holders=store.holders,
        unchanged=None if store.access is Access.BACKUP else store.unchanged(),
    )


def _count(store: Store, table: str) -> int | None:
    """The rows of a table, ``None`` when it is not there or cannot be read."""
    if not store.table_exists(table):
        return None
    try:
        return int(store.value(f"SELECT COUNT(*) FROM {table}"))
    except StoreUnreadable:
        return None
