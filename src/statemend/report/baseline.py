"""Known findings, hidden from a report by their ids, so that only what is new stands out.

A baseline is a file with ids (``statemend/baseline/v1``), or a whole report. Nothing of it changes what the
audit looked at or could not determine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
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
from statemend.report.sight import Sight, undetermined
from statemend.report.verdict import sentence

SCHEMA: Final = "statemend/baseline/v1"

_WHAT = "a baseline; make one with `statemend scan HOME --write-baseline FILE`"


class BaselineFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ids of known findings, sorted. ``made_at`` is ISO 8601 in UTC, ``home`` is as it was given."""

    schema: Literal["statemend/baseline/v1"] = SCHEMA
    tool: str
    made_at: str
    home: str
    findings: tuple[str, ...]


def load_baseline(path: Path) -> frozenset[str]:
    """The ids that a baseline file, or the JSON of a report, names. Raises ``UsageError`` for a file that is
    neither, too large, or cannot be read."""
    data = read_bounded(path, LARGEST_REPORT, _WHAT)
    schema = schema_of(data, path, _WHAT)
    if schema == SCHEMA:
        return frozenset(decode(data, BaselineFile, path, _WHAT).findings)
    if schema == REPORT:
        return known(decode(data, Report, path, _WHAT))
    raise UsageError(f"{path}: is {schema!r}, not {_WHAT}")


def known(report: Report) -> frozenset[str]:
    """The ids that a baseline of this report holds: its findings, those that its own baseline hid, and those
    of which it could say nothing."""
    own = report.baseline or Baseline()
    return frozenset((*(finding.id for finding in report.findings), *own.hidden, *own.unknown))


def baseline_of(report: Report) -> BaselineFile:
    """The baseline under which this report would be empty."""
    return BaselineFile(
        tool=f"{report.tool.name} {report.tool.version}",
        made_at=report.generated_at,
        home=report.home,
        findings=tuple(sorted(known(report))),
    )


def apply_baseline(report: Report, ids: Iterable[str]) -> Report:
    """``report`` without the findings that ``ids`` name, its verdict and exit code those of the rest. What
    was hidden before stays hidden. The texts of messages that only hidden findings name go too."""
    before = report.baseline or Baseline()
    named = frozenset((*ids, *before.hidden, *before.gone, *before.unknown))
    hidden = [finding for finding in report.findings if finding.id in named]
    left = tuple(finding for finding in report.findings if finding.id not in named)
    sight = Sight(report)
    hidden_ids = {*before.hidden, *(finding.id for finding in hidden)}
    missing = sorted(named - hidden_ids)
    unknown = tuple(id_ for id_ in missing if sight.blind_to_rule(id_.partition("-")[0]))
    baseline = Baseline(
        hidden=tuple(sorted(hidden_ids)),
        gone=tuple(id_ for id_ in missing if id_ not in set(unknown)),
        unknown=unknown,
    )
    per_rule = Counter(finding.rule for finding in hidden)
    rules = tuple(
        msgspec.structs.replace(
            rule, findings=rule.findings - per_rule[rule.id], hidden=rule.hidden + per_rule[rule.id]
        )
        for rule in report.rules
    )
    rows = {(finding.subject.session, id_) for finding in left for id_ in finding.subject.message_ids}
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
        else tuple(said for said in contents if (said.session, said.message_id) in rows),
    )


def said(baseline: Baseline | None, *, hidden: bool = True) -> tuple[str, ...]:
    """What people need to know of a baseline, one sentence for each part of it that is not empty; without
    ``hidden`` for an output that shows the verdict, which tells how many are."""
    if baseline is None:
        return ()
    parts = (
        (baseline.hidden if hidden else (), " hidden by the baseline."),
        (baseline.gone, f" of the baseline no longer found: {_listed(baseline.gone)}."),
        (baseline.unknown, f" of the baseline not looked for here: {_listed(baseline.unknown)}."),
    )
    return tuple(text.count(len(ids), "known finding") + rest for ids, rest in parts if ids)


def _listed(ids: Iterable[str]) -> str:
    return text.listed((text.clip(id_, 60) for id_ in ids), 8)


def _exit_code(report: Report, left: Iterable[Finding]) -> int:
    if undetermined(report):
        return 3
    return int(any(finding.verdict in FAILING[report.fail_on] for finding in left))
