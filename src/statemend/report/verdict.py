"""The report's first sentence."""

from __future__ import annotations

from collections.abc import Sequence

from statemend.audit.finding import Finding, Severity, Verdict
from statemend.report import text
from statemend.report.model import RuleEntry, SkippedEntry, StoreEntry

_WORST = {
    Severity.CRITICAL: "text is gone or about to be",
    Severity.HIGH: "text cannot be reached or writes are refused",
    Severity.MEDIUM: "Hermes serves the wrong history",
    Severity.LOW: "numbers are wrong or clutter is left",
    Severity.INFO: "nothing needs doing now",
}


def sentence(
    findings: Sequence[Finding],
    rules: Sequence[RuleEntry],
    stores: Sequence[StoreEntry],
    skipped: Sequence[SkippedEntry] = (),
    *,
    hidden: int = 0,
) -> str:
    """One sentence: how many faults and risks, the worst of it, what could not be determined, and how many
    findings a baseline has ``hidden`` and how many rules were ignored."""
    said = _sentence(findings, rules, stores, skipped, new="new " if hidden else "")
    ignored = sum(rule.status == "ignored" for rule in rules)
    if hidden:
        said = f"{said.removesuffix('.')}; {text.count(hidden, 'known finding')} hidden by the baseline."
    if ignored:
        said = f"{said.removesuffix('.')}; {text.count(ignored, 'rule')} ignored."
    return said


def _sentence(
    findings: Sequence[Finding],
    rules: Sequence[RuleEntry],
    stores: Sequence[StoreEntry],
    skipped: Sequence[SkippedEntry],
    *,
    new: str,
) -> str:
    faults = [store.fault for store in stores if store.fault]
    told = any(finding.verdict in (Verdict.RISK, Verdict.LEFTOVER) for finding in findings)
    if faults and len(faults) == len(stores) and not told:
        return f"The store cannot be read, so nothing is said about what it holds: {faults[0]}."
    doubt = _doubt(rules, stores, skipped)
    pressing = [finding for finding in findings if finding.verdict in (Verdict.FAULT, Verdict.RISK)]
    if pressing:
        return f"{_numbers(pressing)}: {_worst(pressing)}{'; ' + doubt if doubt else ''}."
    if doubt:
        return f"No {new}fault found, but {doubt}, so this home cannot be called clean."
    if findings:
        return f"No {new}fault and no {new}risk; {text.count(len(findings), 'smaller point')} to know of."
    return f"No {new}fault and no {new}risk found."


def _doubt(rules: Sequence[RuleEntry], stores: Sequence[StoreEntry], skipped: Sequence[SkippedEntry]) -> str:
    """What leaves the answer open, as one clause; empty when nothing does."""
    blocked = sum(rule.status == "could not run" for rule in rules)
    unread = sum(item.unread for item in skipped)
    closed = sum(store.fault is not None for store in stores) if len(stores) > 1 else 0
    changed = [store for store in stores if store.unchanged is False]
    parts = [
        f"{text.count(closed, 'store')} could not be read" if closed else "",
        f"{text.count(blocked, 'rule')} could not run" if blocked else "",
        f"{text.count(unread, 'file')} could not be read" if unread else "",
        f"{'the store' if len(stores) == 1 else text.count(len(changed), 'store')} changed while it was read"
        if changed
        else "",
    ]
    return text.listed(filter(None, parts), len(parts))


def _numbers(findings: Sequence[Finding]) -> str:
    parts = []
    for verdict in (Verdict.FAULT, Verdict.RISK):
        number = sum(finding.verdict is verdict for finding in findings)
        if number:
            parts.append(text.count(number, verdict.value))
    return " and ".join(parts)


def _worst(findings: Sequence[Finding]) -> str:
    severities = list(Severity)
    worst = min((finding.severity for finding in findings), key=severities.index)
    subjects = [finding.subject for finding in findings if finding.severity is worst]
    sessions = {(each.store, each.session) for each in subjects if each.session is not None}
    place = f"in {text.count(len(sessions), 'session')} " if sessions else ""
    return place + _WORST[worst]
