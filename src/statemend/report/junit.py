"""The report as JUnit XML, for the test view of a CI server: a suite for each family, a case for each rule.

A rule fails when one of its findings does under ``fail_on``; it is an error when it could not run, and
skipped when it did not apply or is ignored. So there is an error when the exit code is 3, and a failure when
it is 1.
Message texts are never in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from statemend.audit.finding import Finding
from statemend.audit.outcome import FAILING
from statemend.report import baseline, rulebook, text
from statemend.report.model import SCHEMA, SEVERITIES, Report, RuleEntry

#: How many findings one case spells out; the JSON form has the others.
MOST_FINDINGS: Final = 200
#: The suite of what no single rule answers for.
EVIDENCE: Final = "evidence"


def render(report: Report) -> str:
    """The document, the same for the same report. Everything that came from a store is shown, never
    obeyed: no character in it is one that XML forbids."""
    root = ET.Element("testsuites", name="statemend")
    by_family: dict[str, list[ET.Element]] = {}
    findings = _by_rule(report)
    for rule in report.rules:
        family = rulebook.family(rule.id)
        case = _case(family, f"{rule.id} {rule.slug}")
        _judge(case, rule, findings.get(rule.id, ()), report)
        by_family.setdefault(family, []).append(case)
    by_family[EVIDENCE] = [_unchanged(report), _read(report)]
    for family, cases in by_family.items():
        root.append(_suite(family, cases, report))
    _count(root, root.iter("testcase"))
    ET.indent(root)
    body = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- {SCHEMA} -->\n{body}\n'


def _by_rule(report: Report) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in report.findings:
        found.setdefault(finding.rule, []).append(finding)
    return found


def _suite(name: str, cases: Sequence[ET.Element], report: Report) -> ET.Element:
    suite = ET.Element("testsuite", name=name, timestamp=report.generated_at.removesuffix("Z"))
    _count(suite, cases)
    properties = ET.SubElement(suite, "properties")
    told = {
        "statemend": report.tool.version,
        "home": report.home,
        "store": text.listed(store.path for store in report.stores),
        "verdict": report.verdict,
        "exit code": str(report.exit_code),
        "baseline": " ".join(baseline.said(report.baseline)),
    }
    for key, value in told.items():
        if value:
            ET.SubElement(properties, "property", name=key, value=text.clip(value, 1000))
    suite.extend(cases)
    return suite


def _count(element: ET.Element, cases: Iterable[ET.Element]) -> None:
    listed = list(cases)
    element.set("tests", str(len(listed)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(case.find(tag) is not None for case in listed)))


def _case(family: str, name: str) -> ET.Element:
    return ET.Element("testcase", classname=f"statemend.{family}", name=text.clip(name, 200))


def _judge(case: ET.Element, rule: RuleEntry, findings: Sequence[Finding], report: Report) -> None:
    failing = [finding for finding in findings if finding.verdict in FAILING[report.fail_on]]
    if rule.status == "could not run":
        _outcome(case, "error", rule.reason, rule.status, findings)
    elif rule.status in ("not applicable", "ignored"):
        _outcome(case, "skipped", rule.reason)
    elif failing:
        worst = min(failing, key=lambda finding: SEVERITIES.index(finding.severity))
        said = f"{text.count(len(findings), 'finding')}, the worst {worst.severity}: {worst.summary}"
        _outcome(case, "failure", said, worst.verdict, findings)
    elif findings:
        ET.SubElement(case, "system-out").text = _spelled_out(findings)
    if rule.hidden:
        ET.SubElement(
            case, "system-err"
        ).text = f"{text.count(rule.hidden, 'known finding')} hidden by the baseline"


def _outcome(
    case: ET.Element, tag: str, message: str, kind: str | None = None, findings: Sequence[Finding] = ()
) -> None:
    outcome = ET.SubElement(case, tag, message=text.clip(message, 500))
    if kind is not None:
        outcome.set("type", kind)
    if findings:
        outcome.text = _spelled_out(findings)


def _spelled_out(findings: Sequence[Finding]) -> str:
    lines = [line for finding in findings[:MOST_FINDINGS] for line in _lines(finding)]
    if len(findings) > MOST_FINDINGS:
        lines.append(f"{len(findings) - MOST_FINDINGS:,} more in the JSON form of this report")
    return "\n".join(lines)


def _lines(finding: Finding) -> list[str]:
    subject = finding.subject
    about = [
        part
        for part in (
            f"session {text.clip(subject.session, 80)}" if subject.session else "",
            text.clip(subject.artifact, 200) if subject.artifact else "",
            text.clip(subject.store, 200),
        )
        if part
    ]
    lines = [f"{finding.id} ({finding.severity} {finding.verdict}) {text.clip(finding.summary, 400)}"]
    if about:
        lines.append(f"  in: {', '.join(about)}")
    if finding.remedy.command:
        lines.append(f"  next: {text.clip(finding.remedy.command, 600)}")
    return lines


def _unchanged(report: Report) -> ET.Element:
    case = _case(EVIDENCE, "the store stayed as it was while it was read")
    changed = [store.path for store in report.stores if store.unchanged is False]
    if changed:
        _outcome(case, "error", f"changed: {text.listed(changed)}", "could not determine")
    return case


def _read(report: Report) -> ET.Element:
    case = _case(EVIDENCE, "every file that a rule looks at was read")
    unread = [item for item in report.skipped if item.unread]
    if unread:
        _outcome(case, "error", f"{text.count(len(unread), 'file')} not read", "could not determine")
        case[-1].text = "\n".join(
            f"{text.clip(item.path, 400)}: {text.clip(item.reason, 200)}" for item in unread[:MOST_FINDINGS]
        )
    return case
