"""The report as SARIF 2.1.0, for code scanning and for viewers of static analysis.

A finding is a result; what the audit could not look at, or did not apply, is a notification of its one
invocation. Message texts are never in it, whatever was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from statemend.audit.finding import Finding, Severity, Verdict
from statemend.report import baseline, rulebook, text
from statemend.report.json import dump
from statemend.report.model import Report, RuleEntry
from statemend.report.sarif_places import Places
from statemend.report.sight import undetermined

VERSION: Final = "2.1.0"
SCHEMA_URI: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
#: The key of the finding's id among the fingerprints of a result.
FINGERPRINT: Final = "findingId/v1"

_ERRORS = frozenset({Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM})
#: Notification id, level and meaning, in the order of the driver's descriptors.
_NOTICES = {
    "could-not-run": ("error", "A rule could not run, so nothing is said about what it looks for."),
    "store-unreadable": ("error", "The store could not be read."),
    "store-changed": ("error", "The store changed while it was read."),
    "file-unread": ("error", "A file that a rule would have looked at could not be read."),
    "file-skipped": ("note", "A file was not looked at."),
    "not-applicable": ("note", "A rule did not apply to this store."),
    "ignored": ("note", "A rule was left out on purpose."),
    "baseline": ("note", "Known findings are hidden by a baseline."),
}
_EXIT = {
    0: "no finding fails, everything was looked at",
    1: "a finding fails",
    3: "something could not be determined",
}


def render(report: Report) -> str:
    """The log file: indented JSON, the same for the same report."""
    return dump(log(report))


def log(report: Report) -> dict[str, Any]:
    """The log as plain values."""
    return {
        "$schema": SCHEMA_URI,
        "version": VERSION,
        "properties": {"contract": report.schema},
        "runs": [_run(report)],
    }


def level(verdict: Verdict, severity: Severity) -> str:
    """How SARIF ranks a finding. One that evidence does not decide has no level: its kind is ``open``."""
    if verdict is Verdict.UNDECIDABLE:
        return "none"
    if verdict is Verdict.LEFTOVER or severity is Severity.INFO:
        return "note"
    if severity in _ERRORS:
        return "error" if verdict is Verdict.FAULT else "warning"
    return "warning" if verdict is Verdict.FAULT else "note"


def _run(report: Report) -> dict[str, Any]:
    places = Places(report)
    indexes = {rule.id: index for index, rule in enumerate(report.rules)}
    return {
        "tool": {"driver": _driver(report)},
        "invocations": [_invocation(report, places, indexes)],
        "originalUriBaseIds": places.bases(),
        "artifacts": places.artifacts(),
        "results": [_result(finding, places, indexes) for finding in report.findings],
        "properties": {
            "home": report.home,
            "exports": report.exports,
            "verdict": report.verdict,
            "failOn": report.fail_on,
        }
        | ({} if report.baseline is None else {"baseline": report.baseline}),
    }


def _driver(report: Report) -> dict[str, Any]:
    return {
        "name": report.tool.name,
        "version": report.tool.version,
        "rules": [_rule(entry) for entry in report.rules],
        "notifications": [
            {
                "id": id_,
                "shortDescription": _message(means),
                "defaultConfiguration": {"level": rank},
            }
            for id_, (rank, means) in _NOTICES.items()
        ],
        "properties": {"sqlite": report.tool.sqlite},
    }


def _invocation(report: Report, places: Places, indexes: dict[str, int]) -> dict[str, Any]:
    return {
        "startTimeUtc": report.generated_at,
        "exitCode": report.exit_code,
        "exitCodeDescription": _EXIT.get(report.exit_code, "unknown"),
        "executionSuccessful": not undetermined(report),
        "toolExecutionNotifications": list(_notifications(report, places, indexes)),
    }


def _rule(entry: RuleEntry) -> dict[str, Any]:
    descriptor: dict[str, Any] = {
        "id": entry.id,
        "name": entry.slug,
        "shortDescription": _message(entry.title),
    }
    rule = rulebook.known(entry.id)
    if rule is None:
        return descriptor
    sections = rule.sections
    return descriptor | {
        "fullDescription": _message(" ".join(sections["What it means"].split())),
        "help": _message("\n\n".join(f"{head}\n{said}" for head, said in sections.items()), None)
        | {"markdown": _braces("\n\n".join(f"**{head}**\n\n{said}" for head, said in sections.items()))},
        "defaultConfiguration": {"level": level(rule.verdict, rule.severity)},
        "properties": {
            "family": rule.family,
            "severity": rule.severity,
            "verdict": rule.verdict,
            "recipe": rule.recipe,
            "tags": [rule.family, rule.severity, rule.verdict],
        },
    }


def _result(finding: Finding, places: Places, indexes: dict[str, int]) -> dict[str, Any]:
    subject = finding.subject
    place: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": places.of(subject.artifact or subject.store)}
    }
    if subject.session is not None:
        place["logicalLocations"] = [{"name": text.clip(subject.session, 200), "kind": "session"}]
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "kind": "open" if finding.verdict is Verdict.UNDECIDABLE else "fail",
        "level": level(finding.verdict, finding.severity),
        "message": _message(finding.summary),
        "locations": [place],
        "partialFingerprints": {FINGERPRINT: finding.id},
        "properties": {
            "verdict": finding.verdict,
            "severity": finding.severity,
            "session": subject.session,
            "messageIds": subject.message_ids,
            "evidence": finding.evidence,
            "remedy": finding.remedy,
        },
    }
    if finding.rule in indexes:
        result["ruleIndex"] = indexes[finding.rule]
    if subject.artifact is not None:
        result["relatedLocations"] = [{"physicalLocation": {"artifactLocation": places.of(subject.store)}}]
    return result


def _notifications(report: Report, places: Places, indexes: dict[str, int]) -> Iterator[dict[str, Any]]:
    for rule in report.rules:
        about = {"associatedRule": {"id": rule.id, "index": indexes[rule.id]}}
        if rule.status == "could not run":
            yield _notice("could-not-run", f"{rule.id} could not run: {rule.reason}") | about
        elif rule.status == "not applicable":
            yield _notice("not-applicable", f"{rule.id} did not apply: {rule.reason}") | about
        elif rule.status == "ignored":
            yield _notice("ignored", f"{rule.id} was {rule.reason}") | about
    for store in report.stores:
        where = {"locations": [{"physicalLocation": {"artifactLocation": places.of(store.path)}}]}
        if store.fault:
            yield _notice("store-unreadable", store.fault) | where
        if store.unchanged is False:
            yield _notice("store-changed", "The store changed while it was read.") | where
    for item in report.skipped:
        where = {"locations": [{"physicalLocation": {"artifactLocation": places.of(item.path)}}]}
        yield _notice("file-unread" if item.unread else "file-skipped", item.reason) | where
    for line in baseline.said(report.baseline):
        yield _notice("baseline", line)


def _notice(id_: str, said: str) -> dict[str, Any]:
    return {
        "descriptor": {"id": id_, "index": list(_NOTICES).index(id_)},
        "level": _NOTICES[id_][0],
        "message": _message(said),
    }


def _message(said: str, limit: int | None = 1000) -> dict[str, Any]:
    """Text as SARIF reads it: no placeholder and no link is in it. ``limit`` is ``None`` for our own text of
    several lines."""
    shown = said if limit is None else text.clip(said, limit)
    return {"text": _braces(shown).replace("](", "] (") or " "}


def _braces(said: str) -> str:
    return said.replace("{", "{{").replace("}", "}}")
