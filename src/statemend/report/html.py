"""The report as one HTML file: no request, no script needed to read it, the same bytes for the same
report."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined

from statemend.audit import candidates
from statemend.audit.finding import Finding, Severity, Value, Verdict
from statemend.report import baseline, charts, families, graph, paths, text
from statemend.report.gaps import gaps, ignored, in_files, lineage_known, rows_known
from statemend.report.model import SEVERITIES, VERDICTS, MessageText, Report, RuleEntry, worst_first

_TEMPLATES = Path(__file__).parent / "templates"

#: How much one page shows before it refers to the JSON: whole findings, findings as one line, rows of tables,
#: and candidates of one finding.
MOST_CARDS = 48
MOST_LINES = 240
MOST_ROWS = 80
MOST_CANDIDATES = 8
_CARDS_PER_RULE = 4
_MOST_VALUES = 6

SEVERITY_MEANS: Mapping[Severity, str] = {
    Severity.CRITICAL: "text is gone, or about to be",
    Severity.HIGH: "text cannot be reached, or writes are refused",
    Severity.MEDIUM: "Hermes serves the wrong history",
    Severity.LOW: "wrong numbers, clutter",
    Severity.INFO: "good to know",
}
VERDICT_MEANS: Mapping[Verdict, str] = {
    Verdict.FAULT: "wrong now",
    Verdict.RISK: "right now, but something will be lost",
    Verdict.LEFTOVER: "lawful residue",
    Verdict.UNDECIDABLE: "the evidence here cannot tell",
}


class RuleGroup(msgspec.Struct, frozen=True):
    """The findings of one rule at one severity: some whole, some as lines, the rest only counted."""

    rule: RuleEntry
    total: int
    cards: tuple[Finding, ...]
    lines: tuple[Finding, ...]
    left: int


class SeverityGroup(msgspec.Struct, frozen=True):
    """The findings of one severity."""

    severity: Severity
    means: str
    total: int
    rules: tuple[RuleGroup, ...]


def groups(report: Report) -> tuple[SeverityGroup, ...]:
    """The findings as the page shows them, worst first. Each rule gets a few whole findings and a fair share
    of lines before any rule gets more, so that one busy rule cannot push the others out of the page."""
    rules = {rule.id: rule for rule in report.rules}
    busy = [
        ((severity, rule), tuple(found))
        for (severity, rule), found in groupby(
            worst_first(report.findings),
            key=lambda item: (item.severity, item.rule),
        )
    ]
    cards = _share([min(_CARDS_PER_RULE, len(found)) for _, found in busy], MOST_CARDS)
    lines = _share([len(found) - shown for (_, found), shown in zip(busy, cards, strict=True)], MOST_LINES)
    made: dict[Severity, list[RuleGroup]] = {}
    for ((severity, rule), found), whole, short in zip(busy, cards, lines, strict=True):
        made.setdefault(severity, []).append(
            RuleGroup(
                rule=rules.get(rule) or RuleEntry(id=rule, slug="", title="", status="findings"),
                total=len(found),
                cards=found[:whole],
                lines=found[whole : whole + short],
                left=len(found) - whole - short,
            )
        )
    return tuple(
        SeverityGroup(severity, SEVERITY_MEANS[severity], sum(group.total for group in own), tuple(own))
        for severity, own in made.items()
    )


def _share(wanted: list[int], room: int) -> list[int]:
    """Grant each what it wants while there is room, one round after another."""
    granted = [0] * len(wanted)
    open_ = [index for index, wish in enumerate(wanted) if wish > 0]
    while room > 0 and open_:
        each = max(1, room // len(open_))
        for index in open_:
            gift = min(each, wanted[index] - granted[index], room)
            granted[index] += gift
            room -= gift
        open_ = [index for index in open_ if granted[index] < wanted[index]]
    return granted


def counts(report: Report) -> dict[Severity, dict[Verdict, int]]:
    """How many findings there are of each severity and verdict."""
    table = {severity: dict.fromkeys(VERDICTS, 0) for severity in SEVERITIES}
    for finding in report.findings:
        table[finding.severity][finding.verdict] += 1
    return table


def shown_value(value: Value) -> str:
    """One piece of evidence as one line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        return text.clip(value, 160)
    numbers = [item for item in value if isinstance(item, int)]
    if len(numbers) == len(value):
        return text.ranges(numbers) or "none"
    return text.listed((text.clip(str(item), 160) for item in value), _MOST_VALUES)


def _values(value: Value) -> tuple[str, ...]:
    """Evidence that is a list of words, one line for each; empty for anything that fits into one line."""
    if (
        isinstance(value, str | int | float)
        or value is None
        or not any(isinstance(item, str) for item in value)
    ):
        return ()
    shown = [text.clip(str(item), 160) for item in value[:_MOST_VALUES]]
    left = len(value) - len(shown)
    return (*shown, f"{left:,} more") if left else tuple(shown)


def _stamp(moment: str | None) -> str:
    """``2026-09-24T03:12:44Z`` as ``2026-09-24 03:12:44``."""
    return (moment or "").replace("T", " ").removesuffix("Z")


def _short_path(path: str, report_home: str) -> str:
    """``path`` relative to the home where it lies in it."""
    prefix = report_home.rstrip("/") + "/"
    return text.clip(path.removeprefix(prefix), 160)


def source(name: str) -> str:
    """A template without its indentation, which would otherwise be a fifth of a large page."""
    return re.sub(r"^[ \t]+", "", (_TEMPLATES / name).read_text("utf-8"), flags=re.MULTILINE)


@cache
def environment() -> Environment:
    """What turns the templates into pages: everything is escaped, nothing may be undefined."""
    environment = Environment(
        loader=FunctionLoader(source), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters.update(
        v=text.clip,
        value=shown_value,
        values=_values,
        n=text.number,
        count=text.count,
        size=text.size,
        ranges=text.ranges,
        listed=text.listed,
        stamp=_stamp,
        passage=text.passage,
        evidence=candidates.beside,
    )
    return environment


def policy(style: str, script: str | None = None) -> str:
    """The Content-Security-Policy of a page with this style and this script, and nothing else."""
    allowed = ["default-src 'none'", f"style-src {_hash(style)}"]
    if script is not None:
        allowed.append(f"script-src {_hash(script)}")
    return "; ".join([*allowed, "base-uri 'none'", "form-action 'none'"])


def _hash(content: str) -> str:
    """A source expression for a Content-Security-Policy: exactly this inline text and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _by_finding(report: Report) -> dict[str, list[MessageText]]:
    """The texts of the messages that each finding names."""
    texts = {(said.store, said.session, said.message_id): said for said in report.contents or ()}
    found: dict[str, list[MessageText]] = {}
    for finding in report.findings:
        about = finding.subject.store, finding.subject.session or ""
        own = [texts[key] for number in finding.subject.message_ids if (key := (*about, number)) in texts]
        if own:
            found[finding.id] = own
    return found


def render(report: Report) -> str:
    """The whole page. At most 300 kB for 1,000 findings: what does not fit is counted and left to the
    JSON."""
    style = source("report.css").strip()
    script = source("report.js").strip()
    shown = groups(report)
    linked = {item.id for group in shown for own in group.rules for item in (*own.cards, *own.lines)}
    page = environment().get_template("report.html")
    return page.render(
        report=report,
        style=style,
        script=script,
        policy=policy(style, script),
        groups=shown,
        gaps=gaps(report),
        ignored=ignored(report),
        rows_known=rows_known(report),
        lineage_known=lineage_known(report),
        in_files=in_files,
        linked=linked,
        known=baseline.said(report.baseline, hidden=False),
        counts=counts(report),
        verdict_means=VERDICT_MEANS,
        titles={(each.store, each.id): each.title for each in report.sessions if each.title},
        several=len(report.stores) > 1,
        texts=_by_finding(report),
        timeline=charts.timeline(report.timeline),
        bar=charts.bar,
        drawing=graph.drawing,
        candidates=families.Candidates(report),
        most_candidates=MOST_CANDIDATES,
        most_families=families.MOST_FAMILIES,
        kinds=_tally(artifact.kind for artifact in report.artifacts),
        rules=_by_status(report.rules),
        note=paths.note(report.home),
        short=lambda path: _short_path(path, report.home),
        most_rows=MOST_ROWS,
    )


def _tally(kinds: Iterable[str]) -> dict[str, int]:
    tally: dict[str, int] = {}
    for kind in sorted(kinds):
        tally[kind] = tally.get(kind, 0) + 1
    return tally


def _by_status(rules: Iterable[RuleEntry]) -> dict[str, list[RuleEntry]]:
    found: dict[str, list[RuleEntry]] = {
        status: [] for status in ("could not run", "findings", "clean", "ignored", "not applicable")
    }
    for rule in rules:
        found[rule.status].append(rule)
    return found
