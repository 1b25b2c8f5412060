"""What changed between two reports: ``statemend/diff/v1``.

A finding that the second report does not have is *gone* only where that report could have seen it. Where it
could not (its rule did not run to the end, a folder was not looked at, a file could not be read), nothing is
said about it, and the reason stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from statemend.audit.finding import Finding, Value
from statemend.audit.outcome import FAILING, FailOn
from statemend.report import text
from statemend.report.model import Report, RuleEntry, RuleStatus
from statemend.report.sight import Sight, deep, undetermined

SCHEMA: Final = "statemend/diff/v1"


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two reports. ``findings`` counts those it shows, ``hidden`` those that a baseline hid from
    it; ``deep`` is whether the whole store was checked, ``exports`` the folders beside the home."""

    home: str
    generated_at: str
    tool: str
    verdict: str
    exit_code: int
    findings: int
    hidden: int
    deep: bool
    exports: tuple[str, ...]


class Difference(msgspec.Struct, frozen=True):
    """A finding that one report has and the other has not. ``reason`` is why it may be missing there without
    a change in the home, empty when nothing speaks for that."""

    finding: Finding
    reason: str = ""


class FieldChange(msgspec.Struct, frozen=True):
    """One thing that a finding says differently: ``verdict``, ``severity``, ``summary``, ``messages``, or
    the label of a piece of evidence after ``evidence: ``. ``None`` is: not said."""

    field: str
    before: Value
    after: Value


class Change(msgspec.Struct, frozen=True):
    """A finding that both reports have, as the second has it, and what it says differently."""

    finding: Finding
    fields: tuple[FieldChange, ...]


class RuleChange(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that ended otherwise. A status is ``None`` where the report does not have the rule; ``reason``
    is that of the second report."""

    id: str
    slug: str
    before: RuleStatus | None
    after: RuleStatus | None
    reason: str = ""


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """Two reports compared. ``unknown`` are findings of the first that the second could not look for;
    ``unchanged`` counts those that both have alike. ``undetermined`` says what the second report could not
    determine, ``caveats`` in what the two audits differ."""

    schema: Literal["statemend/diff/v1"] = SCHEMA
    verdict: str
    before: Side
    after: Side
    new: tuple[Difference, ...] = ()
    gone: tuple[Difference, ...] = ()
    changed: tuple[Change, ...] = ()
    unknown: tuple[Difference, ...] = ()
    unchanged: int = 0
    rules: tuple[RuleChange, ...] = ()
    undetermined: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()


def diff(a: Report, b: Report) -> Diff:
    """What changed from report ``a`` to report ``b``. Findings are the same when their ids are; one that a
    baseline hid from a report is there all the same."""
    before, after = _by_id(a), _by_id(b)
    known_before = before.keys() | _hidden(a)
    known_after = after.keys() | _hidden(b)
    seen_before, seen_after = Sight(a), Sight(b)
    new = tuple(
        Difference(finding, _perhaps_old(seen_before.blind_to(finding, seen_after)))
        for id_, finding in after.items()
        if id_ not in known_before
    )
    missing = [
        (finding, seen_after.blind_to(finding, seen_before))
        for id_, finding in before.items()
        if id_ not in known_after
    ]
    gone = tuple(
        Difference(finding, seen_after.lost_source(finding, seen_before) or "")
        for finding, spot in missing
        if spot is None
    )
    unknown = tuple(Difference(finding, spot) for finding, spot in missing if spot is not None)
    both = [(before[id_], finding) for id_, finding in after.items() if id_ in before]
    changed = tuple(Change(now, fields) for then, now in both if (fields := tuple(_changes(then, now))))
    return Diff(
        verdict=_sentence(len(new), len(gone), len(changed), len(unknown)),
        before=_side(a),
        after=_side(b),
        new=new,
        gone=gone,
        changed=changed,
        unknown=unknown,
        unchanged=len(known_before & known_after) - len(changed),
        rules=tuple(_rules(a, b)),
        undetermined=undetermined(b),
        caveats=tuple(_caveats(a, b)),
    )


def exit_code(found: Diff, fail_on: FailOn = FailOn.FAULT) -> int:
    """0 nothing new, 1 a finding that is new, or that has become one which fails, 3 when the second report
    could not determine something, or could not look for what the first had found."""
    if found.unknown or found.undetermined:
        return 3
    failing = FAILING[fail_on]
    worse = (
        change.finding.verdict in failing
        and any(field.field == "verdict" and field.before not in failing for field in change.fields)
        for change in found.changed
    )
    return int(any(each.finding.verdict in failing for each in found.new) or any(worse))


def _perhaps_old(spot: str | None) -> str:
    return "" if spot is None else f"the first report could not have shown it: {spot}"


def _by_id(report: Report) -> dict[str, Finding]:
    return {finding.id: finding for finding in report.findings}


def _hidden(report: Report) -> frozenset[str]:
    return frozenset(report.baseline.hidden if report.baseline else ())


def _side(report: Report) -> Side:
    return Side(
        home=report.home,
        generated_at=report.generated_at,
        tool=f"{report.tool.name} {report.tool.version}",
        verdict=report.verdict,
        exit_code=report.exit_code,
        findings=len(report.findings),
        hidden=len(_hidden(report)),
        deep=deep(report),
        exports=report.exports,
    )


def _changes(then: Finding, now: Finding) -> Iterator[FieldChange]:
    if then.verdict is not now.verdict:
        yield FieldChange("verdict", then.verdict, now.verdict)
    if then.severity is not now.severity:
        yield FieldChange("severity", then.severity, now.severity)
    if then.summary != now.summary:
        yield FieldChange("summary", then.summary, now.summary)
    if then.subject.message_ids != now.subject.message_ids:
        yield FieldChange(
            "messages", text.ranges(then.subject.message_ids), text.ranges(now.subject.message_ids)
        )
    old, new = _evidence(then), _evidence(now)
    for label in dict.fromkeys((*old, *new)):
        if old.get(label) != new.get(label):
            yield FieldChange(f"evidence: {label}", old.get(label), new.get(label))


def _evidence(finding: Finding) -> dict[str, Value]:
    return {fact.label: fact.value for fact in finding.evidence}


def _rules(a: Report, b: Report) -> Iterator[RuleChange]:
    before, after = _entries(a), _entries(b)
    for id_ in sorted({*before, *after}):
        then, now = before.get(id_), after.get(id_)
        named = now or then
        if named is None or (then and now and then.status == now.status):
            continue
        yield RuleChange(
            id=id_,
            slug=named.slug,
            before=then.status if then else None,
            after=now.status if now else None,
            reason=now.reason if now else "",
        )


def _entries(report: Report) -> Mapping[str, RuleEntry]:
    return {rule.id: rule for rule in report.rules}


def _caveats(a: Report, b: Report) -> Iterator[str]:
    if a.home != b.home:
        yield f"the homes are named differently: {a.home} and {b.home}"
    if a.generated_at > b.generated_at:
        yield "the first report is newer than the second; are they the wrong way round?"
    if (a.tool.name, a.tool.version) != (b.tool.name, b.tool.version):
        yield f"another version made each: {a.tool.version} and {b.tool.version}; rules may differ"
    if deep(a) != deep(b):
        yield f"only the {'first' if deep(a) else 'second'} audit checked the whole store (--deep)"
    for folders, others, which in ((a, b, "first"), (b, a, "second")):
        only = [folder for folder in folders.exports if folder not in others.exports]
        if only:
            yield f"only the {which} audit looked at {text.listed(only)}"


def _sentence(new: int, gone: int, changed: int, unknown: int) -> str:
    if not (new or gone or changed or unknown):
        return "Nothing new, nothing gone, nothing changed."
    said = f"{text.count(new, 'new finding')}, {gone:,} gone, {changed:,} changed"
    return said + (f"; {unknown:,} could not be looked for again." if unknown else ".")
