"""Known findings, hidden from a report by their ids, so that only what is new stands out.

A baseline is a file with ids (``statemend/baseline/v1``), or a whole report. Nothing of it changes what the
audit looked at or could not determine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from statemend.audit.finding import Finding
from statemend.audit.outcome import FAILING
from statemend.errors import UsageError
from statemend.report import text
from statemend.report.load import LARGEST_REPORT, decode, read_bounded, schema_of
from statemend.report.model import SCHEMA as REPORT
from statemend.report.model import Baseline, Report
from statemend.report.paths import relative, within
from statemend.report.sight import DEEPER, Sight, deep, undetermined
from statemend.report.verdict import sentence

SCHEMA: Final = "statemend/baseline/v1"

_WHAT = "a baseline; make one with `statemend scan HOME --write-baseline FILE`"


class BaselineFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ids of known findings, sorted, and how far the audit that found them had looked. ``made_at`` is
    ISO 8601 in UTC; ``home`` and the folders ``exports`` are as they were given. ``stores`` are the paths
    within the home where more than one store was audited."""

    schema: Literal["statemend/baseline/v1"] = SCHEMA
    tool: str
    made_at: str
    home: str
    exports: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    deep: bool = False
    findings: tuple[str, ...]


def load_baseline(path: Path) -> BaselineFile:
    """A baseline file, or the baseline of the report that is there as JSON. Raises ``UsageError`` for a file
    that is neither, too large, or cannot be read."""
    data = read_bounded(path, LARGEST_REPORT, _WHAT)
    schema = schema_of(data, path, _WHAT)
    if schema == SCHEMA:
        return decode(data, BaselineFile, path, _WHAT)
    if schema == REPORT:
        return baseline_of(decode(data, Report, path, _WHAT))
    raise UsageError(f"{path}: is {schema!r}, not {_WHAT}")


def baseline_of(report: Report) -> BaselineFile:
    """The baseline under which this report would be empty: its findings, those that its own baseline hid, and
    those of which it could say nothing."""
    own = report.baseline or Baseline()
    known = {*(finding.id for finding in report.findings), *own.hidden, *own.unknown}
    return BaselineFile(
        tool=f"{report.tool.name} {report.tool.version}",
        made_at=report.generated_at,
        home=report.home,
        exports=report.exports,
        stores=_stores(report) if len(report.stores) > 1 else (),
        deep=deep(report),
        findings=tuple(sorted(known)),
    )


def apply_baseline(report: Report, known: BaselineFile | Iterable[str]) -> Report:
    """``report`` without the findings that ``known`` names, its verdict and exit code those of the rest. What
    was hidden before stays hidden. The texts of messages that only hidden findings name go too."""
    before = report.baseline or Baseline()
    ids = known.findings if isinstance(known, BaselineFile) else known
    named = frozenset((*ids, *before.hidden, *before.gone, *before.unknown))
    hidden = [finding for finding in report.findings if finding.id in named]
    left = tuple(finding for finding in report.findings if finding.id not in named)
    hidden_ids = {*before.hidden, *(finding.id for finding in hidden)}
    missing = sorted(named - hidden_ids)
    unknown = {*before.unknown, *_unknown(report, known, missing)} - hidden_ids
    baseline = Baseline(
        hidden=tuple(sorted(hidden_ids)),
        gone=tuple(id_ for id_ in missing if id_ not in unknown),
        unknown=tuple(sorted(unknown)),
    )
    per_rule = Counter(finding.rule for finding in hidden)
    rules = tuple(
        msgspec.structs.replace(
            rule, findings=rule.findings - per_rule[rule.id], hidden=rule.hidden + per_rule[rule.id]
        )
        for rule in report.rules
    )
    rows = {
        (finding.subject.store, finding.subject.session, id_)
        for finding in left
        for id_ in finding.subject.message_ids
    }
    contents = report.contents
    return msgspec.structs.replace(
        report,
        verdict=sentence(left, rules, report.stores, report.skipped, hidden=len(baseline.hidden)),
        exit_code=_exit_code(report, left),
        baseline=baseline,
        rules=rules,
        findings=left,
        contents=None
        if contents is None
        else tuple(said for said in contents if (said.store, said.session, said.message_id) in rows),
    )


def _unknown(report: Report, known: BaselineFile | Iterable[str], missing: Iterable[str]) -> Iterator[str]:
    """Which ids may be missing only because this audit looked less far. An id does not tell which file its
    finding rests on, so one that could not be read leaves all of them open."""
    sight = Sight(report)
    less_far = any(item.unread for item in report.skipped)
    shallower = False
    if isinstance(known, BaselineFile):
        less_far |= not all(any(within(each, seen) for seen in report.exports) for each in known.exports)
        less_far |= not set(known.stores) <= set(_stores(report))
        shallower = known.deep and not deep(report)
    for id_ in missing:
        rule = id_.partition("-")[0]
        if less_far or sight.blind_to_rule(rule) or (shallower and rule in DEEPER):
            yield id_


def _stores(report: Report) -> tuple[str, ...]:
    return tuple(
        relative(store.path, report.home) if within(store.path, report.home) else store.path
        for store in report.stores
    )


def said(baseline: Baseline | None, *, hidden: bool = True) -> tuple[str, ...]:
    """What people need to know of a baseline, one sentence for each part of it that is not empty; without
    ``hidden`` for an output that shows the verdict, which tells how many are."""
    if baseline is None:
        return ()
    parts = (
        (baseline.hidden if hidden else (), " hidden by the baseline."),
        (baseline.gone, f" of the baseline no longer found: {_listed(baseline.gone)}."),
        (
            baseline.unknown,
            f" of the baseline left open here: {_listed(baseline.unknown)}.",
        ),
    )
    return tuple(text.count(len(ids), "known finding") + rest for ids, rest in parts if ids)


def _listed(ids: Iterable[str]) -> str:
    return text.listed((text.clip(id_, 60) for id_ in ids), 8)


def _exit_code(report: Report, left: Iterable[Finding]) -> int:
    if undetermined(report):
        return 3
    return int(any(finding.verdict in FAILING[report.fail_on] for finding in left))
